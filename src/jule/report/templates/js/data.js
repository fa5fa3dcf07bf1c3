// The data of the page: the summary, arrays as base64, names, and where the pictures are.

const RUN = JSON.parse(document.getElementById("run").textContent);
const SUMMARY = RUN.summary;
const N = SUMMARY.images;

// These are replaced when a server has saved an edit. Without the confidence, it is counted here.
let LABELS = typed("labels");
let CONFIDENCE = typed("confidence");
let BY_HAND = typed("by_hand"); // 1 where a person chose the cluster; null where nobody did

const NEIGHBORS = typed("neighbors");
const NEAR = NEIGHBORS.length / N; // how many neighbours every image has
const INPUT_NEIGHBORS = typed("input_neighbors"); // those before learning; null in older runs
const COORDS = typed("coords");
const AXES = COORDS.length / N;
const LEARNED = typed("map"); // the map that was learned with the run; null if there is none
const UMAP = typed("umap");
const PLACES = typed("places");
const INDICES = typed("indices"); // positions in the source; null where they are 0, 1, ...
const COPIES = typed("copies"); // the image that each one is an exact copy of; null without copies

function typed(name) {
  const found = RUN.arrays[name];
  if (!found) return null;
  const array = decoded(found);
  found.base64 = ""; // frees the memory
  return array;
}

function decoded({ type, base64 }) {
  const types = { Uint8Array, Uint16Array, Int16Array, Int32Array, Float32Array };
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new types[type](bytes.buffer);
}

// Where an image is in labels.csv.
function rowOf(image) {
  return image;
}

function imageOf(row) {
  return row;
}

// A link, { edit, images, others }, with images instead of rows.
function ofImages({ edit, images, others }) {
  return { edit, images: images.map(imageOf), others: others.map(imageOf) };
}

const SHELF = -1; // the number of the cluster of images that fit nowhere
const SHELF_NAME = "unsure";

function nameOf(image) {
  return RUN.names ? RUN.names[image] : String(image);
}

// Names may repeat: an image is identified by its position in the source.
function indexOf(image) {
  return INDICES ? INDICES[image] : image;
}

function byId(id) {
  return document.getElementById(id);
}

// Make an element. Texts become text and never markup, whatever they contain.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function drawing(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function plural(count, one, many = one + "s") {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

// Only 1 is written as 100%: 0.9999 is 99.9%.
function percent(share) {
  const digits = share > 0.995 && share < 1 ? 1 : 0;
  return `${Math.min(share < 1 ? 99.9 : 100, 100 * share).toFixed(digits)}%`;
}

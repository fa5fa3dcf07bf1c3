// The data of the page: the summary, arrays as base64, names, and where the pictures are.

const RUN = JSON.parse(document.getElementById("run").textContent);
const SUMMARY = RUN.summary;
const TOTAL = SUMMARY.images; // of the run
let ROWS = typed("rows"); // of the images on this page, in labels.csv; null if all are here
const IS_SAMPLE = Boolean(ROWS);
const LEAVES = ROWS ? ROWS.length : TOTAL; // images of the page that are in its tree
let N = LEAVES; // images on this page; a server may add some (guests.js)
let COUNTS = typed("counts"); // how many images of the run each one stands for; null for 1 each

// These are replaced when a server has saved an edit. Without the confidence, it is counted here.
let LABELS = typed("labels");
let CONFIDENCE = typed("confidence");
let BY_HAND = typed("by_hand"); // 1 where a person chose the cluster; null where nobody did

// The neighbours of every image, the nearest first, with codes of their affinity: as learned, and
// before learning, which older runs do not have.
const GRAPHS = ["", "input_"]
  .map((kind) => ({ near: typed(`${kind}neighbors`), codes: typed(`${kind}affinity_codes`) }))
  .filter(({ near }) => near);
const NEAR = GRAPHS[0].near.length / N; // how many neighbours every image has
let COORDS = typed("coords");
const AXES = COORDS.length / N;
let LEARNED = typed("map"); // the map that was learned with the run; null if there is none
const UMAP = typed("umap");
const PLACES = typed("places");
let INDICES = typed("indices"); // positions in the source; null where they are 0, 1, ...
let COPIES = typed("copies"); // the image that each one is an exact copy of; null without copies

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

// Where an image is in labels.csv, and which image of the page a row is; undefined if none is.
const imageAt = new Map(ROWS ? Array.from(ROWS, (row, image) => [row, image]) : []);

function rowOf(image) {
  return ROWS ? ROWS[image] : image;
}

function imageOf(row) {
  return ROWS ? imageAt.get(row) : row;
}

// The lists of a summary, with images instead of rows.
function onPage(summary) {
  if (!ROWS) return summary;
  const here = (rows) => rows.map(imageOf).filter((image) => image !== undefined);
  for (const group of summary.groups) {
    group.typical = here(group.typical);
    group.doubtful = here(group.doubtful);
  }
  summary.doubts = summary.doubts
    .map((doubt) => ({ ...doubt, image: imageOf(doubt.image) }))
    .filter(({ image }) => image !== undefined);
  return summary;
}
onPage(SUMMARY);

// A link, { edit, images, others }, with images instead of rows.
function ofImages({ edit, images, others }) {
  const here = (rows) => rows.map(imageOf).filter((image) => image !== undefined);
  return { edit, images: here(images), others: here(others) };
}

const SHELF = -1; // the number of the cluster of images that fit nowhere
const SHELF_NAME = "unsure";

function nameOf(image) {
  return RUN.names ? RUN.names[image] : String(rowOf(image));
}

// Names may repeat: an image is identified by its position in the source.
function indexOf(image) {
  return INDICES ? INDICES[image] : rowOf(image);
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

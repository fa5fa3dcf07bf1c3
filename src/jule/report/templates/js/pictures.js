// A picture is a piece of a sheet. A sheet is loaded when a piece of it is first shown.

const PICTURES = RUN.pictures;
const sheets = PICTURES ? PICTURES.urls.map(() => null) : [];

if (PICTURES) {
  PICTURES.urls.forEach(styleSheet);
  document.documentElement.style.setProperty("--aspect", PICTURES.width / PICTURES.height);
  document.documentElement.classList.toggle("crisp", PICTURES.crisp);
}

function styleSheet(url, number) {
  const text = `.sheet-${number}{background-image:url("${url}")}`;
  document.head.append(make("style", { text }));
}

const guestPlaces = new Map(); // of images that a server has added: { sheet, within, count }

function pieceOf(image) {
  const { columns, cellWidth, cellHeight } = PICTURES;
  const { sheet, within, count } = guestPlaces.get(image) || placeOnSheet(PLACES[image]);
  return {
    sheet,
    left: (within % columns) * cellWidth + 1,
    top: Math.floor(within / columns) * cellHeight + 1,
    sheetWidth: columns * cellWidth,
    sheetHeight: Math.ceil(count / columns) * cellHeight,
  };
}

// The sheet of a place, the place on it, and how many places it has.
function placeOnSheet(place) {
  const full = PICTURES.columns * PICTURES.rows;
  const sheet = Math.floor(place / full);
  return { sheet, within: place % full, count: Math.min(full, LEAVES - sheet * full) };
}

function picture(image) {
  if (!PICTURES) return make("span", { class: "picture word", text: nameOf(image) });
  const { sheet, left, top, sheetWidth, sheetHeight } = pieceOf(image);
  const { width, height } = PICTURES;
  const element = make("span", { class: `picture sheet-${sheet}` });
  const across = sheetWidth > width ? (100 * left) / (sheetWidth - width) : 0;
  const down = sheetHeight > height ? (100 * top) / (sheetHeight - height) : 0;
  element.style.backgroundSize = `${(100 * sheetWidth) / width}% ${(100 * sheetHeight) / height}%`;
  element.style.backgroundPosition = `${across}% ${down}%`;
  return element;
}

// Where the original file is, or null. Names are not trusted: every part of a path is escaped, and
// a path that could lead out of the folder has no address.
function originalUrl(image) {
  if (!SUMMARY.originals || location.protocol !== "file:") return null;
  const parts = nameOf(image).split("/");
  if (parts.some((part) => !part || part === "." || part === "..")) return null;
  return SUMMARY.originals + parts.map(escapePart).join("/");
}

// Bytes that are not UTF-8 arrive from Python as lone surrogates.
function escapePart(part) {
  const escape = (sign) => (/[\udc80-\udcff]/.test(sign) && sign.length === 1
    ? `%${(sign.charCodeAt(0) - 0xdc00).toString(16)}`
    : encodeURIComponent(sign.isWellFormed?.() === false ? "\ufffd" : sign));
  return Array.from(part, escape).join("");
}

// The picture of an image as large as can be: its original file if it loads, else the thumbnail.
function largePicture(image) {
  const frame = make("div", { class: "large" }, picture(image));
  if (server) {
    server.showOriginal(image, frame);
    return frame;
  }
  const url = originalUrl(image);
  if (url) {
    const original = make("img", { alt: nameOf(image), decoding: "async" });
    original.addEventListener("load", () => frame.replaceChildren(original));
    original.src = url;
  }
  return frame;
}

// A press opens the image; with Ctrl, Shift or in selection mode it selects it.
function pictureButton(image) {
  const button = make("button", {
    type: "button",
    class: "pic",
    "data-image": image,
    "aria-label": nameOf(image),
    title: nameOf(image),
  }, picture(image));
  button.classList.toggle("picked", selection.has(image));
  return button;
}

function pressPicture(event) {
  const button = event.target.closest(".pic[data-image]");
  if (!button) return;
  const image = Number(button.dataset.image);
  if (!isPicking() && !event.ctrlKey && !event.metaKey && !event.shiftKey) openImage(image);
  else toggleSelected(button.dataset.stack ? stackOf(image) : [image]);
}

function markSelected() {
  for (const button of document.querySelectorAll(".pic[data-image]")) {
    button.classList.toggle("picked", selection.has(Number(button.dataset.image)));
  }
}

// Draw a picture on a canvas. Returns false while its sheet is loading.
function drawPicture(context, image, x, y, width, height, whenLoaded) {
  if (!PICTURES) return false;
  const { sheet, left, top } = pieceOf(image);
  if (!sheets[sheet]) {
    sheets[sheet] = new Image();
    sheets[sheet].addEventListener("load", whenLoaded);
    sheets[sheet].src = PICTURES.urls[sheet];
  }
  if (!sheets[sheet].complete || !sheets[sheet].naturalWidth) return false;
  context.imageSmoothingEnabled = !PICTURES.crisp;
  context.drawImage(sheets[sheet], left, top, PICTURES.width, PICTURES.height, x, y, width, height);
  return true;
}

// A grid of pictures is one stop of the Tab key; arrows go from picture to picture.
function roving(grid) {
  const stops = () => [...grid.querySelectorAll(".pic")];
  const first = grid.querySelector(".pic");
  for (const button of stops()) button.tabIndex = button === first ? 0 : -1;
  if (grid.dataset.roving) return;
  grid.dataset.roving = "yes";
  grid.addEventListener("keydown", (event) => {
    const all = stops();
    const at = all.indexOf(event.target.closest(".pic"));
    if (at < 0) return;
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -at, End: all.length - 1 - at };
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const top = all[at].offsetTop;
      const sameRow = all.filter((button) => button.offsetTop === top).length;
      steps[event.key] = event.key === "ArrowDown" ? sameRow : -sameRow;
    }
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = all[Math.min(all.length - 1, Math.max(0, at + steps[event.key]))];
    all[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

// Drawing the map: points, pictures when zoomed in, names of clusters, the line of a selection.

const PICTURES_FROM_ZOOM = 3;
const FEW_POINTS = 5000;

function redrawMap() {
  if (map.waiting) return;
  map.waiting = true;
  requestAnimationFrame(() => {
    map.waiting = false;
    drawMap();
  });
}

function drawMap() {
  const context = fitCanvas(canvas, map);
  project();
  keepInView();
  drawPoints(context);
  map.labels = [];
  if (PICTURES && map.zoom >= PICTURES_FROM_ZOOM) drawPictures(context);
  else drawNames(context);
  drawLasso(context);
}

// Fit the resolution of a canvas to the screen, and clear it.
function fitCanvas(element, into) {
  const box = element.getBoundingClientRect();
  const fine = devicePixelRatio || 1;
  const [width, height] = [Math.round(box.width * fine), Math.round(box.height * fine)];
  if (element.width !== width || element.height !== height) {
    element.width = width;
    element.height = height;
  }
  into.width = box.width;
  into.height = box.height;
  const context = element.getContext("2d");
  context.setTransform(fine, 0, 0, fine, 0, 0);
  context.clearRect(0, 0, box.width, box.height);
  return context;
}

function pointSize() {
  const base = N < 3000 ? 5 : N < 20_000 ? 3 : 1.6;
  return base * Math.min(2, map.zoom ** 0.4);
}

function drawPoints(context) {
  if (N > FEW_POINTS) {
    paintPoints(context);
    return;
  }
  const size = pointSize();
  const some = selection.size > 0;
  for (let group = 0; group < view.k; group++) {
    context.fillStyle = groupColour(group);
    for (const image of view.members(group)) {
      context.globalAlpha = some && !selection.has(image) ? 0.12 : 0.75;
      context.beginPath();
      context.arc(map.xs[image], map.ys[image], size / 2, 0, 7);
      context.fill();
    }
  }
  context.globalAlpha = 1;
}

// Many points are written as pixels: a call to draw each one would take too long.
function paintPoints(context) {
  const { width, height } = canvas;
  const fine = devicePixelRatio || 1;
  const picture = context.createImageData(width, height);
  const pixels = new Uint32Array(picture.data.buffer);
  const side = Math.max(1, Math.round(pointSize() * fine));
  const colours = Uint32Array.from({ length: view.k }, (_, group) => asPixel(groupColour(group)));
  const some = selection.size > 0;
  for (let i = 0; i < N; i++) {
    const left = Math.round(map.xs[i] * fine - side / 2);
    const top = Math.round(map.ys[i] * fine - side / 2);
    if (left < 0 || top < 0 || left + side > width || top + side > height) continue;
    const alpha = some && !selection.has(i) ? 0x1e000000 : 0xd0000000;
    const pixel = (colours[view.labels[i]] | alpha) >>> 0;
    for (let y = top; y < top + side; y++) {
      pixels.fill(pixel, y * width + left, y * width + left + side);
    }
  }
  context.putImageData(picture, 0, 0);
}

// "rgb(1 2 3)" as a pixel without its alpha, in little-endian byte order.
function asPixel(colour) {
  const [red, green, blue] = colour.match(/\d+/g).map(Number);
  return (blue << 16) | (green << 8) | red;
}

// As many pictures as fit without covering each other, always the same ones first.
function drawPictures(context) {
  const side = Math.min(64, 22 + 4 * map.zoom);
  const aspect = PICTURES.width / PICTURES.height;
  const [width, height] = aspect > 1 ? [side, side / aspect] : [side * aspect, side];
  const taken = new Map(); // by squares as large as a picture
  for (let i = 0; i < N; i++) {
    const [x, y] = [map.xs[i], map.ys[i]];
    if (x < 0 || y < 0 || x > map.width || y > map.height) continue;
    if (selection.size && !selection.has(i)) continue;
    if (!takePlace(taken, x, y, side + 3)) continue;
    const [left, top] = [x - width / 2, y - height / 2];
    if (!drawPicture(context, i, left, top, width, height, redrawMap)) continue;
    context.strokeStyle = groupColour(view.labels[i]);
    context.lineWidth = 2;
    context.strokeRect(left, top, width, height);
  }
}

function takePlace(taken, x, y, side) {
  const [column, row] = [Math.floor(x / side), Math.floor(y / side)];
  for (let c = column - 1; c <= column + 1; c++) {
    for (let r = row - 1; r <= row + 1; r++) {
      const there = taken.get(c * 10_000 + r);
      if (there && Math.abs(there[0] - x) < side && Math.abs(there[1] - y) < side) return false;
    }
  }
  taken.set(column * 10_000 + row, [x, y]);
  return true;
}

function drawLasso(context) {
  if (!map.lasso) return;
  context.strokeStyle = getComputedStyle(document.body).getPropertyValue("--accent");
  context.lineWidth = 1.5;
  context.beginPath();
  for (const [x, y] of map.lasso) context.lineTo(x, y);
  context.closePath();
  context.stroke();
  context.globalAlpha = 0.1;
  context.fillStyle = context.strokeStyle;
  context.fill();
  context.globalAlpha = 1;
}

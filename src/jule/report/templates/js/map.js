// The embedding in two or three dimensions: moved, zoomed, turned, and selected on.

const PICTURES_FROM_ZOOM = 3;
const FEW_POINTS = 5000;
const canvas = byId("map-canvas");
const MAP_VIEWS = { flat: "PCA", ...(UMAP ? { umap: "UMAP" } : {}), turned: "3-D" };
const map = {
  kind: UMAP ? "umap" : "flat", // how samples are laid out
  mode: "move",
  zoom: 1, x: 0, y: 0, // what is in the middle, in units of the whole
  across: 0.6, up: 0.35, // angles of the 3-D view
  xs: new Float32Array(N), ys: new Float32Array(N), depth: new Float32Array(N),
  width: 1, height: 1, waiting: false, lasso: null,
};

// Positions between -1 and 1, before zooming.
function layout() {
  const { kind } = map;
  const xs = new Float32Array(N);
  const ys = new Float32Array(N);
  const far = new Float32Array(N);
  if (kind === "turned") turnInto(xs, ys, far, COORDS, AXES, N, map.across, map.up);
  const source = kind === "umap" ? UMAP : COORDS;
  const stride = kind === "umap" ? 2 : AXES;
  for (let i = 0; kind !== "turned" && i < N; i++) {
    xs[i] = source[i * stride];
    ys[i] = source[i * stride + 1];
  }
  if (kind === "turned") {
    map.radius ||= radiusOf(COORDS, AXES, N);
    for (let i = 0; i < N; i++) {
      xs[i] /= map.radius;
      ys[i] /= map.radius;
    }
  } else fitInto(xs, ys);
  map.flatX = xs;
  map.flatY = ys;
  map.far = far;
}

// How far the farthest point is from the middle, so that turning never leads out of sight.
function radiusOf(source, stride, count) {
  let most = 1;
  for (let i = 0; i < count * stride; i += stride) {
    most = Math.max(most, Math.hypot(source[i], source[i + 1], source[i + 2]));
  }
  return most;
}

// Turn points around the vertical axis, then tip them towards the viewer.
function turnInto(xs, ys, far, source, stride, count, across, up) {
  const [c, s, cu, su] = [Math.cos(across), Math.sin(across), Math.cos(up), Math.sin(up)];
  for (let i = 0; i < count; i++) {
    const [a, b, d] = [source[i * stride], source[i * stride + 1], source[i * stride + 2]];
    const depth = -a * s + d * c;
    xs[i] = a * c + d * s;
    ys[i] = b * cu - depth * su;
    far[i] = b * su + depth * cu;
  }
}

function fitInto(xs, ys) {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < xs.length; i++) {
    left = Math.min(left, xs[i]);
    right = Math.max(right, xs[i]);
    low = Math.min(low, ys[i]);
    high = Math.max(high, ys[i]);
  }
  const half = Math.max(right - left, high - low, 1) / 2;
  for (let i = 0; i < xs.length; i++) {
    xs[i] = (xs[i] - (left + right) / 2) / half;
    ys[i] = (ys[i] - (low + high) / 2) / half;
  }
}

function project() {
  const scale = mapScale();
  for (let i = 0; i < N; i++) {
    map.xs[i] = map.width / 2 + (map.flatX[i] - map.x) * scale;
    map.ys[i] = map.height / 2 - (map.flatY[i] - map.y) * scale;
  }
}

function mapScale() {
  return 0.46 * Math.min(map.width, map.height) * map.zoom;
}

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
  drawPoints(context);
  if (PICTURES && map.zoom >= PICTURES_FROM_ZOOM) drawPictures(context);
  else drawNumbers(context);
  drawLasso(context);
}

// Make a canvas as fine as the screen, and clear it.
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

// Many points are written into the picture itself: a call for each would take too long.
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

// "rgb(1 2 3)" as a pixel without its alpha, in the byte order of every browser there is.
function asPixel(colour) {
  const [red, green, blue] = colour.match(/\d+/g).map(Number);
  return (blue << 16) | (green << 8) | red;
}

// As many pictures as fit without covering each other, always the same ones first.
function drawPictures(context) {
  const side = Math.min(64, 22 + 4 * map.zoom);
  const aspect = PICTURES.width / PICTURES.height;
  const [width, height] = aspect > 1 ? [side, side / aspect] : [side * aspect, side];
  const taken = new Map(); // what is drawn, by squares as large as a picture
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

function drawNumbers(context) {
  if (view.k > 60) return;
  const style = getComputedStyle(document.body);
  context.font = `600 13px ${style.fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  for (let group = 0; group < view.k; group++) {
    if (!view.sizes[group]) continue;
    const members = view.members(group);
    const x = middleOf(members, map.xs);
    const y = middleOf(members, map.ys);
    const text = changesHere().names.get(group)?.slice(0, 24) || String(group);
    context.strokeStyle = style.getPropertyValue("--panel");
    context.lineWidth = 4;
    context.strokeText(text, x, y);
    context.fillStyle = style.getPropertyValue("--text");
    context.fillText(text, x, y);
  }
}

// The median, of at most a few hundred: where a group is, whatever its outliers do.
function middleOf(members, values) {
  const step = Math.max(1, Math.floor(members.length / 301));
  const some = [];
  for (let i = 0; i < members.length; i += step) some.push(values[members[i]]);
  return some.sort((a, b) => a - b)[some.length >> 1];
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

function isInside(x, y, corners) {
  let inside = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [ax, ay] = corners[i];
    const [bx, by] = corners[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

function selectInside(corners) {
  const found = [];
  for (let i = 0; i < N; i++) if (isInside(map.xs[i], map.ys[i], corners)) found.push(i);
  select(found);
}

function nearestPoint(x, y) {
  let best = -1;
  let least = 14 * 14;
  for (let i = 0; i < N; i++) {
    const far = (map.xs[i] - x) ** 2 + (map.ys[i] - y) ** 2;
    if (far < least) {
      least = far;
      best = i;
    }
  }
  return best;
}

function zoomMap(by, x = map.width / 2, y = map.height / 2) {
  const before = mapScale();
  map.zoom = Math.min(200, Math.max(0.5, map.zoom * by));
  const after = mapScale();
  const [right, down] = [x - map.width / 2, y - map.height / 2];
  map.x += right / before - right / after;
  map.y -= down / before - down / after;
  redrawMap();
}

function panMap(right, down) {
  if (map.kind === "turned") {
    map.across += right / 120;
    map.up = Math.min(1.5, Math.max(-1.5, map.up + down / 120));
    layout();
  } else {
    map.x -= right / mapScale();
    map.y += down / mapScale();
  }
  redrawMap();
}

function resetMap() {
  Object.assign(map, { zoom: 1, x: 0, y: 0 });
  layout();
  redrawMap();
}

function showTip(image, x, y) {
  const tip = byId("map-tip");
  tip.hidden = image < 0;
  if (image < 0) return;
  tip.replaceChildren(
    ...(PICTURES ? [picture(image)] : []),
    make("b", { text: nameOf(image) }),
    make("span", { text: groupName(view.labels[image]) }));
  tip.style.left = `${Math.min(x + 14, map.width - 150)}px`;
  tip.style.top = `${y > map.height - 170 ? y - 165 : y + 14}px`;
}

function choices(where, options, chosen, pick) {
  for (const [value, text] of Object.entries(options)) {
    byId(where).append(make("button", {
      type: "button", text, "aria-pressed": String(value === chosen),
      onclick: (event) => {
        for (const other of byId(where).children) other.setAttribute("aria-pressed", "false");
        event.target.setAttribute("aria-pressed", "true");
        pick(value);
      },
    }));
  }
}

function startPointer() {
  let from = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = { start: at(event), last: at(event), far: false };
    if (map.mode === "select" || event.shiftKey) map.lasso = [at(event)];
    showTip(-1);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (!from) {
      showTip(nearestPoint(x, y), x, y);
      return;
    }
    from.far ||= Math.hypot(x - from.start[0], y - from.start[1]) > 4;
    if (map.lasso) {
      map.lasso.push([x, y]);
      redrawMap();
    } else if (from.far) panMap(x - from.last[0], y - from.last[1]);
    from.last = [x, y];
  });
  canvas.addEventListener("pointerup", (event) => {
    const image = nearestPoint(...at(event));
    const lasso = map.lasso;
    map.lasso = null;
    if (lasso && from?.far) selectInside(lasso);
    else if (from && !from.far && image >= 0) openImage(image);
    from = null;
    redrawMap();
  });
  canvas.addEventListener("pointercancel", () => { from = map.lasso = null; });
  canvas.addEventListener("pointerleave", () => showTip(-1));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomMap(Math.exp(-event.deltaY / 400), ...at(event));
  }, { passive: false });
}

function startKeys() {
  canvas.addEventListener("keydown", (event) => {
    const step = 30;
    const pans = {
      ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step],
    };
    if (event.key in pans) panMap(...pans[event.key]);
    else if (event.key === "+" || event.key === "=") zoomMap(1.4);
    else if (event.key === "-") zoomMap(1 / 1.4);
    else if (event.key === "0") resetMap();
    else return;
    event.preventDefault();
  });
}

function startMap() {
  choices("map-views", MAP_VIEWS, map.kind, (kind) => {
    map.kind = kind;
    resetMap();
  });
  choices("map-modes", { move: "Move", select: "Select" }, map.mode, (mode) => {
    map.mode = mode;
    canvas.classList.toggle("selecting", mode === "select");
  });
  byId("zoom-in").addEventListener("click", () => zoomMap(1.6));
  byId("zoom-out").addEventListener("click", () => zoomMap(1 / 1.6));
  byId("zoom-all").addEventListener("click", resetMap);
  startPointer();
  startKeys();
  layout();
  new ResizeObserver(redrawMap).observe(canvas);
  DARK.addEventListener("change", redrawMap);
  on("view", () => {
    canvas.setAttribute("aria-label", `A map of ${plural(N, "image")}, coloured by cluster`);
    redrawMap();
  });
  on("selection", redrawMap);
  on("names", redrawMap);
}

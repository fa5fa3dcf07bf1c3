// The map: every image at its place in two or three dimensions, moved, zoomed and turned.

const canvas = byId("map-canvas");
const MAP_VIEWS = {
  ...(LEARNED ? { learned: "Learned" } : {}), flat: "PCA", ...(UMAP ? { umap: "UMAP" } : {}),
  turned: "3-D",
};
const map = {
  kind: LEARNED ? "learned" : UMAP ? "umap" : "flat", // how samples are laid out
  mode: "move",
  zoom: 1, x: 0, y: 0, // the middle of the frame, in units of the layout
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
  const [source, stride] = { learned: [LEARNED, 2], umap: [UMAP, 2] }[kind] ?? [COORDS, AXES];
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

// The distance of the farthest point from the middle: turning never leads out of this sphere.
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

// Moving and zooming never leave the frame empty: the nearest point is brought back into it.
const MARGIN = 30;
function keepInView() {
  const off = (at, side) => Math.min(0, at - MARGIN) + Math.max(0, at - side + MARGIN);
  let least = Infinity;
  let nearest = 0;
  for (let i = 0; i < N && least > 0; i++) {
    const far = Math.abs(off(map.xs[i], map.width)) + Math.abs(off(map.ys[i], map.height));
    if (far < least) [least, nearest] = [far, i];
  }
  if (!(least > 0) || map.width < 3 * MARGIN) return;
  map.x += off(map.xs[nearest], map.width) / mapScale();
  map.y -= off(map.ys[nearest], map.height) / mapScale();
  project();
}

function mapScale() {
  return 0.46 * Math.min(map.width, map.height) * map.zoom;
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

// The map under mouse, finger and keyboard: pointing, moving, drawing around points.

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

// Two fingers zoom. Returns whether there are two.
function pinch(fingers, id, place) {
  if (fingers.size !== 2 || !fingers.has(id)) return false;
  const [other] = [...fingers].filter(([finger]) => finger !== id).map(([, where]) => where);
  const before = Math.hypot(fingers.get(id)[0] - other[0], fingers.get(id)[1] - other[1]);
  const after = Math.hypot(place[0] - other[0], place[1] - other[1]);
  fingers.set(id, place);
  if (before > 1) zoomMap(after / before, (place[0] + other[0]) / 2, (place[1] + other[1]) / 2);
  return true;
}

function startPointer() {
  let from = null;
  const fingers = new Map();
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    from = { start: at(event), last: at(event), far: false };
    if (map.mode === "select" || event.shiftKey) map.lasso = [at(event)];
    showTip(-1);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (pinch(fingers, event.pointerId, [x, y])) {
      if (from) from.far = true; // not a press on a point
      map.lasso = null;
      return;
    }
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
    fingers.delete(event.pointerId);
    const image = nearestPoint(...at(event));
    const lasso = map.lasso;
    map.lasso = null;
    if (lasso && from?.far) selectInside(lasso);
    else if (from && !from.far && image >= 0) openImage(image);
    from = null;
    redrawMap();
  });
  canvas.addEventListener("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    from = map.lasso = null;
  });
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
    const images = (IS_SAMPLE ? "a sample of " : "") + plural(N, "image");
    canvas.setAttribute("aria-label", `A map of ${images}, coloured by cluster`);
    redrawMap();
  });
  on("selection", redrawMap);
  on("names", redrawMap);
}

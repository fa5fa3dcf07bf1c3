// Images of a large run that a served page did not show at first: those of a cluster that is looked
// through, and those that edits are about. An image of the page that is near stands for each in
// whatever is not known of it: the map, the neighbours, other cuts of the tree.

// Add images that the server has described; return all of them.
function addImages({ rows, names: texts, stand_in: near, confidence, indices, sheet }) {
  const isNew = rows.map((row) => imageOf(row) === undefined);
  const fresh = rows.map((_, i) => i).filter((i) => isNew[i]);
  if (fresh.length) grow(fresh.map((i) => near[i]));
  if (PICTURES && sheet && fresh.length) styleSheet(sheet, PICTURES.urls.push(sheet) - 1);
  fresh.forEach((i, place) => {
    const image = N - fresh.length + place;
    imageAt.set(rows[i], image);
    ROWS[image] = rows[i];
    COUNTS[image] = 0;
    if (RUN.names) RUN.names[image] = texts[i];
    if (INDICES) INDICES[image] = indices[i];
    if (COPIES) COPIES[image] = image;
    if (CONFIDENCE) CONFIDENCE[image] = Math.round(FULL * confidence[i]);
    view.confidence[image] = confidence[i];
    const sheetNumber = PICTURES ? PICTURES.urls.length - 1 : 0;
    guestPlaces.set(image, { sheet: sheetNumber, within: i, count: rows.length });
  });
  return rows.map(imageOf);
}

// Make room for images, each with all that is known of the image that stands for it.
function grow(near) {
  standIns.push(...near);
  N += near.length;
  [ROWS, COUNTS, LABELS] = [ROWS, COUNTS, LABELS].map((array) => grown(array, near));
  for (const graph of GRAPHS) {
    graph.near = grown(graph.near, near, NEAR);
    graph.codes = grown(graph.codes, near, NEAR);
  }
  unexplained = grown(unexplained, near);
  view.counting &&= grown(view.counting, near);
  COORDS = grown(COORDS, near, AXES);
  LEARNED &&= grown(LEARNED, near, 2);
  INDICES &&= grown(INDICES, near);
  COPIES &&= grown(COPIES, near);
  CONFIDENCE &&= grown(CONFIDENCE, near);
  BY_HAND &&= grown(BY_HAND, near.map(() => 0)).fill(0, N - near.length);
  for (const part of ["labels", "base", "confidence"]) view[part] = grown(view[part], near);
  for (const part of ["xs", "ys", "depth"]) map[part] = new Float32Array(N);
  view.far = null;
  layout();
}

function grown(array, near, wide = 1) {
  const larger = new array.constructor(array.length + wide * near.length);
  larger.set(array);
  near.forEach((image, i) => {
    larger.set(array.subarray(image * wide, (image + 1) * wide), array.length + i * wide);
  });
  return larger;
}

// Ask for images by their rows, unless they are here already.
async function meet(rows) {
  const unknown = rows.filter((row) => imageOf(row) === undefined);
  for (let at = 0; at < unknown.length; at += GUESTS_AT_ONCE) {
    const { ok, answer } = await ask("images", { rows: unknown.slice(at, at + GUESTS_AT_ONCE) });
    if (ok) addImages(answer);
  }
}
const GUESTS_AT_ONCE = 120;

// All images of a cluster, part by part while its dialog is scrolled.
function showContents(group, grid, more) {
  let start = 0;
  let busy = false;
  const cluster = view.branches[group];
  const add = async () => {
    if (busy || !grid.isConnected) return;
    busy = true;
    const { ok, answer } = await ask("contents", { cluster, start });
    if (!ok || !grid.isConnected) return;
    const images = addImages(answer);
    for (const image of images) LABELS[image] = view.labels[image] = view.base[image] = group;
    grid.append(...images.map((image) => pictureButton(image)));
    roving(grid);
    start += images.length;
    busy = false;
    if (!answer.left) watcher.disconnect();
    else { // sees the end again, if it is still in sight
      watcher.unobserve(more);
      watcher.observe(more);
    }
  };
  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) add();
  }, { rootMargin: "600px" });
  watcher.observe(more);
}

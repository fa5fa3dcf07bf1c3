// What is shown now: the run's own labels or a cut of the tree, with the changes made to it.

const RUN_VIEW = "run";
const MOST_GROUPS = Math.max(1, Math.min(300, N));
const LEAST_GROUPS = Math.min(Math.max(1, TREE.roots), MOST_GROUPS);

let shown = RUN_VIEW; // or a number of groups
let view = null;
const changes = new Map(); // of every view: { names, moves }
const selection = new Set();
const listeners = { view: [], selection: [], names: [] };

function on(what, listener) {
  listeners[what].push(listener);
}

function tell(what) {
  for (const listener of listeners[what]) listener();
}

function changesHere() {
  if (!changes.has(shown)) {
    const names = new Map();
    if (shown === RUN_VIEW) {
      for (const group of SUMMARY.groups) if (group.name) names.set(group.cluster, group.name);
    }
    changes.set(shown, { names, moves: new Map(), touched: false });
  }
  return changes.get(shown);
}

function show(which) {
  shown = which;
  look();
}

function look() {
  const { moves } = changesHere();
  const isRun = shown === RUN_VIEW;
  const labels = isRun ? Int32Array.from(LABELS) : cutTree(TREE, shown);
  for (const [image, group] of moves) labels[image] = group;
  const sure = isRun
    ? Float32Array.from(CONFIDENCE, (value) => value / 255)
    : neighborShare(labels);
  for (const image of moves.keys()) sure[image] = 1; // somebody looked
  const next = describe(labels, sure);
  next.colours = matchColours(next, view);
  view = next;
  tell("view");
}

function groupColour(group) {
  return colourOf(view.colours[group]);
}

function groupName(group) {
  return changesHere().names.get(group) || `Cluster ${group}`;
}

function nameGroup(group, name) {
  const here = changesHere();
  const trimmed = name.trim();
  if (trimmed === (here.names.get(group) || "")) return;
  if (trimmed) here.names.set(group, trimmed);
  else here.names.delete(group);
  here.touched = true;
  tell("names");
}

function moveImages(images, group) {
  const here = changesHere();
  for (const image of images) here.moves.set(image, group);
  here.touched = true;
  look();
}

function forgetChanges() {
  changes.delete(shown);
  look();
  tell("names");
}

function select(images) {
  selection.clear();
  for (const image of images) selection.add(image);
  tell("selection");
}

function toggleSelected(image) {
  if (!selection.delete(image)) selection.add(image);
  tell("selection");
}

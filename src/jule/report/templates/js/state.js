// What is shown: the tree cut at a number of clusters, with the changes made to that cut by hand.

// Exact copies share a cluster, so that there are at most as many as different images.
const DIFFERENT = COPIES ? COPIES.filter((original, image) => original === image).length : N;
const MOST_GROUPS = Math.min(DIFFERENT, Math.max(300, K_RUN));
const LEAST_GROUPS = Math.min(Math.max(1, TREE.roots), MOST_GROUPS);

let shown = K_RUN;
let view = null;
const changes = new Map(); // by number of clusters: { moves, created, touched }
const names = new Map(); // by branch; a name that was cleared is ""
const newNames = new Set(); // the branches whose names were not downloaded yet
let createdSoFar = 0;
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
    changes.set(shown, { moves: new Map(), created: [], touched: false });
  }
  return changes.get(shown);
}

function show(k) {
  shown = k;
  look();
}

function look() {
  const { moves, created } = changesHere();
  const { labels: base, nodes } = cutAt(shown);
  const labels = base.slice();
  for (const [image, group] of moves) labels[image] = group;
  const votes = votesFor(base, nodes.length);
  const sure = shown === K_RUN
    ? Float32Array.from(CONFIDENCE, (value) => value / 65_535)
    : ownShare(labels, votes);
  for (const image of moves.keys()) sure[image] = 1;
  if (BY_HAND) for (let i = 0; i < N; i++) if (BY_HAND[i]) sure[i] = 1;
  view = describe(labels, sure, nodes.length + created.length);
  view.base = base;
  view.votes = votes;
  view.nodes = nodes;
  view.branches = [...nodes.map((node) => BRANCHES[node]), ...created];
  const numbers = view.branches.slice(0, nodes.length);
  const free = Math.max(...numbers) + 1; // the first number for clusters made by hand
  view.numbers = [...numbers, ...created.map((_, i) => free + i)];
  view.lists = shown === K_RUN ? listsOfRun(moves) : () => null;
  tell("view");
}

// What the run says of its own clusters, for those that no move has changed.
function listsOfRun(moves) {
  const changed = new Set();
  for (const [image, group] of moves) changed.add(group).add(LABELS[image]);
  return (group) => (changed.has(group) ? null : SUMMARY.groups[group]);
}

// Whether a person chose the cluster of an image, in the run or on this page.
function isDecided(image) {
  return Boolean(BY_HAND?.[image]) || changesHere().moves.has(image);
}

function groupColour(group) {
  return colourOf(view.branches[group]);
}

function givenName(group) {
  return names.get(view.branches[group]) || "";
}

function groupName(group) {
  return givenName(group) || `Cluster ${view.numbers[group]}`;
}

function nameGroup(group, text) {
  const name = text.trim();
  if (name === givenName(group)) return;
  names.set(view.branches[group], name);
  newNames.add(view.branches[group]);
  tell("names");
}

// Exact copies go together.
function withCopies(images) {
  if (!COPIES) return images;
  const originals = new Set(images.map((image) => COPIES[image]));
  return [...COPIES.keys()].filter((image) => originals.has(COPIES[image]));
}

function moveImages(images, group) {
  const here = changesHere();
  if (group === view.k) here.created.push(N + createdSoFar++);
  for (const image of withCopies(images)) {
    if (view.base[image] === group) here.moves.delete(image);
    else here.moves.set(image, group);
  }
  dropEmptyCreated(here);
  here.touched = true;
  look();
}

// New clusters are numbered without gaps.
function dropEmptyCreated(here) {
  const first = view.nodes.length;
  const used = new Set(here.moves.values());
  const kept = [...here.created.keys()].filter((i) => used.has(first + i));
  for (const [image, group] of here.moves) {
    if (group >= first) here.moves.set(image, first + kept.indexOf(group - first));
  }
  here.created = kept.map((i) => here.created[i]);
}

function forgetChanges() {
  for (const branch of view.branches) {
    names.delete(branch);
    newNames.delete(branch);
  }
  namesOfRun();
  changes.delete(shown);
  look();
  tell("names");
}

function namesOfRun() {
  for (const { cluster, name } of SUMMARY.groups) {
    if (name && !names.has(cluster)) names.set(cluster, name);
  }
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

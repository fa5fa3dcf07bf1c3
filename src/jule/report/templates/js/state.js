// What is shown: the tree cut at a number of clusters, with the changes made to that cut by hand.

let shown = K_RUN;
let view = null;
let names = new Map(); // by branch; a name that was cleared is ""
const selection = new Set();
const listeners = { view: [], selection: [], names: [] };

function on(what, listener) {
  listeners[what].push(listener);
}

function tell(what) {
  for (const listener of listeners[what]) listener();
}

function show(k) {
  shown = k;
  look();
}

function look() {
  const { moves, created, decided } = changesHere();
  const { labels: base, nodes } = cutAt(shown);
  const labels = base.slice();
  for (const [image, group] of moves) labels[image] = group;
  const own = shown === K_RUN;
  const k = own ? NUMBERS.length : nodes.length;
  const votes = votesFor(base, k);
  const { sure, inside, shares, counting } = confidenceIn(labels, votes);
  for (let i = 0; i < N; i++) sure[i] = Math.min(1, Math.max(0, sure[i] + unexplained[i]));
  for (const image of decided) sure[image] = 1;
  if (BY_HAND) for (let i = 0; i < N; i++) if (BY_HAND[i]) sure[i] = 1;
  view = describe(labels, sure, k + created.length);
  view.base = base;
  if (IS_SAMPLE && own) view.sizes = sizesOfRun(view.k, changesHere());
  Object.assign(view, { votes, inside, shares, counting });
  view.nodes = nodes; // null while the tree of the labels is on its way
  const numbers = own ? NUMBERS : numbersOf(nodes);
  view.branches = [...numbers, ...created.map(({ branch }) => branch)];
  view.numbers = [...numbers, ...created.map(({ number }) => number)];
  view.free = Math.max(NEXT_NUMBER - 1, ...numbers) + 1; // the first for clusters made by hand
  view.fromCut = k; // the clusters after these were made by hand
  view.lists = own && CONFIDENCE ? listsOfRun(moves) : () => null;
  tell("view");
}

function changedGroups(moves) {
  const changed = new Set();
  for (const [image, group] of moves) changed.add(group).add(LABELS[image]);
  return changed;
}

// Of a sample, the run knows the sizes of its own clusters. An image that a person moves is one.
function sizesOfRun(k, { moves, decided }) {
  const sizes = new Int32Array(k);
  sizes.set(server ? server.sizes : SUMMARY.groups.map(({ size }) => size));
  for (const [image, group] of moves) {
    const count = decided.has(image) ? 1 : COUNTS[image];
    sizes[LABELS[image]] -= count;
    sizes[group] += count;
  }
  return sizes;
}

// How many images a cluster has, in words; at other cuts, the sample says only about how many.
function sizeText(group) {
  const about = IS_SAMPLE && shown !== K_RUN ? "about " : "";
  return about + plural(view.sizes[group], "image");
}

// What the run says of its own clusters, for those that no edit has changed.
function listsOfRun(moves) {
  const changed = changedGroups(moves);
  return (group) => (changed.has(group) ? null : SUMMARY.groups[group]);
}

// Whether a person chose the cluster of an image, in the run or on this page.
function isDecided(image) {
  return Boolean(BY_HAND?.[image]) || changesHere().decided.has(image);
}

function groupColour(group) {
  return colourOf(view.branches[group]);
}

function isShelf(group) {
  return view.branches[group] === SHELF;
}

function givenName(group) {
  return isShelf(group) ? SHELF_NAME : names.get(view.branches[group]) || "";
}

function groupName(group) {
  return givenName(group) || `Cluster ${view.numbers[group]}`;
}

// How many clusters are shown, in words; images that fit nowhere are in none of them.
function clustersText(count) {
  const unsure = shelfGroup() < 0 ? 0 : view.sizes[shelfGroup()];
  return plural(count, "cluster") + (unsure ? ` and ${plural(unsure, "unsure image")}` : "");
}

function select(images) {
  selection.clear();
  for (const image of images) selection.add(image);
  tell("selection");
}

function toggleSelected(images) {
  const all = images.every((image) => selection.has(image));
  for (const image of images) {
    if (all) selection.delete(image);
    else selection.add(image);
  }
  tell("selection");
}

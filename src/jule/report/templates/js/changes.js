// Edits: names, moves, splits and merges. A server saves them, if there is one (served.js); in a
// page that was opened as a file they are kept here, and can be downloaded (edits.js).

let server = null; // sends edits; only scripts of a served page set it
let changes = new Map(); // by number of clusters: { moves, created, touched }
let newNames = new Set(); // the branches whose names were not downloaded yet
let refused = new Set(); // pairs of branches that are not the same, by `pairOf`
let createdSoFar = 0;
const steps = { past: [], future: [] }; // what undo and redo return to
const MOST_STEPS = 200;

function changesHere() {
  if (!changes.has(shown)) {
    changes.set(shown, { moves: new Map(), created: [], touched: false });
  }
  return changes.get(shown);
}

// A server knows the clusters of the run; other cuts of the tree are only looked at.
function canEdit() {
  return !server || shown === K_RUN;
}

function nameGroup(group, text) {
  const name = text.trim();
  if (name === givenName(group)) return;
  if (server) {
    server.edit({ edit: "name", cluster: view.branches[group], name });
    return;
  }
  remember();
  setName(view.branches[group], name);
  tell("names");
}

function setName(branch, name) {
  names.set(branch, name);
  newNames.add(branch);
}

// Move images to a cluster; `view.k` is a new one, and SHELF is the shelf.
function moveImages(images, group) {
  if (server) {
    const to = group === view.k ? null : view.branches[group] ?? SHELF;
    return server.edit(to === SHELF ? { edit: "shelve", images } : { edit: "move", images, to });
  }
  remember();
  put(images, group);
  look();
  return null;
}

function put(images, group) {
  const here = changesHere();
  if (group === view.k) here.created.push(N + createdSoFar++);
  for (const image of withCopies(images)) {
    if (view.base[image] === group) here.moves.delete(image);
    else here.moves.set(image, group);
  }
  dropEmptyCreated(here);
  here.touched = true;
}

// Exact copies go together.
function withCopies(images) {
  if (!COPIES) return images;
  const originals = new Set(images.map((image) => COPIES[image]));
  return [...COPIES.keys()].filter((image) => originals.has(COPIES[image]));
}

// New clusters are numbered without gaps.
function dropEmptyCreated(here) {
  const first = view.fromCut;
  const used = new Set(here.moves.values());
  const kept = [...here.created.keys()].filter((i) => used.has(first + i));
  for (const [image, group] of here.moves) {
    if (group >= first) here.moves.set(image, first + kept.indexOf(group - first));
  }
  here.created = kept.map((i) => here.created[i]);
}

// A branch of a cluster becomes a new one: by default, what one step down its branch separates.
function splitGroup(group, branch = null) {
  if (server) {
    server.edit({ edit: "split", cluster: view.branches[group], branch });
    return;
  }
  const members = [...view.members(group)];
  const originals = COPIES ? members.filter((image) => COPIES[image] === image) : members;
  const below = branch === null ? null : leavesBelow(TREE, branch);
  const leaving = below ? originals.filter((image) => below.has(image))
    : smallerPart(TREE, originals, isDecided);
  if (leaving.length) moveImages(leaving, view.k);
  else say("These images cannot be split: they are copies, or the tree never joined them.");
}

// The other cluster becomes part of the first, which keeps its name.
function mergeGroups(group, other) {
  if (server) {
    server.edit({ edit: "merge", cluster: view.branches[group], other: view.branches[other] });
    return;
  }
  remember();
  const name = givenName(group) || givenName(other);
  put([...view.members(other)], group);
  if (name !== givenName(group)) setName(view.branches[group], name);
  look();
}

function refuseGroups(group, other) {
  if (server) {
    server.edit({ edit: "refuse", cluster: view.branches[group], other: view.branches[other] });
    return;
  }
  remember();
  refused.add(pairOf(view.branches[group], view.branches[other]));
  tell("names"); // nothing moves
}

function pairOf(one, other) {
  return `${Math.min(one, other)} ${Math.max(one, other)}`;
}

// Everything that an edit may change, copied.
function snapshot() {
  const copied = new Map();
  for (const [k, { moves, created, touched }] of changes) {
    copied.set(k, { moves: new Map(moves), created: [...created], touched });
  }
  return {
    shown, changes: copied, names: new Map(names), newNames: new Set(newNames),
    refused: new Set(refused),
  };
}

function remember() {
  steps.past = [...steps.past.slice(1 - MOST_STEPS), snapshot()];
  steps.future = [];
}

function stepBack() {
  if (server) server.undo();
  else step(steps.past, steps.future);
}

function stepForward() {
  if (server) server.redo();
  else step(steps.future, steps.past);
}

function step(from, to) {
  if (!from.length) return;
  to.push(snapshot());
  const back = from.pop();
  ({ changes, names, newNames, refused } = back);
  changes.forEach((here) => { here.touched = true; });
  show(back.shown);
  tell("names");
}

function forgetChanges() {
  remember();
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
    if (name && !names.has(NUMBERS[cluster])) names.set(NUMBERS[cluster], name);
  }
}

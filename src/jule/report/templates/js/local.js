// Edits in a page that was opened as a file, by the rules of jule.corrections.apply. Each is kept
// as a request that `jule apply` understands, with an image of every cluster that it is about.

const NOTHING = { // of one number of clusters: edits, and what follows from them
  edits: [], moves: new Map(), created: [], decided: new Set(), links: SUMMARY.links.map(ofImages),
  made: 0, touched: false, // `made` counts all new clusters: a number is never used again
};
let changes = new Map(); // by number of clusters; an entry is replaced and never changed
let newNames = new Set(); // the branches whose names were not downloaded yet
let refused = new Set(); // pairs of branches that are not the same, by `pairOf`
let createdSoFar = 0;
const steps = { past: [], future: [] }; // what undo and redo return to
const MOST_STEPS = 200;

function changesHere() {
  return changes.get(shown) || NOTHING;
}

// Make an edit, unless `work`, which changes a copy of what there is, returns a problem; return
// whether it was made.
function change(edit, work) {
  const here = changesHere();
  const next = {
    edits: [...here.edits, edit], moves: new Map(here.moves), created: [...here.created],
    decided: new Set(here.decided), links: here.links, made: here.made, touched: true,
  };
  const problem = work(next);
  if (problem) {
    say(`Not changed: ${problem}`);
    return false;
  }
  remember(edit.edit);
  dropEmptyCreated(next);
  changes.set(shown, next);
  say("");
  look();
  return true;
}

function nameHere(group, name) {
  const isTaken = view.branches.some((_, other) =>
    other !== group && view.sizes[other] && givenName(other) === name);
  if (name && (isTaken || name.toLowerCase() === SHELF_NAME)) {
    say(name.toLowerCase() === SHELF_NAME
      ? `Not changed: '${SHELF_NAME}' is for images that fit nowhere: choose another name`
      : `Not changed: another cluster is already called '${name}': merge them, or choose another`
        + " name");
  } else {
    remember("name");
    setName(view.branches[group], name);
    say("");
  }
  tell("names");
}

function setName(branch, name) {
  names.set(branch, name);
  newNames.add(branch);
}

function moveHere(images, group) {
  const moving = unitOf(images);
  const rows = [...moving].map(rowOf);
  const shelve = group === SHELF;
  const to = shelve || group === view.k ? null : memberOf(group);
  const edit = shelve ? { edit: "shelve", images: rows } : { edit: "move", images: rows, to };
  return change(edit, (next) => {
    for (const image of moving) next.decided.add(image);
    return put(next, moving, shelve ? shelfIn(next) : group);
  });
}

// What leaves a cluster in a split: the first images of units; null if it cannot be split.
function leavingHere(group, branch) {
  const members = [...view.members(group)];
  const firsts = members.filter((image) => firstOfUnit(image) === image);
  const below = branch === null ? null : leavesBelow(TREE, branch);
  const leaving = below ? firsts.filter((image) => below.has(image))
    : smallerPart(TREE, firsts, isDecided);
  if (leaving.length && leaving.length < firsts.length) return leaving;
  say("These images cannot be split: they belong together, or the tree never joined them.");
  return null;
}

function splitHere(group, branch) {
  const leaving = leavingHere(group, branch);
  if (!leaving) return;
  const moving = unitOf(leaving);
  change({ edit: "split", cluster: memberOf(group), images: leaving.map(rowOf) }, (next) =>
    put(next, moving, view.k));
}

// The parts of a split before it is made.
function partsHere(group, branch) {
  const leaving = leavingHere(group, branch);
  if (!leaving) return null;
  const moving = unitOf(leaving);
  const stays = [...view.members(group)].filter((image) => !moving.has(image));
  const parts = [stays, [...moving]];
  return {
    sizes: parts.map((part) => part.length),
    typical: parts.map((part) => nearestToMean(part, TYPICAL)),
  };
}

function mergeHere(group, other) {
  const name = givenName(group) || givenName(other);
  change({ edit: "merge", cluster: memberOf(group), other: memberOf(other) }, (next) =>
    put(next, new Set(view.members(other)), group));
  if (name !== givenName(group) && !view.sizes[other]) {
    setName(view.branches[group], name);
    tell("names");
  }
}

function refuseHere(group, other) {
  change({ edit: "refuse", cluster: memberOf(group), other: memberOf(other) }, () => "");
  refused = new Set(refused).add(pairOf(view.branches[group], view.branches[other]));
  tell("names");
}

function linkHere(images) {
  const unit = unitOf(images);
  const home = images.find((image) => !isShelf(view.labels[image])) ?? images[0];
  return change({ edit: "must-link", images: images.map(rowOf) }, (next) => {
    next.links = [...next.links, { edit: "must-link", images, others: [] }];
    for (const image of unit) {
      if (view.labels[image] !== view.labels[home]) next.decided.add(image);
    }
    return apartIn((image) => unit.has(image)) || put(next, unit, view.labels[home]);
  });
}

function separateHere(image, other) {
  const unit = unitOf([other]);
  const edit = { edit: "cannot-link", images: [rowOf(image)], others: [rowOf(other)] };
  return change(edit, (next) => {
    if (unit.has(image)) {
      return `${nameOf(image)} and ${nameOf(other)} are exact copies, or belong together (a `
        + "must-link), so they cannot be kept apart";
    }
    next.links = [...next.links, { edit: edit.edit, images: [image], others: [other] }];
    if (view.labels[image] !== view.labels[other] || isShelf(view.labels[image])) return "";
    for (const one of unit) next.decided.add(one);
    return put(next, unit, view.k);
  });
}

function unlinkHere(images, others) {
  const key = String([images, "|", others]);
  change({ edit: "unlink", images: images.map(rowOf), others: others.map(rowOf) }, (next) => {
    next.links = next.links.filter((link) => String([link.images, "|", link.others]) !== key);
    return "";
  });
}

// Put whole units into a cluster; return a problem if a link forbids it.
function put(next, moving, group) {
  const branch = view.branches[group] ?? next.created[group - view.fromCut]?.branch;
  const toShelf = branch === SHELF;
  const problem = toShelf ? ""
    : apartIn((image) => moving.has(image) || view.labels[image] === group);
  if (problem) return problem;
  if (group === view.k && next.created.length === group - view.fromCut) {
    next.created.push({ branch: N + createdSoFar++, number: view.free + next.made++ });
  }
  for (const image of moving) {
    if (view.base[image] === group) next.moves.delete(image);
    else next.moves.set(image, group);
  }
  return "";
}

function shelfIn(next) {
  const known = view.branches.findIndex((_, group) => isShelf(group));
  if (known < 0) next.created.push({ branch: SHELF, number: SHELF });
  return known < 0 ? view.k : known;
}

// New clusters that are empty again are forgotten.
function dropEmptyCreated(next) {
  const first = view.fromCut;
  const used = new Set(next.moves.values());
  const kept = [...next.created.keys()].filter((i) => used.has(first + i));
  for (const [image, group] of next.moves) {
    if (group >= first) next.moves.set(image, first + kept.indexOf(group - first));
  }
  next.created = kept.map((i) => next.created[i]);
}

// The row of an image that stands for a cluster.
function memberOf(group) {
  return rowOf(view.members(group)[0]);
}

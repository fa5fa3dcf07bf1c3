// Edits: names, moves, splits, merges and links. A server saves them, if there is one (served.js);
// in a page that was opened as a file they are kept here (local.js), and can be downloaded.

let server = null; // sends edits; only scripts of a served page set it

// A server knows the clusters of the run; other cuts of the tree are only looked at.
function canEdit() {
  return !server || shown === K_RUN;
}

function nameGroup(group, text) {
  const name = text.trim();
  if (name === givenName(group)) return;
  if (server) server.edit({ edit: "name", cluster: view.branches[group], name });
  else nameHere(group, name);
}

// Move images to a cluster; `view.k` is a new one, and SHELF is the shelf.
async function moveImages(images, group) {
  const before = placesOf(unitOf(images));
  if (await sendMove(images, group)) sayWhatMoved(before);
}

function sendMove(images, group) {
  const toShelf = group === SHELF || (group < view.k && isShelf(group));
  if (!server) return moveHere(images, toShelf ? SHELF : group);
  const rows = images.map(rowOf);
  const to = group === view.k ? null : view.branches[group];
  return server.edit(toShelf ? { edit: "shelve", images: rows }
    : { edit: "move", images: rows, to });
}

// A branch of a cluster becomes a new one: by default, what one step down its branch separates.
function splitGroup(group, branch = null) {
  if (server) server.edit({ edit: "split", cluster: view.branches[group], branch });
  else splitHere(group, branch);
}

// The other cluster becomes part of the first, which keeps its name.
function mergeGroups(group, other) {
  const edit = { edit: "merge", cluster: view.branches[group], other: view.branches[other] };
  if (server) server.edit(edit);
  else mergeHere(group, other);
}

function refuseGroups(group, other) {
  const edit = { edit: "refuse", cluster: view.branches[group], other: view.branches[other] };
  if (server) server.edit(edit);
  else refuseHere(group, other);
}

// These images belong together: they are moved into one cluster, and stay in one.
async function linkImages(images) {
  const before = placesOf(unitOf(images));
  const made = await (server
    ? server.edit({ edit: "must-link", images: images.map(rowOf) }) : linkHere(images));
  if (made) sayWhatMoved(before, "They stay in one cluster from now on.");
}

// These two images do not belong together: they are never in one cluster.
async function separateImages(image, other) {
  const before = placesOf(unitOf([image, other]));
  const made = await (server
    ? server.edit({ edit: "cannot-link", images: [rowOf(image)], others: [rowOf(other)] })
    : separateHere(image, other));
  if (made) sayWhatMoved(before, "The two are never in one cluster from now on.");
}

// The images of a link stay where they are.
function removeLink({ images, others }) {
  const sides = { images: images.map(rowOf), others: others.map(rowOf) };
  if (server) server.edit({ edit: "unlink", ...sides });
  else unlinkHere(images, others);
}

function linksHere() {
  return server ? server.links : changesHere().links;
}

// The cluster of images that fit nowhere; -1 if there is none.
function shelfGroup() {
  return view.branches.findIndex((_, group) => isShelf(group) && view.sizes[group]);
}

function pairOf(one, other) {
  return `${Math.min(one, other)} ${Math.max(one, other)}`;
}

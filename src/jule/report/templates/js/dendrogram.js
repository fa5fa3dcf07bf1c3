// What joins next: the clusters on the right, each with a picture; their merges lead to the left.

const ROW = 48;
const WIDE = 1000;

function showDendrogram() {
  if (!view.nodes) return; // the tree of the new clusters is on its way
  const nodes = view.nodes.map((node, group) => (isShelf(group) ? -1 : node)); // it joins nothing
  const tops = mergesAbove(TREE, nodes, view.sizes, shown);
  for (let group = view.fromCut; group < view.k; group++) {
    if (!isShelf(group)) tops.push({ group }); // made by hand
  }
  const leaves = [];
  const joints = [];
  for (const top of tops) gather(top, leaves, joints);
  byId("merges").hidden = !joints.length;
  if (!joints.length) return;
  place(leaves, joints);
  byId("dendrogram").replaceChildren(
    branches(joints, tops, leaves.length),
    make("ol", { class: "leaves" }, ...leaves.map(leafRow)));
}

// Without recursion: a tree of merges may be thousands of levels deep.
function gather(top, leaves, joints) {
  const open = [top];
  while (open.length) {
    const at = open.pop();
    if (!at.node) leaves.push(at);
    else {
      joints.push(at);
      open.push(at.right, at.left);
    }
  }
}

function place(leaves, joints) {
  leaves.forEach((leaf, row) => Object.assign(leaf, { x: WIDE, y: (row + 0.5) * ROW }));
  joints.sort((a, b) => a.node - b.node); // in the order of merging
  joints.forEach((joint, rank) => {
    joint.x = WIDE * (1 - (rank + 1) / (joints.length + 0.6));
    joint.y = (joint.left.y + joint.right.y) / 2;
  });
}

function branches(joints, tops, count) {
  const ways = joints.map(({ x, left, right }) =>
    `M${left.x} ${left.y}H${x}V${right.y}H${right.x}`);
  for (const { x, y } of tops) ways.push(`M${x} ${y}H${tops.length > 1 ? x - 15 : 0}`);
  const height = count * ROW;
  const svg = drawing("svg", {
    viewBox: `0 0 ${WIDE} ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true",
  }, ...ways.map((d) => drawing("path", { d, "vector-effect": "non-scaling-stroke" })));
  const frame = make("div", {
    class: "branches", onclick: (event) => pressJoint(event, frame, joints),
  }, svg, ...joints.map(jointButton));
  frame.style.height = `${height}px`;
  return frame;
}

function jointButton(joint) {
  const affinity = AFFINITIES[joint.node - TREE.n];
  const text = `Stop here: ${plural(joint.clusters, "cluster")}`;
  const button = make("button", {
    type: "button", class: "joint", "aria-label": text, "data-clusters": joint.clusters,
    title: text + (affinity > 0 ? ` (affinity ${affinity.toPrecision(2)})` : ""),
  });
  button.style.left = `${(100 * joint.x) / WIDE}%`;
  button.style.top = `${joint.y}px`;
  return button;
}

// Buttons large enough for a finger overlap: the one whose middle is nearest is meant.
function pressJoint(event, frame, joints) {
  const button = event.target.closest(".joint");
  if (!button) return;
  if (event.detail === 0) { // by keyboard
    showGroups(Number(button.dataset.clusters));
    return;
  }
  const box = frame.getBoundingClientRect();
  const far = ({ x, y }) => Math.hypot(
    event.clientX - box.left - (x * box.width) / WIDE, event.clientY - box.top - y);
  showGroups(joints.reduce((a, b) => (far(b) < far(a) ? b : a)).clusters);
}

function leafRow({ group }) {
  const [image] = typicalImages(view, group, 1);
  const row = make("li", {}, pictureButton(image), groupLink(group),
    make("span", { class: "hint", text: view.sizes[group].toLocaleString("en") }));
  row.style.height = `${ROW}px`;
  return row;
}

function startDendrogram() {
  on("view", () => later("dendrogram", showDendrogram));
}

// What is further down the page may wait until the slider rests.
const waiting = new Map();
function later(what, work) {
  clearTimeout(waiting.get(what));
  waiting.set(what, setTimeout(work, 150));
}

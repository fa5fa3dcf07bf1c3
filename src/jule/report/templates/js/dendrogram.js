// The last merges: groups on the right, each with a picture; the joints lead to the left.

const MOST_LEAVES = 30;
const ROW = 46;
const WIDE = 1000;

function showDendrogram() {
  const wanted = shown === RUN_VIEW ? view.k : shown;
  const k = Math.min(MOST_LEAVES, Math.max(2, wanted), N);
  const root = N > 1 && TREE.roots === 1 ? branchesAbove(TREE, k) : null;
  if (!root || !root.node) {
    byId("merges").hidden = true;
    return;
  }
  byId("merges").hidden = false;
  const leaves = [];
  const joints = [];
  gather(root, leaves, joints);
  place(leaves, joints);
  byId("dendrogram").replaceChildren(
    branches(joints, leaves.length),
    make("ol", { class: "leaves" }, ...leaves.map(leafRow)));
}

// Without recursion: a tree of merges may be a long comb.
function gather(root, leaves, joints) {
  const open = [root];
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
    joint.groups = joints.length - rank; // so many are left after it
  });
}

function branches(joints, count) {
  const lines = [];
  const marks = [];
  for (const joint of joints) {
    const { x, y, left, right } = joint;
    lines.push(drawing("path", {
      d: `M${left.x} ${left.y}H${x}V${right.y}H${right.x}`, "vector-effect": "non-scaling-stroke",
    }));
    marks.push(mark(joint, x, y));
  }
  const root = joints[joints.length - 1];
  const stem = `M${root.x} ${root.y}H0`;
  lines.push(drawing("path", { d: stem, "vector-effect": "non-scaling-stroke" }));
  const height = count * ROW;
  const svg = drawing("svg", {
    viewBox: `0 0 ${WIDE} ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true",
  }, ...lines);
  const frame = make("div", { class: "branches" }, svg, ...marks);
  frame.style.height = `${height}px`;
  return frame;
}

function mark(joint, x, y) {
  const affinity = AFFINITIES[joint.node - N];
  const text = `Stop here: ${plural(joint.groups, "cluster")}`;
  const button = make("button", {
    type: "button", class: "joint", "aria-label": text,
    title: text + (affinity > 0 ? ` (affinity ${affinity.toPrecision(2)})` : ""),
    onclick: () => showGroups(joint.groups),
  });
  button.style.left = `${(100 * x) / WIDE}%`;
  button.style.top = `${y}px`;
  return button;
}

function leafRow(leaf) {
  const group = view.labels[leaf.leaf];
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

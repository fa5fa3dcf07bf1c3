// Branch numbers: a cluster keeps its number, colour and name while the slider moves. The same
// rule is in Python, in jule.forward.branches.branch_numbers.

// The node of every cluster of the run, given that the tree cut there is the run's labels.
function nodesOf(tree, labels) {
  const { n, merges, sizes } = tree;
  const k = clustersOf(tree, labels);
  const gone = new Uint8Array(sizes.length);
  for (let t = 0; t < 2 * (n - k); t++) gone[merges[t]] = 1;
  const nodes = new Array(countOf(labels)).fill(-1); // -1 of those that have no image in the tree
  for (let node = 0; node < 2 * n - k; node++) {
    if (!gone[node]) nodes[labels[sampleBelow(tree, node)]] = node;
  }
  return nodes;
}

function clustersOf(tree, labels) {
  return new Set(labels.subarray ? labels.subarray(0, tree.n) : labels).size;
}

function sampleBelow(tree, node) {
  while (node >= tree.n) node = tree.merges[2 * (node - tree.n)];
  return node;
}

// The number of every node. A cluster of the run has the number of its label. Above, a merge keeps
// the number of its larger part; below, the larger part of a split keeps it, and the other part
// gets the next number that was never used. Images of the shelf do not count.
function branchNumbers(tree, labels, shelf = -1) {
  const { n, merges } = tree;
  const sizes = shelf < 0 ? tree.sizes : sizesWithout(tree, labels, shelf);
  const nodes = nodesOf(tree, labels);
  const cut = n - clustersOf(tree, labels); // merges below the run's clusters
  const numbers = new Int32Array(sizes.length).fill(-1);
  nodes.forEach((node, label) => { if (node >= 0) numbers[node] = label; });
  for (let t = cut; 2 * t < merges.length; t++) {
    const [a, b] = [merges[2 * t], merges[2 * t + 1]];
    const first = sizes[a] > sizes[b] || (sizes[a] === sizes[b] && numbers[a] < numbers[b]);
    numbers[n + t] = numbers[first ? a : b];
  }
  for (let t = cut - 1; t >= 0; t--) {
    const [a, b] = [merges[2 * t], merges[2 * t + 1]];
    const first = sizes[a] > sizes[b] || (sizes[a] === sizes[b] && a < b);
    numbers[first ? a : b] = numbers[n + t];
    numbers[first ? b : a] = n - 1 - t;
  }
  return numbers;
}

function sizesWithout({ n, merges, sizes }, labels, shelf) {
  const counts = sizes.map((size, node) => (node < n && labels[node] !== shelf ? size : 0));
  for (let t = 0; 2 * t < merges.length; t++) {
    counts[n + t] = counts[merges[2 * t]] + counts[merges[2 * t + 1]];
  }
  return counts;
}

// The images of a cluster that leave it in one step down its branch: those below the smaller side
// of the last merge within it. Images that were put there by hand may come from anywhere in the
// tree, so that they do not count. The same rule is in Python, in jule.corrections.editor.
function smallerPart(tree, images, isDecided) {
  const open = images.filter((image) => !isDecided(image));
  const counted = open.length < 2 ? images : open;
  const { n, merges, sizes } = tree;
  const counts = new Int32Array(sizes.length);
  for (const image of counted) counts[image] = 1;
  for (let t = 0; 2 * t < merges.length; t++) {
    const [a, b] = [merges[2 * t], merges[2 * t + 1]];
    counts[n + t] = counts[a] + counts[b];
    if (counts[n + t] === counted.length && counts[a] && counts[b]) {
      const below = leavesBelow(tree, 2 * counts[a] >= counted.length ? b : a);
      return images.filter((image) => below.has(image));
    }
  }
  return []; // the tree never joins them
}

function leavesBelow(tree, top) {
  const leaves = new Set();
  const open = [top];
  while (open.length) {
    const node = open.pop();
    if (node < tree.n) leaves.add(node);
    else open.push(tree.merges[2 * (node - tree.n)], tree.merges[2 * (node - tree.n) + 1]);
  }
  return leaves;
}

// The merges above some nodes, drawn from left to right: { left, right, node, clusters } where two
// join, with the number that is left of `clusters` after it, and { group } for a node. Nodes
// without images are left out, and so are merges that no cut makes. Returns the trees that remain,
// usually one.
function mergesAbove(tree, nodes, sizes, clusters) {
  const { n, merges } = tree;
  const grown = new Array(tree.sizes.length);
  const tops = new Set();
  nodes.forEach((node, group) => {
    if (node < 0) return;
    grown[node] = sizes[group] ? { group } : "empty";
    if (sizes[group]) tops.add(grown[node]);
  });
  for (let t = 0; t < tree.allowed; t++) {
    const left = grown[merges[2 * t]];
    const right = grown[merges[2 * t + 1]];
    if (!left || !right) {
      grown[n + t] ||= left || right;
      continue;
    }
    clusters--;
    if (left === "empty" || right === "empty") {
      grown[n + t] = left === "empty" ? right : left;
      continue;
    }
    grown[n + t] = { left, right, node: n + t, clusters };
    tops.delete(left);
    tops.delete(right);
    tops.add(grown[n + t]);
  }
  return [...tops];
}

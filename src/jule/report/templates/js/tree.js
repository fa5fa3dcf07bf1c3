// The merge tree, cut at any number of clusters exactly as MergeTree.cut does it in Python.

// Exact copies share a cluster, so that there are at most as many as different images.
const DIFFERENT = COPIES ? COPIES.filter((original, image) => original === image).length : N;

const standIns = []; // of images that a server has added: the image of the tree near each
let NUMBERS = RUN.served?.numbers; // of the run's clusters; a server keeps them while it can
let K_RUN, TREE, AFFINITIES, RUN_NODES, BRANCHES, MOST_GROUPS, LEAST_GROUPS;
plant(typed("merges"), typed("affinities"), typed("sizes"));

// Take over the tree of the present labels.
function plant(merges, affinities, sizes) {
  K_RUN = NUMBERS?.length ?? countOf(LABELS);
  NUMBERS ||= [...Array(K_RUN).keys()].map((k) => (k === SUMMARY.shelf ? SHELF : k));
  TREE = growTree(LEAVES, merges, sizes);
  AFFINITIES = affinities;
  RUN_NODES = nodesOf(TREE, LABELS);
  const free = Math.max(...NUMBERS) + 1;
  BRANCHES = branchNumbers(TREE, LABELS)
    .map((branch) => (branch < K_RUN ? NUMBERS[branch] : free + branch - K_RUN));
  MOST_GROUPS = Math.min(DIFFERENT, Math.max(300, K_RUN));
  LEAST_GROUPS = Math.min(Math.max(1, TREE.roots), MOST_GROUPS);
}

// Values of the images of the tree, and of those that a server has added.
function withGuests(values) {
  if (!standIns.length) return values;
  const all = new values.constructor(N);
  all.set(values.subarray(0, LEAVES));
  standIns.forEach((image, i) => { all[LEAVES + i] = values[image]; });
  return all;
}

function countOf(labels) {
  return labels.reduce((most, label) => Math.max(most, label), 0) + 1;
}

// The sizes of nodes are given for the tree of a sample: they count all images of the run.
function growTree(n, merges, given = null) {
  const sizes = given || new Int32Array(n + merges.length / 2).fill(1);
  for (let t = 0; !given && 2 * t < merges.length; t++) {
    sizes[n + t] = sizes[merges[2 * t]] + sizes[merges[2 * t + 1]];
  }
  return { n, merges, sizes, total: given ? TOTAL : n, roots: n - merges.length / 2 };
}

// The run's own labels at its own number of clusters, and a cut of the tree at any other. Returns
// the cluster of every image, 0 .. k-1, and the tree node of every cluster.
function cutAt(k) {
  if (k === K_RUN) return { labels: LABELS.slice(), nodes: RUN_NODES };
  const { labels, nodes } = cutTree(TREE, k);
  return { labels: withGuests(labels), nodes };
}

function cutTree(tree, k, minSize = minSizeAt(tree.total, k)) {
  const { steps, size } = momentOf(tree, k, minSize);
  return labelsAfter(tree, steps, size);
}

function momentOf(tree, k, minSize) {
  if (minSize === 1 || tree.roots > 1) return { steps: tree.n - k, size: 1 };
  return lastMomentWith(tree, k, minSize);
}

function minSizeAt(n, k) {
  return SUMMARY.settings.min_cluster_size || defaultMinSize(n, k);
}

function defaultMinSize(n, k) {
  return Math.max(1, Math.ceil(n / (20 * k)));
}

function lastMomentWith(tree, k, size) {
  let possible = 1;
  let impossible = size + 1;
  while (impossible - possible > 1) {
    const tried = impossible > size ? size : (possible + impossible) >> 1;
    if (lastStepWith(tree, k, tried) < 0) impossible = tried;
    else possible = tried;
  }
  return { steps: lastStepWith(tree, k, possible), size: possible };
}

// The number of merges made when k clusters of minSize exist for the last time; -1 if never.
function lastStepWith(tree, k, minSize) {
  const { n, merges, sizes } = tree;
  let counting = 0;
  for (let i = 0; i < n; i++) counting += sizes[i] >= minSize;
  let last = counting >= k ? 0 : -1;
  for (let t = 0; 2 * t < merges.length; t++) {
    if (sizes[merges[2 * t]] >= minSize) counting--;
    if (sizes[merges[2 * t + 1]] >= minSize) counting--;
    if (sizes[n + t] >= minSize) counting++;
    if (counting >= k) last = t + 1;
  }
  return last;
}

// For every node, the largest cluster below it that counts; -1 where there is none.
function largestCountingBelow(tree, steps, minSize) {
  const { n, merges, sizes } = tree;
  const heir = new Int32Array(sizes.length).fill(-1);
  const gone = new Uint8Array(n + steps);
  for (let t = 0; t < 2 * steps; t++) gone[merges[t]] = 1;
  for (let node = 0; node < n + steps; node++) {
    if (!gone[node] && sizes[node] >= minSize) heir[node] = node;
  }
  for (let node = n + steps; node < sizes.length; node++) {
    const left = heir[merges[2 * (node - n)]];
    const right = heir[merges[2 * (node - n) + 1]];
    heir[node] = left < 0 || (right >= 0 && sizes[right] > sizes[left]) ? right : left;
  }
  return heir;
}

function labelsAfter(tree, steps, minSize) {
  const { n, merges, sizes } = tree;
  const heir = largestCountingBelow(tree, steps, minSize);
  const goesTo = heir.slice();
  for (let node = sizes.length - 1; node >= n; node--) {
    for (let side = 0; side < 2; side++) {
      const child = merges[2 * (node - n) + side];
      if (node < n + steps || heir[child] < 0) goesTo[child] = goesTo[node];
    }
  }
  const indices = new Int32Array(sizes.length).fill(-1);
  const labels = new Int32Array(n);
  const nodes = [];
  for (let sample = 0; sample < n; sample++) {
    const node = goesTo[sample];
    if (indices[node] < 0) indices[node] = nodes.push(node) - 1;
    labels[sample] = indices[node];
  }
  return { labels, nodes };
}

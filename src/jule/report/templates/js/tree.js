// The merge tree, cut at any number of clusters exactly as MergeTree.cut does it in Python.

// Exact copies share a cluster, so that there are at most as many as different images.
const DIFFERENT = COPIES ? COPIES.filter((original, image) => original === image).length : N;

const standIns = []; // of images that a server has added: the image of the tree near each
let NUMBERS = RUN.served?.numbers || SUMMARY.groups.map(({ number }) => number); // of all clusters
let NEXT_NUMBER = RUN.served?.next_number ?? SUMMARY.next_number; // the first one never used
let K_RUN, TREE, AFFINITIES, RUN_NODES, BRANCHES, MOST_GROUPS, LEAST_GROUPS;
plant(typed("merges"), typed("affinities"), typed("sizes"));

// Take over the tree of the present labels.
function plant(merges, affinities, sizes) {
  K_RUN = clustersOfRun();
  TREE = growTree(LEAVES, merges, sizes);
  AFFINITIES = affinities;
  RUN_NODES = nodesOf(TREE, LABELS);
  BRANCHES = branchNumbers(TREE, LABELS, NUMBERS.indexOf(SHELF)).map((branch) =>
    (branch < NUMBERS.length ? NUMBERS[branch] : NEXT_NUMBER + branch - NUMBERS.length));
  MOST_GROUPS = Math.min(DIFFERENT, Math.max(300, K_RUN));
  LEAST_GROUPS = Math.min(Math.max(1, TREE.roots), MOST_GROUPS);
}

// The shelf is not one of the clusters.
function clustersOfRun() {
  return NUMBERS.filter((number) => number !== SHELF).length;
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
  const shelf = NUMBERS.indexOf(SHELF);
  const { labels, nodes } = shelf < 0 ? cutTree(TREE, k) : cutBeside(k, shelf);
  return { labels: withGuests(labels), nodes };
}

// k clusters and the shelf, whose images stay together: the last one. As jule.joint.result does it.
function cutBeside(k, shelf) {
  const others = [...Array(TREE.n).keys()].filter((image) => LABELS[image] !== shelf);
  let clusters = k;
  for (;;) {
    const { labels, nodes } = cutTree(TREE, clusters);
    const kept = [...new Set(others.map((image) => labels[image]))].sort((a, b) => a - b);
    if (kept.length >= k || clusters >= DIFFERENT) {
      const places = new Map(kept.map((group, place) => [group, place]));
      return {
        labels: labels.map((group, image) =>
          (LABELS[image] === shelf ? kept.length : places.get(group))),
        nodes: [...kept.map((group) => nodes[group]), RUN_NODES[shelf]],
      };
    }
    clusters = Math.min(DIFFERENT, clusters + k - kept.length);
  }
}

// The numbers of the clusters of a cut. One that has a part of the shelf's branch is new.
function numbersOf(nodes) {
  const numbers = nodes.map((node) => BRANCHES[node]);
  if (!NUMBERS.includes(SHELF)) return numbers;
  let free = Math.max(NEXT_NUMBER - 1, ...numbers) + 1;
  const last = numbers.length - 1;
  return numbers.map((number, group) => (number === SHELF && group < last ? free++ : number));
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

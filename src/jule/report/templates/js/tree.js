// The merge tree of the run, and the clusters of the run at any number of them.

const standIns = []; // of images that a server has added: the image of the tree near each
let NUMBERS = RUN.served?.numbers || SUMMARY.groups.map(({ number }) => number); // of all clusters
let NEXT_NUMBER = RUN.served?.next_number ?? SUMMARY.next_number; // the first one never used
let K_RUN, TREE, AFFINITIES, RUN_NODES, BRANCHES, MOST_GROUPS, LEAST_GROUPS;
plant(typed("merges"), typed("affinities"), typed("sizes"), typed("fixed"));

// Take over the tree of the present labels.
function plant(merges, affinities, sizes, fixed) {
  K_RUN = clustersOfRun();
  TREE = growTree(LEAVES, merges, sizes, fixed);
  AFFINITIES = affinities;
  RUN_NODES = nodesOf(TREE, LABELS);
  BRANCHES = branchNumbers(TREE, LABELS, NUMBERS.indexOf(SHELF)).map((branch) =>
    (branch < NUMBERS.length ? NUMBERS[branch] : NEXT_NUMBER + branch - NUMBERS.length));
  MOST_GROUPS = Math.min(mostOf(TREE), Math.max(300, K_RUN));
  LEAST_GROUPS = Math.min(leastOf(TREE), MOST_GROUPS);
}

// The most clusters of a cut, without the shelf.
function mostOf(tree) {
  const shelf = NUMBERS.indexOf(SHELF);
  if (shelf < 0) return tree.different;
  const { labels } = cutTree(tree, tree.different, 1);
  return new Set(labels.filter((_, image) => LABELS[image] !== shelf)).size;
}

// The fewest clusters of a cut, without the shelf.
function leastOf(tree) {
  const shelf = NUMBERS.indexOf(SHELF);
  if (shelf < 0 || !K_RUN) return Math.max(1, tree.fewest);
  const { labels } = cutTree(tree, tree.fewest);
  return new Set(labels.filter((_, image) => LABELS[image] !== shelf)).size;
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
function growTree(n, merges, given = null, [together, forced] = [0, 0]) {
  const sizes = given || new Int32Array(n + merges.length / 2).fill(1);
  for (let t = 0; !given && 2 * t < merges.length; t++) {
    sizes[n + t] = sizes[merges[2 * t]] + sizes[merges[2 * t + 1]];
  }
  const roots = n - merges.length / 2;
  return {
    n, merges, sizes, together, forced, total: given ? TOTAL : n, different: n - together, roots,
    allowed: merges.length / 2 - forced, fewest: roots + forced,
  };
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
  let clusters = Math.max(k, TREE.fewest);
  for (;;) {
    const { labels, nodes } = cutTree(TREE, clusters);
    const kept = [...new Set(others.map((image) => labels[image]))].sort((a, b) => a - b);
    if (kept.length >= k || clusters >= TREE.different) {
      const places = new Map(kept.map((group, place) => [group, place]));
      return {
        labels: labels.map((group, image) =>
          (LABELS[image] === shelf ? kept.length : places.get(group))),
        nodes: [...kept.map((group) => nodes[group]), RUN_NODES[shelf]],
      };
    }
    clusters = Math.min(TREE.different, clusters + k - kept.length);
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

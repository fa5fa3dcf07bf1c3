// How the networks of an ensemble vote: their own clusters, matched with those that are shown.

const MEMBERS = [];
while (RUN.arrays[`member${MEMBERS.length}_merges`]) {
  MEMBERS.push(growTree(N, typed(`member${MEMBERS.length}_merges`)));
}

// For each network, the cluster in which it would put every image; -1 for none.
function votesFor(labels, k) {
  return MEMBERS.map((tree) => matched(cutTree(tree, k, defaultMinSize(N, k)).labels, labels, k));
}

// Pairs of clusters with the most images in common are matched first, one to one, as in Python.
function matched(own, labels, k) {
  const counts = new Map();
  for (let i = 0; i < N; i++) {
    const pair = own[i] * k + labels[i];
    counts.set(pair, (counts.get(pair) || 0) + 1);
  }
  const given = new Int32Array(k).fill(-1);
  const taken = new Uint8Array(k);
  const order = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a - b);
  for (const pair of order) {
    const cluster = Math.floor(pair / k);
    const other = pair % k;
    if (given[cluster] >= 0 || taken[other]) continue;
    given[cluster] = other;
    taken[other] = 1;
  }
  return own.map((cluster) => given[cluster]);
}

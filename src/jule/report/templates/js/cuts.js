// Cutting a merge tree at any number of clusters, exactly as MergeTree.cut does it in Python. No
// cut undoes its first merges, which join exact copies and what a person has put together, or makes
// its last ones, which join what a person keeps apart.

function cutTree(tree, k, minSize = minSizeAt(tree.total, k)) {
  const { steps, size } = momentOf(tree, k, minSize);
  return labelsAfter(tree, steps, size);
}

function momentOf(tree, k, minSize) {
  const clusters = Math.max(k, tree.fewest);
  if (minSize === 1 || tree.roots > 1 || clusters > tree.different) {
    return { steps: tree.n - clusters, size: 1 };
  }
  return lastMomentWith(tree, clusters, minSize);
}

function minSizeAt(n, k) {
  return SUMMARY.settings.min_cluster_size || defaultMinSize(n, k);
}

function defaultMinSize(n, k) {
  return Math.max(1, Math.ceil(n / (20 * Math.max(1, k)))); // k is 0 if all images are unsure
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

// The number of merges made when k clusters of minSize exist for the last time; -1 if never. The
// merges that keep clusters apart leave several trees: one without a cluster of that size counts
// once, because its images cannot go elsewhere.
function lastStepWith(tree, k, minSize) {
  const { n, merges, sizes, together, allowed } = tree;
  const root = rootsOf(tree);
  const counting = new Int32Array(sizes.length);
  let total = 0;
  for (let i = 0; i < n; i++) if (sizes[i] >= minSize) counting[root[i]]++;
  const least = tree.forced ? 1 : 0;
  for (let node = 0; node < n + allowed; node++) {
    if (root[node] === node) total += Math.max(least, counting[node]);
  }
  let last = total >= k ? 0 : -1;
  for (let t = 0; t < allowed; t++) {
    const own = root[n + t];
    total -= Math.max(least, counting[own]);
    if (sizes[merges[2 * t]] >= minSize) counting[own]--;
    if (sizes[merges[2 * t + 1]] >= minSize) counting[own]--;
    if (sizes[n + t] >= minSize) counting[own]++;
    total += Math.max(least, counting[own]);
    if (total >= k) last = t + 1;
  }
  return last >= together ? last : -1;
}

// The top of every node, by the merges that a cut may make.
function rootsOf(tree) {
  if (tree.root) return tree.root;
  const { n, merges, sizes, allowed } = tree;
  const root = Int32Array.from(sizes.keys());
  for (let t = allowed - 1; t >= 0; t--) {
    root[merges[2 * t]] = root[merges[2 * t + 1]] = root[n + t];
  }
  tree.root = root;
  return root;
}

// For every node, the largest cluster below it that counts; -1 where there is none.
function largestCountingBelow(tree, steps, minSize) {
  const { n, merges, sizes, allowed } = tree;
  const heir = new Int32Array(sizes.length).fill(-1);
  const gone = new Uint8Array(n + steps);
  for (let t = 0; t < 2 * steps; t++) gone[merges[t]] = 1;
  for (let node = 0; node < n + steps; node++) {
    if (!gone[node] && sizes[node] >= minSize) heir[node] = node;
  }
  for (let node = n + steps; node < n + allowed; node++) {
    const left = heir[merges[2 * (node - n)]];
    const right = heir[merges[2 * (node - n) + 1]];
    heir[node] = left < 0 || (right >= 0 && sizes[right] > sizes[left]) ? right : left;
  }
  return heir;
}

function labelsAfter(tree, steps, minSize) {
  const { n, merges, sizes, allowed } = tree;
  const heir = largestCountingBelow(tree, steps, minSize);
  const goesTo = heir.slice();
  for (let node = n + allowed - 1; node >= 0; node--) {
    if (goesTo[node] < 0) goesTo[node] = node; // the top of a tree without a cluster that counts
    for (let side = 0; node >= n && side < 2; side++) {
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

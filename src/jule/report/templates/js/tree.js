// The merge tree, cut at any number of groups: step by step what MergeTree.cut does in Python.

const TREE = growTree(N, typed("merges"));
const AFFINITIES = typed("affinities");

function growTree(n, merges) {
  const sizes = new Int32Array(n + merges.length / 2).fill(1);
  for (let t = 0; 2 * t < merges.length; t++) {
    sizes[n + t] = sizes[merges[2 * t]] + sizes[merges[2 * t + 1]];
  }
  return { n, merges, sizes, roots: n - merges.length / 2 };
}

function defaultMinSize(n, k) {
  return SUMMARY.settings.min_cluster_size || Math.max(1, Math.ceil(n / (20 * k)));
}

// How many merges were made when, for the last time, k groups hold minSize; -1 if never.
function lastStepWith(tree, k, minSize) {
  const { n, merges, sizes } = tree;
  let counting = minSize <= 1 ? n : 0;
  let last = counting >= k ? 0 : -1;
  for (let t = 0; 2 * t < merges.length; t++) {
    if (sizes[merges[2 * t]] >= minSize) counting--;
    if (sizes[merges[2 * t + 1]] >= minSize) counting--;
    if (sizes[n + t] >= minSize) counting++;
    if (counting >= k) last = t + 1;
  }
  return last;
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

function momentOf(tree, k) {
  const minSize = defaultMinSize(tree.n, k);
  if (minSize === 1 || tree.roots > 1) return { steps: tree.n - k, size: 1 };
  return lastMomentWith(tree, k, minSize);
}

// For every node, the largest group below it that counts; -1 where there is none.
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
  const numbers = new Int32Array(sizes.length).fill(-1);
  const labels = new Int32Array(n);
  let count = 0;
  for (let sample = 0; sample < n; sample++) {
    const group = goesTo[sample];
    if (numbers[group] < 0) numbers[group] = count++;
    labels[sample] = numbers[group];
  }
  return labels;
}

function cutTree(tree, k) {
  const { steps, size } = momentOf(tree, k);
  return labelsAfter(tree, steps, size);
}

// The merges above a cut as { left, right, node }, groups as { leaf: first sample below }.
function branchesAbove(tree, k) {
  const { n, merges } = tree;
  const { steps, size } = momentOf(tree, k);
  const heir = largestCountingBelow(tree, steps, size);
  const grown = new Map();
  for (let node = 0; node < n + steps; node++) {
    if (heir[node] === node) grown.set(node, { leaf: firstSampleBelow(tree, node) });
  }
  for (let node = n + steps; node < tree.sizes.length; node++) {
    const left = grown.get(merges[2 * (node - n)]);
    const right = grown.get(merges[2 * (node - n) + 1]);
    if (left && right) grown.set(node, { left, right, node });
    else if (left || right) grown.set(node, left || right);
  }
  return grown.get(tree.sizes.length - 1);
}

function firstSampleBelow(tree, node) {
  while (node >= tree.n) node = tree.merges[2 * (node - tree.n)];
  return node;
}

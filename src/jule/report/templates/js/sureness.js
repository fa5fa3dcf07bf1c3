// How sure the images are, for any clusters, by the rule of jule.forward.assign: the share of an
// image's affinity, to and from its neighbours, that is in its own cluster, relative to the size of
// the cluster by as much as the neighbours before learning do not show the clusters.

const PER_NEIGHBOR = 3; // images of a cluster, for each neighbour that counts
const TINY = 20; // how many times smaller than the mean a tiny cluster is
const DISTRUST = 4; // how steeply the learned neighbours lose weight where those before disagree
const AGREEMENT = MEMBERS.length ? 1 / 3 : 0; // of the networks of an ensemble
const FULL = 65_535; // of the run's confidence
const AFFINITY = Float64Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);

// What the neighbours on this page do not tell of the run's confidence: a page of many images has
// only the nearest of them. Added to whatever is computed here, so that nothing jumps.
let unexplained = new Float32Array(N);

// The confidence in clusters, and what it follows from: the share of an image's affinity within its
// cluster, how much each kind of neighbours counts, and how many neighbours of every image do.
function confidenceIn(labels, votes) {
  if (!NEAR) {
    const sure = new Float32Array(N).fill(1);
    return { sure, inside: sure, shares: [], counting: null };
  }
  const sizes = sizesOf(labels);
  const counting = countingNeighbors(labels, sizes);
  const q = borneOut(labels);
  const weights = graphShares(q);
  const inside = new Float32Array(N);
  GRAPHS.forEach((graph, kind) => {
    const fractions = fractionsInside(graph, labels, counting);
    for (let i = 0; i < N; i++) inside[i] += weights[kind] * fractions[i];
  });
  const sure = relativeToSize(inside, labels, sizes, q);
  const shares = weights.map((weight) => weight * (1 - AGREEMENT));
  if (votes.length) [inside, sure].forEach((found) => addVotes(found, labels, votes));
  return { sure, inside, shares, counting };
}

function fractionsInside(graph, labels, counting) {
  const { own, all } = affinities(graph, labels, counting);
  return own.map((part, i) =>
    (all[i] > 0 ? Math.min(1, part / all[i]) : countedAlike(graph, labels, i)));
}

function addVotes(found, labels, votes) {
  for (let i = 0; i < N; i++) found[i] *= 1 - AGREEMENT;
  for (const vote of votes) {
    for (let i = 0; i < N; i++) found[i] += AGREEMENT * (vote[i] === labels[i]) / votes.length;
  }
}

function sizesOf(labels) {
  const sizes = new Int32Array(countOf(labels));
  for (let i = 0; i < N; i++) sizes[labels[i]] += COUNTS ? COUNTS[i] : 1;
  return sizes;
}

// Shrink shares in clusters larger than the mean, and raise their odds in smaller ones. Clusters of
// one image, and tiny ones, do not count for the mean.
function relativeToSize(shares, labels, sizes, q) {
  const all = sizes.reduce((sum, size) => sum + size, 0);
  const count = sizes.filter((size) => size > 0).length;
  const least = Math.max(2, Math.ceil(all / (TINY * count)));
  const mean = all / Math.max(1, sizes.filter((size) => size >= least).length);
  const factors = Float64Array.from(sizes, (size) => (mean / size) ** (1 - q));
  return shares.map((share, i) => {
    const scaled = share * factors[labels[i]];
    return sizes[labels[i]] > mean ? scaled : scaled / (scaled + (1 - share));
  });
}

// At most a third as many neighbours count for an image as its cluster has images.
function countingNeighbors(labels, sizes) {
  const most = sizes.map((size) => Math.min(NEAR, Math.max(1, Math.floor(size / PER_NEIGHBOR))));
  return Int32Array.from(labels, (label) => most[label]);
}

// The affinity of every image, all of it and that within its cluster. What comes from images that
// are not on the page is not known, so that of a sample only that to neighbours counts.
function affinities({ near, codes }, labels, counting) {
  const own = new Float64Array(N);
  const all = new Float64Array(N);
  for (let i = 0; i < N; i++) {
    for (let j = i * NEAR; j < i * NEAR + counting[i]; j++) {
      const weight = AFFINITY[codes[j]];
      const isOwn = labels[near[j]] === labels[i] ? weight : 0;
      all[i] += weight;
      own[i] += isOwn;
      if (IS_SAMPLE) continue;
      all[near[j]] += weight;
      own[near[j]] += isOwn;
    }
  }
  return { own, all };
}

function countedAlike({ near }, labels, image) {
  let inside = 0;
  for (let j = image * NEAR; j < (image + 1) * NEAR; j++) {
    inside += labels[near[j]] === labels[image];
  }
  return inside / NEAR;
}

// How much the neighbours as learned count, and those before learning.
function graphShares(q) {
  return GRAPHS.length === 1 ? [1] : [q ** DISTRUST, 1 - q ** DISTRUST];
}

// How far the neighbours before learning show the clusters that the learned ones show, 0 to 1.
function borneOut(labels) {
  if (GRAPHS.length === 1) return 1;
  const [learned, given] = GRAPHS.map((graph) => modularity(graph, labels));
  return learned > 0 ? Math.min(1, Math.max(0, given / learned)) : 0;
}

function modularity({ near, codes }, labels) {
  const from = new Float64Array(countOf(labels));
  const to = new Float64Array(from.length);
  let [inside, all] = [0, 0];
  for (let i = 0; i < N; i++) {
    for (let j = i * NEAR; j < (i + 1) * NEAR; j++) {
      const weight = AFFINITY[codes[j]];
      from[labels[i]] += weight;
      to[labels[near[j]]] += weight;
      if (labels[near[j]] === labels[i]) inside += weight;
      all += weight;
    }
  }
  if (!all) return 0;
  return inside / all - from.reduce((sum, mass, k) => sum + mass * to[k], 0) / all ** 2;
}

// To be called when the run's confidence in its own clusters has arrived. What a person decided is
// sure whatever the neighbours say, so there is nothing to explain.
function explain() {
  const { sure } = confidenceIn(LABELS, votesFor(LABELS, NUMBERS.length));
  unexplained = sure.map((value, i) => (BY_HAND?.[i] ? 0 : CONFIDENCE[i] / FULL - value));
}

// The other cluster with most affinity of an image, or votes of networks, and its share; -1 if
// there is none.
function otherGroup(view, image) {
  const found = new Map();
  const add = (group, share) => {
    if (group >= 0 && !isShelf(group)) found.set(group, (found.get(group) || 0) + share);
  };
  GRAPHS.forEach((graph, kind) => {
    const edges = edgesOf(view, graph, image);
    const all = edges.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [other, weight] of edges) {
      add(view.labels[other], view.shares[kind] * (all ? weight / all : 1 / edges.length));
    }
  });
  for (const vote of view.votes) add(vote[image], AGREEMENT / view.votes.length);
  found.delete(view.labels[image]);
  let best = -1;
  for (const [group, share] of found) if (best < 0 || share > found.get(best)) best = group;
  return { group: best, share: best < 0 ? 0 : found.get(best) };
}

// The images that an image has affinity to or from, with the affinity.
function edgesOf(view, graph, image) {
  const { near, codes } = graph;
  const edges = [];
  for (let j = image * NEAR; j < image * NEAR + (view.counting?.[image] ?? 0); j++) {
    edges.push([near[j], AFFINITY[codes[j]]]);
  }
  if (IS_SAMPLE || !NEAR) return edges;
  graph.into ||= edgesInto(near);
  const { starts, places } = graph.into;
  for (let at = starts[image]; at < starts[image + 1]; at++) {
    const from = Math.floor(places[at] / NEAR);
    if (places[at] % NEAR < view.counting[from]) edges.push([from, AFFINITY[codes[places[at]]]]);
  }
  return edges;
}

// For every image, the places in a table of neighbours where it is one.
function edgesInto(near) {
  const starts = new Int32Array(N + 1);
  for (const image of near) starts[image + 1]++;
  for (let i = 0; i < N; i++) starts[i + 1] += starts[i];
  const next = starts.slice();
  const places = new Int32Array(near.length);
  near.forEach((image, place) => { places[next[image]++] = place; });
  return { starts, places };
}

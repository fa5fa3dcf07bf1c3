// What follows from the labels of all images: sizes, how sure, what is typical, what is near.

const TYPICAL = 12;
const DOUBTFUL = 6;
const NEAREST = 3;

function describe(labels, confidence, k) {
  const counts = new Int32Array(k); // of images on the page
  const sizes = new Int32Array(k); // of images in the run
  const sureness = new Float64Array(k);
  for (let i = 0; i < N; i++) {
    counts[labels[i]]++;
    sizes[labels[i]] += COUNTS ? COUNTS[i] : 1;
    sureness[labels[i]] += confidence[i];
  }
  for (let group = 0; group < k; group++) sureness[group] /= Math.max(1, counts[group]);
  const view = { k, labels, confidence, counts, sizes, sureness };
  view.members = membersOf(view);
  view.centres = centresOf(view);
  return view;
}

// Keeps the images of every cluster side by side in one array.
function membersOf({ k, labels, counts }) {
  const starts = new Int32Array(k + 1);
  for (let group = 0; group < k; group++) starts[group + 1] = starts[group] + counts[group];
  const next = starts.slice();
  const all = new Int32Array(N);
  for (let i = 0; i < N; i++) all[next[labels[i]]++] = i;
  return (group) => all.subarray(starts[group], starts[group + 1]);
}

function centresOf({ k, labels, counts }) {
  const centres = new Float64Array(k * AXES);
  for (let i = 0; i < N; i++) {
    const to = labels[i] * AXES;
    for (let axis = 0; axis < AXES; axis++) centres[to + axis] += COORDS[i * AXES + axis];
  }
  for (let group = 0; group < k; group++) {
    for (let axis = 0; axis < AXES; axis++) centres[group * AXES + axis] /= counts[group] || 1;
  }
  return centres;
}

// The squared distance of every image from the centre of its cluster.
function distances(view) {
  if (!view.far) {
    view.far = new Float32Array(N);
    for (let i = 0; i < N; i++) {
      const centre = view.labels[i] * AXES;
      let sum = 0;
      for (let axis = 0; axis < AXES; axis++) {
        const gap = COORDS[i * AXES + axis] - view.centres[centre + axis];
        sum += gap * gap;
      }
      view.far[i] = sum;
    }
  }
  return view.far;
}

// Orders: nearest to the centre first; least sure first, then farthest from the centre.
function byTypical(view) {
  const far = distances(view);
  return (a, b) => far[a] - far[b] || a - b;
}

function byDoubt(view) {
  const far = distances(view);
  const sure = view.confidence;
  return (a, b) => sure[a] - sure[b] || far[b] - far[a] || a - b;
}

// The first few in an order, without sorting all of them.
function firstFew(images, count, compare) {
  const few = [];
  for (const image of images) {
    if (few.length === count && compare(image, few[count - 1]) >= 0) continue;
    let at = few.length;
    while (at > 0 && compare(image, few[at - 1]) < 0) at--;
    few.splice(at, 0, image);
    if (few.length > count) few.pop();
  }
  return few;
}

// The lists of the run are shown where there are any, so that page and report.json agree. They are
// empty for a cluster of images that a server has added to the page.
function typicalImages(view, group, count) {
  const listed = view.lists(group)?.typical;
  if (listed?.length && count <= TYPICAL) return listed.slice(0, count);
  return firstFew(view.members(group), count, byTypical(view));
}

// The first few of some images in the order of their distance from the mean of them.
function nearestToMean(images, count) {
  const far = new Float64Array(images.length);
  for (let axis = 0; axis < AXES; axis++) {
    const values = images.map((image) => COORDS[image * AXES + axis]);
    const mean = values.reduce((sum, value) => sum + value, 0) / images.length;
    values.forEach((value, i) => { far[i] += (value - mean) ** 2; });
  }
  return firstFew(images.keys(), count, (a, b) => far[a] - far[b] || a - b)
    .map((place) => images[place]);
}

// All images of a cluster, the most typical first.
function allImages(view, group) {
  const first = typicalImages(view, group, TYPICAL);
  const rest = [...view.members(group)].filter((image) => !first.includes(image));
  return [...first, ...rest.sort(byTypical(view))];
}

// The least sure images that are not among the typical ones, without what a person decided.
function borderImages(view, group) {
  const listed = view.lists(group)?.doubtful;
  if (listed) return listed;
  const typical = typicalImages(view, group, TYPICAL);
  const open = view.members(group).filter((image) => !isDecided(image));
  return firstFew(open, TYPICAL + DOUBTFUL, byDoubt(view))
    .filter((image) => !typical.includes(image)).slice(0, DOUBTFUL);
}

function groupSureness(view, group) {
  return view.lists(group)?.sureness ?? view.sureness[group];
}

// The clusters whose centres are nearest; the shelf is not one of them.
function nearestGroups(view, group, count) {
  const listed = view.lists(group)?.nearest;
  const isOther = (other) => other !== group && view.sizes[other] && view.branches[other] !== SHELF;
  if (listed && count <= NEAREST) return listed.filter(isOther);
  const far = [];
  for (let other = 0; other < view.k; other++) {
    if (!isOther(other)) continue;
    let sum = 0;
    for (let axis = 0; axis < AXES; axis++) {
      const gap = view.centres[group * AXES + axis] - view.centres[other * AXES + axis];
      sum += gap * gap;
    }
    far.push([sum, other]);
  }
  return far.sort((a, b) => a[0] - b[0]).slice(0, count).map(([, other]) => other);
}

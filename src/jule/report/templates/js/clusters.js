// Labels of all images, and what follows from them: sizes, sureness, who is typical, who is near.

function describe(labels, confidence) {
  let k = 0;
  for (let i = 0; i < N; i++) if (labels[i] >= k) k = labels[i] + 1;
  const sizes = new Int32Array(k);
  const sureness = new Float64Array(k);
  for (let i = 0; i < N; i++) {
    sizes[labels[i]]++;
    sureness[labels[i]] += confidence[i];
  }
  for (let group = 0; group < k; group++) sureness[group] /= Math.max(1, sizes[group]);
  const view = { k, labels, confidence, sizes, sureness };
  view.members = membersOf(view);
  view.centres = centresOf(view);
  return view;
}

// The images of every group, side by side in one array, and where each group begins.
function membersOf({ k, labels, sizes }) {
  const starts = new Int32Array(k + 1);
  for (let group = 0; group < k; group++) starts[group + 1] = starts[group] + sizes[group];
  const next = starts.slice();
  const all = new Int32Array(N);
  for (let i = 0; i < N; i++) all[next[labels[i]]++] = i;
  return (group) => all.subarray(starts[group], starts[group + 1]);
}

function centresOf({ k, labels, sizes }) {
  const centres = new Float64Array(k * AXES);
  for (let i = 0; i < N; i++) {
    const to = labels[i] * AXES;
    for (let axis = 0; axis < AXES; axis++) centres[to + axis] += COORDS[i * AXES + axis];
  }
  for (let group = 0; group < k; group++) {
    for (let axis = 0; axis < AXES; axis++) centres[group * AXES + axis] /= sizes[group] || 1;
  }
  return centres;
}

// The share of an image's neighbours that are in its own group.
function neighborShare(labels) {
  const share = new Float32Array(N).fill(1);
  if (!NEAR) return share;
  for (let i = 0; i < N; i++) {
    let inside = 0;
    for (let j = i * NEAR; j < (i + 1) * NEAR; j++) inside += labels[NEIGHBORS[j]] === labels[i];
    share[i] = inside / NEAR;
  }
  return share;
}

// How far every image is from the centre of its group, squared.
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

// Nearest the centre first; least sure, then farthest from the centre, first.
function byTypical(view) {
  const far = distances(view);
  return (a, b) => far[a] - far[b] || a - b;
}

function byDoubt(view) {
  const far = distances(view);
  const sure = view.confidence;
  return (a, b) => sure[a] - sure[b] || far[b] - far[a] || a - b;
}

// The first few in an order, without sorting all.
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

function typicalImages(view, group, count) {
  return firstFew(view.members(group), count, byTypical(view));
}

function doubtfulImages(view, group, count) {
  return firstFew(view.members(group), count, byDoubt(view));
}

function nearestGroups(view, group, count) {
  const far = [];
  for (let other = 0; other < view.k; other++) {
    if (other === group || !view.sizes[other]) continue;
    let sum = 0;
    for (let axis = 0; axis < AXES; axis++) {
      const gap = view.centres[group * AXES + axis] - view.centres[other * AXES + axis];
      sum += gap * gap;
    }
    far.push([sum, other]);
  }
  return far.sort((a, b) => a[0] - b[0]).slice(0, count).map(([, other]) => other);
}

// The other group that most neighbours of an image belong to, and their share; -1 if none does.
function otherGroup(view, image) {
  const counts = new Map();
  for (let j = image * NEAR; j < (image + 1) * NEAR; j++) {
    const group = view.labels[NEIGHBORS[j]];
    if (group !== view.labels[image]) counts.set(group, (counts.get(group) || 0) + 1);
  }
  let best = -1;
  for (const [group, count] of counts) if (best < 0 || count > counts.get(best)) best = group;
  return { group: best, share: best < 0 ? 0 : counts.get(best) / NEAR };
}

// Near-duplicates and bursts: a stack is shown as one picture, the best of it, with their number.

const STACKS = typed("stacks"); // the image on top of each one's stack; null without stacks
const inStack = new Map(); // by the image on top: all images of its stack, the best first
let stacked = true;

if (STACKS) {
  for (let i = 0; i < N; i++) {
    if (STACKS[i] === i) continue;
    if (!inStack.has(STACKS[i])) inStack.set(STACKS[i], [STACKS[i]]);
    inStack.get(STACKS[i]).push(i);
  }
}

// All images of the stack of an image that are in its cluster.
function stackOf(image) {
  const all = STACKS ? inStack.get(STACKS[image]) || [image] : [image];
  return all.filter((other) => view.labels[other] === view.labels[image]);
}

// Of some images of a cluster, those that are on top of their stacks.
function topsOf(images) {
  return STACKS ? images.filter((image) => stackOf(image)[0] === image) : images;
}

// The picture of a whole stack: selecting it selects all of it.
function stackButton(image) {
  const button = pictureButton(image);
  const { length } = stackOf(image);
  if (length === 1) return button;
  button.dataset.stack = length;
  button.setAttribute("aria-label", `${nameOf(image)} and ${length - 1} like it`);
  return button;
}

// Choose between stacks and single pictures; nothing where there are no stacks.
function stackChoice(images, whenChosen) {
  if (topsOf(images).length === images.length) return null;
  return make("button", {
    type: "button", text: "Stacks", "aria-pressed": String(stacked),
    title: "Show near-duplicates as one picture",
    onclick: () => {
      stacked = !stacked;
      whenChosen();
    },
  });
}

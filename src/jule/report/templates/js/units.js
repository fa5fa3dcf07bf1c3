// Images that are never parted: exact copies, and those that belong together. And those that are
// always parted, because they do not belong together.

const COPIED = new Set(COPIES ? COPIES.filter((original, image) => original !== image) : []);

// All images of the units of some images.
function unitOf(images) {
  const together = new Set(withCopies(images));
  const open = linksHere().filter(({ edit }) => edit === "must-link");
  for (let at = 0; at < open.length; at++) {
    if (!open[at].images.some((image) => together.has(image))) continue;
    for (const image of withCopies(open[at].images)) together.add(image);
    open.splice(at, 1);
    at = -1; // what was passed over may be joined now
  }
  return together;
}

function withCopies(images) {
  if (!COPIES) return images;
  const originals = new Set(images.map((image) => COPIES[image]));
  if (![...originals].some((image) => COPIED.has(image))) return images;
  return [...COPIES.keys()].filter((image) => originals.has(COPIES[image]));
}

// The first image of a unit stands for it.
function firstOfUnit(image) {
  const linked = linksHere().some(({ edit, images }) =>
    edit === "must-link" && images.some((other) => originalOf(other) === originalOf(image)));
  return linked ? Math.min(...unitOf([image])) : originalOf(image);
}

function originalOf(image) {
  return COPIES ? COPIES[image] : image;
}

// Two images that do not belong together and would be in one cluster, in words; empty if there are
// none.
function apartIn(isInside) {
  for (const { edit, images, others } of linksHere()) {
    if (edit !== "cannot-link") continue;
    const [one, other] = [images.find(isInside), others.find(isInside)];
    if (one !== undefined && other !== undefined) {
      return `${nameOf(one)} and ${nameOf(other)} do not belong together (a cannot-link): remove `
        + "that link first";
    }
  }
  return "";
}

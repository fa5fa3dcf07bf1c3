// Images that are more like another cluster than their own; exact copies.

const DOUBTS_SHOWN = 36;
const COPIES_SHOWN = 60;

function showDoubts() {
  const { count, tiles } = shown === K_RUN && CONFIDENCE ? doubtsOfRun() : doubtsOfCut();
  byId("doubts-hint").textContent = doubtsSaid(count);
  byId("doubt-tiles").replaceChildren(...tiles.map(([image, other]) => doubtTile(image, other)));
}

function doubtsSaid(count) {
  const own = count === 1 ? "its own" : "their own";
  const order = count > 1 ? "; the least sure come first" : "";
  return count
    ? `${plural(count, "image is", "images are")} more like another cluster than ${own}`
      + ` (${whatCounts(count)})${order}.`
    : "No image is more like another cluster than its own.";
}

// Of the run's own clusters, those that the run lists, without what was moved since.
function doubtsOfRun() {
  const open = SUMMARY.doubts.filter(({ image, looks_like }) =>
    !isDecided(image) && view.sizes[looks_like]);
  const count = SUMMARY.n_doubts - SUMMARY.doubts.length + open.length;
  const tiles = open.slice(0, DOUBTS_SHOWN).map(({ image, looks_like }) => [image, looks_like]);
  return { count, tiles };
}

function doubtsOfCut() {
  const found = [];
  for (let i = 0; i < N; i++) {
    if (isDecided(i) || view.inside[i] >= 0.5) continue; // no other has more than half
    if (otherGroup(view, i).share > view.inside[i]) found.push(i);
  }
  const tiles = firstFew(found, DOUBTS_SHOWN, byDoubt(view))
    .map((image) => [image, otherGroup(view, image).group]);
  return { count: found.length, tiles };
}

function doubtTile(image, other) {
  const own = view.labels[image];
  return make("div", { class: "doubt" }, pictureButton(image),
    make("p", {}, "in ", groupLink(own), make("br"), "like ", groupLink(other)),
    make("button", {
      type: "button", class: "quiet", text: "Move", disabled: !canEdit(),
      "aria-label": `Move ${nameOf(image)} to ${groupName(other)}`,
      onclick: () => moveImages([image], other),
    }));
}

function showCopies() {
  const copies = SUMMARY.duplicates;
  byId("duplicates").hidden = !copies.length;
  if (!copies.length) return;
  const numbers = new Map();
  for (let i = N - 1; i >= 0; i--) numbers.set(nameOf(i), i);
  const rows = copies.slice(0, COPIES_SHOWN).map((paths) => {
    const image = paths.map((path) => numbers.get(path)).find((number) => number !== undefined);
    return make("li", {}, ...(image === undefined ? [] : [pictureButton(image)]),
      make("span", { text: paths.slice(0, 12).join(" = ") + (paths.length > 12 ? " = …" : "") }));
  });
  byId("duplicate-groups").replaceChildren(make("ul", { class: "copies" }, ...rows));
  if (copies.length > COPIES_SHOWN) {
    const rest = (copies.length - COPIES_SHOWN).toLocaleString("en");
    const text = `and ${rest} more, in report.json`;
    byId("duplicate-groups").append(make("p", { class: "hint", text }));
  }
}

function startDoubts() {
  showCopies();
  on("view", () => later("doubts", showDoubts));
  on("names", () => later("doubts", showDoubts));
}

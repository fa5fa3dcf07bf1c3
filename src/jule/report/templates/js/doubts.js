// Images whose neighbours are in another cluster; files that are copies of each other.

const DOUBTS_SHOWN = 36;
const COPIES_SHOWN = 60;

function showDoubts() {
  const misplaced = [];
  for (let i = 0; i < N; i++) {
    if (view.confidence[i] < 0.5 && otherGroup(view, i).share >= 0.5) misplaced.push(i);
  }
  const tiles = firstFew(misplaced, DOUBTS_SHOWN, byDoubt(view));
  byId("doubts-hint").textContent = misplaced.length
    ? `${plural(misplaced.length, "image")} with most neighbours in another cluster, `
      + "the least sure first."
    : "No image has most of its neighbours in another cluster.";
  byId("doubt-tiles").replaceChildren(
    ...tiles.map((image) => doubtTile(image, otherGroup(view, image).group)));
}

function doubtTile(image, other) {
  const own = view.labels[image];
  return make("div", { class: "doubt" }, pictureButton(image),
    make("p", {}, "in ", groupLink(own), make("br"), "like ", groupLink(other)),
    make("button", {
      type: "button", class: "quiet", text: "Move",
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

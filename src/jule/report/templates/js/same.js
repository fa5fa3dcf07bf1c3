// "Probably the same?": pairs of clusters, the most likely first, confirmed or refused with a key.

const SAME_SHOWN = 8; // pictures of each cluster
const same = { pairs: [], open: false, waiting: false, skipped: new Set(), refused: new Set() };

// The pairs that are still open, as clusters of the view.
function openPairs() {
  if (shown !== K_RUN) return [];
  const found = server ? server.pairs : SUMMARY.same.map(({ cluster, other }) =>
    ({ cluster: NUMBERS[cluster], other: NUMBERS[other] }));
  const places = new Map(view.branches.map((branch, group) => [branch, group]));
  return found
    .filter(({ cluster, other }) => {
      const pair = pairOf(cluster, other);
      return ![refused, same.refused, same.skipped].some((pairs) => pairs.has(pair));
    })
    .map(({ cluster, other }) => [places.get(cluster), places.get(other)])
    .filter((pair) => pair.every((group) => group !== undefined && view.sizes[group]));
}

function showSame() {
  same.waiting = false;
  same.pairs = openPairs();
  byId("same-open").hidden = !same.pairs.length && !same.open;
  byId("same-open").textContent = same.open ? "Close" : "Probably the same?";
  byId("same-open").setAttribute("aria-expanded", same.open);
  byId("same").hidden = !same.open;
  if (!same.open) return;
  if (!same.pairs.length) {
    byId("same-pair").replaceChildren(make("p", { text: "No pair is left." }));
    return;
  }
  const [group, other] = same.pairs[0];
  byId("same-pair").replaceChildren(sameSide(group), sameSide(other));
}

function sameSide(group) {
  const side = make("div", { class: "same-side" },
    make("p", {}, groupLink(group), " ",
      make("span", { class: "hint", text: sizeText(group) })),
    pictureGrid(typicalImages(view, group, SAME_SHOWN)));
  side.style.setProperty("--colour", groupColour(group));
  return side;
}

function answerSame(answer) {
  const [pair] = same.pairs;
  if (!same.open || !pair || same.waiting) return;
  const key = pairOf(...pair.map((group) => view.branches[group]));
  if (answer === "y") {
    same.waiting = true; // what the next pair is depends on it
    mergeGroups(...pair);
    return;
  }
  if (answer === "n") {
    if (server) same.refused.add(key); // until its suggestions leave it out
    refuseGroups(...pair);
  } else {
    same.skipped.add(key);
  }
  showSame();
}

function toggleSame(open) {
  same.open = open;
  same.skipped.clear();
  showSame();
  if (open) byId("same").focus({ preventScroll: true });
}

function startSame() {
  byId("same-open").addEventListener("click", () => toggleSame(!same.open));
  for (const button of byId("same-answers").querySelectorAll("button")) {
    button.addEventListener("click", () => answerSame(button.dataset.answer));
  }
  addEventListener("keydown", (event) => {
    const other = event.ctrlKey || event.metaKey || event.altKey || isTyping(event);
    if (!same.open || other || document.querySelector("dialog[open]")) return;
    if (["y", "n", "s"].includes(event.key.toLowerCase())) answerSame(event.key.toLowerCase());
  });
  on("view", showSame);
  on("names", showSame);
}

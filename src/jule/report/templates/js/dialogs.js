// All images of a cluster; one image and its neighbours.

const AT_ONCE = 300;
const NEAREST_SHOWN = 8;

function openGroup(group) {
  const dialog = byId("group-dialog");
  const typical = allImages(view, group);
  const isAll = !IS_SAMPLE || Boolean(server?.contents && shown === K_RUN);
  const grid = make("div", { class: "pictures all" });
  const more = make("div", { class: "more" });
  const count = (isAll ? "" : `${typical.length.toLocaleString("en")} of `) + sizeText(group);
  const head = dialogHead("group-dialog-title", groupName(group), groupColour(group),
    `${count}, the most typical first · ${percent(groupSureness(view, group))} of their neighbours`
      + " are in this cluster");
  const choice = stackChoice(typical, () => openGroup(group));
  if (choice) head.querySelector(".close").before(choice);
  head.querySelector(".close").before(pickButton());
  dialog.replaceChildren(head, make("div", { class: "dialog-body" }, grid, more));
  if (IS_SAMPLE && isAll) server.contents(group, grid, more);
  else if (choice && stacked) fillInParts(grid, more, topsOf(typical), stackButton);
  else fillInParts(grid, more, typical, pictureButton);
  openDialog(dialog);
}

// A large cluster is added part by part while the dialog is scrolled.
function fillInParts(grid, more, images, button) {
  let done = 0;
  const add = () => {
    grid.append(...images.slice(done, done + AT_ONCE).map((image) => button(image)));
    done += AT_ONCE;
    roving(grid);
    if (done >= images.length) watcher.disconnect();
  };
  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) add();
  }, { rootMargin: "600px" });
  add();
  if (done < images.length) watcher.observe(more);
}

function dialogHead(id, title, colour, below) {
  const head = make("div", { class: "dialog-head" },
    make("i", { class: "dot", "aria-hidden": "true" }),
    make("div", {}, make("h2", { id, text: title }), make("p", { class: "hint", text: below })),
    make("button", {
      type: "button", class: "close", "aria-label": "Close", text: "×",
      onclick: (event) => event.target.closest("dialog").close(),
    }));
  head.style.setProperty("--colour", colour);
  return head;
}

function openDialog(dialog) {
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  placeMessage();
}

function openImage(image) {
  const dialog = byId("image-dialog");
  const group = view.labels[image];
  const head = dialogHead("image-dialog-title", nameOf(image), groupColour(group),
    isDecided(image)
      ? `put into ${groupName(group)} by hand`
      : `in ${groupName(group)}, ${percent(view.confidence[image])} sure`);
  const other = otherGroup(view, image);
  const facts = make("div", { class: "image-facts" }, moveControl([image], () => openImage(image)));
  if (other.group >= 0) {
    facts.append(make("p", { class: "hint" }, "Otherwise it is most like ",
      groupLink(other.group), ` (${whatCounts(1)})`));
  }
  const around = make("div", { class: "pictures around" });
  const near = new Set(GRAPHS[0].near.subarray(image * NEAR, image * NEAR + NEAREST_SHOWN));
  if (IS_SAMPLE) near.delete(image); // others stand for its neighbours, or it does itself
  around.append(...[...near].map(neighbor));
  const where = make("p", { class: "hint", text: whereTheyAre([...near]) });
  const title = IS_SAMPLE ? "Like it, in the sample" : "Most like it";
  const alike = stackOf(image).filter((other) => other !== image);
  if (alike.length) {
    facts.append(make("h3", { text: "Near-duplicates" }), pictureGrid(alike, "around"));
  }
  dialog.replaceChildren(head, make("div", { class: "dialog-body image-body" },
    largePicture(image),
    make("div", {}, facts, make("h3", { text: title }), ...(near.size ? [where] : []), around)));
  roving(around);
  openDialog(dialog);
}

// What says which cluster some images are most like.
function whatCounts(count) {
  return `by all ${count === 1 ? "its" : "their"} neighbours`
    + (GRAPHS.length > 1 ? ", as learned and before learning" : "")
    + (MEMBERS.length ? ", and by the networks" : "");
}

// How many of some images each cluster has, most first; it is not always the cluster that an image
// is most like, because more neighbours count than those that are shown.
function whereTheyAre(images) {
  const counts = new Map();
  for (const image of images) {
    counts.set(view.labels[image], (counts.get(view.labels[image]) || 0) + 1);
  }
  const parts = [...counts].sort(([, a], [, b]) => b - a).map(([group, count]) =>
    `${count} in ${groupName(group)}`);
  return parts.join(", ");
}

function neighbor(image) {
  const button = pictureButton(image);
  button.classList.add("ringed");
  button.style.setProperty("--colour", groupColour(view.labels[image]));
  button.setAttribute("aria-label", `${nameOf(image)}, in ${groupName(view.labels[image])}`);
  return button;
}

// "Move to" any other cluster, or a new one.
function moveControl(images, afterwards) {
  const choice = make("select", {
    "aria-label": `Move ${plural(images.length, "image")} to`,
    onchange: async () => {
      if (choice.value === "") return;
      await moveImages(images, Number(choice.value));
      afterwards?.();
    },
  }, make("option", { value: "", text: "Move to …" }));
  for (let group = 0; group < view.k; group++) {
    if (!view.sizes[group]) continue;
    choice.append(make("option", { value: group, text: groupName(group) }));
  }
  choice.append(make("option", { value: view.k, text: "a new cluster" }));
  if (shelfGroup() < 0) {
    choice.append(make("option", { value: SHELF, text: "unsure: it fits nowhere" }));
  }
  choice.disabled = !canEdit();
  return choice;
}

function startDialogs() {
  document.addEventListener("click", pressPicture);
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close(); // pressed outside
    });
  }
}

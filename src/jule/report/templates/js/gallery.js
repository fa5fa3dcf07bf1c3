// One card per cluster: its typical images, then the doubtful ones at its border.

const fillWhenSeen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    fillWhenSeen.unobserve(entry.target);
    fillCard(entry.target);
  }
}, { rootMargin: "300px" });

function cardOrder() {
  const groups = [...view.sizes.keys()].filter((group) => view.sizes[group]);
  const by = byId("sort").value;
  if (by === "size") groups.sort((a, b) => view.sizes[b] - view.sizes[a] || a - b);
  if (by === "unsure") groups.sort((a, b) => view.sureness[a] - view.sureness[b] || a - b);
  if (by === "number") groups.sort((a, b) => view.numbers[a] - view.numbers[b]);
  const order = by === "near"
    ? [...chained(groups.filter((group) => !isShelf(group))), ...groups.filter(isShelf)] : groups;
  return order.sort((a, b) => isShelf(a) - isShelf(b)); // what fits nowhere comes last
}

// From each cluster to the nearest one that is left, beginning with the largest.
function chained(groups) {
  const left = new Set(groups);
  const order = [];
  let at = groups.reduce((a, b) => (view.sizes[b] > view.sizes[a] ? b : a), groups[0]);
  while (left.size) {
    order.push(at);
    left.delete(at);
    at = nearestGroups(view, at, view.k).find((group) => left.has(group));
  }
  return order;
}

function showGallery() {
  fillWhenSeen.disconnect();
  const cards = cardOrder().map(card);
  byId("cards").replaceChildren(...cards);
  for (const each of cards) fillWhenSeen.observe(each);
  showSelectedCounts();
}

// An empty card, filled when it comes into sight: there may be hundreds.
function card(group) {
  const element = make("li", {
    class: "card", id: cardId(group), "data-group": group,
    "aria-label": `${groupName(group)}, ${sizeText(group)}`,
  });
  element.style.setProperty("--colour", groupColour(group));
  return element;
}

function cardId(group) {
  return `cluster-${view.numbers[group]}`;
}

function fillCard(element) {
  if (element.firstChild) return;
  const group = Number(element.dataset.group);
  const first = typicalImages(view, group, TYPICAL);
  const border = borderImages(view, group);
  const near = nearestGroups(view, group, NEAREST);
  element.append(cardHead(group), pictureGrid(first, "typical"));
  if (border.length) {
    element.append(make("div", { class: "border" },
      make("span", { text: "at its border" }), pictureGrid(border)));
  }
  element.append(make("div", { class: "card-foot" },
    make("span", {},
      make("span", {
        title: "The share of its images’ neighbours that are in it, on average",
        text: `${percent(groupSureness(view, group))} sure`,
        hidden: isShelf(group), // a person put them there because they fit nowhere
      }), make("span", { class: "splits" }, ...splitButtons(group))),
    make("span", { class: "near" }, ...(near.length ? ["near ", ...near.map(groupLink)] : []))));
}

function cardHead(group) {
  const name = make("input", {
    class: "name", value: givenName(group), placeholder: `Cluster ${view.numbers[group]}`,
    readonly: !canEdit() || isShelf(group),
    "aria-label": isShelf(group) ? "Unsure images" : `Name of cluster ${view.numbers[group]}`,
    maxlength: 200, spellcheck: "false",
    onchange: (event) => nameGroup(group, event.target.value),
    onkeydown: (event) => { if (event.key === "Enter") event.target.blur(); },
  });
  const open = make("button", {
    type: "button", class: "open", text: sizeText(group),
    "aria-label": `All ${sizeText(group)} of ${groupName(group)}`,
    onclick: () => openGroup(group),
  });
  return make("div", { class: "card-head" },
    make("i", { class: "dot", "aria-hidden": "true" }), make("h3", {}, name), open);
}

function pictureGrid(images, kind = "") {
  const grid = make("div", { class: `pictures ${kind}` }, ...images.map(pictureButton));
  roving(grid);
  return grid;
}

function groupLink(group) {
  const link = make("button", {
    type: "button", class: "group-link", "data-link": group, onclick: () => goToGroup(group),
  }, make("i", { class: "dot", "aria-hidden": "true" }), make("span", { text: groupName(group) }));
  link.style.setProperty("--colour", groupColour(group));
  return link;
}

function goToGroup(group) {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  const element = byId(cardId(group));
  fillCard(element);
  element.scrollIntoView({ block: "center", behavior: "instant" });
  element.querySelector(".name").focus({ preventScroll: true });
}

function showNames() {
  for (const link of document.querySelectorAll("[data-link]")) {
    link.querySelector("span").textContent = groupName(Number(link.dataset.link));
  }
  for (const input of document.querySelectorAll(".card .name")) {
    const group = Number(input.closest(".card").dataset.group);
    input.value = givenName(group);
  }
}

function showSelectedCounts() {
  const counts = new Map();
  for (const image of selection) {
    counts.set(view.labels[image], (counts.get(view.labels[image]) || 0) + 1);
  }
  for (const element of document.querySelectorAll(".card")) {
    const count = counts.get(Number(element.dataset.group)) || 0;
    element.classList.toggle("unselected", selection.size > 0 && !count);
    element.classList.toggle("has-selected", count > 0);
  }
}

function startGallery() {
  byId("sort").addEventListener("change", showGallery);
  addEventListener("beforeprint", () => {
    for (const element of document.querySelectorAll(".card")) fillCard(element);
  });
  on("view", showGallery);
  on("names", showNames);
  on("selection", showSelectedCounts);
}

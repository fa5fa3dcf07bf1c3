// Images that belong together, and images that do not: said of those that are selected, listed, and
// removed.

const LINKED_SHOWN = 8; // pictures of one side of a link

function linkButtons(images, done) {
  if (images.length < 2 || !canEdit()) return [];
  const button = (text, title, work) => make("button", {
    type: "button", text, title, onclick: async () => {
      await work();
      done();
    },
  });
  const buttons = [button("Belong together",
    "Put them into one cluster, and keep them in one whatever happens", () => linkImages(images))];
  if (images.length === 2) {
    buttons.push(button("Do not belong together",
      "Never have them in one cluster", () => separateImages(...images)));
  }
  return buttons;
}

function showLinks() {
  const links = linksHere();
  byId("links").hidden = !links.length;
  byId("link-list").replaceChildren(...links.map(linkRow));
}

function linkRow(link) {
  const { edit, images, others } = link;
  const said = edit === "must-link" ? "belong together" : "do not belong together";
  const all = [...images, ...others];
  return make("li", { class: "link-row" },
    pictureGrid(images.slice(0, LINKED_SHOWN), "linked"),
    ...(others.length ? ["≠", pictureGrid(others.slice(0, LINKED_SHOWN), "linked")] : []),
    make("p", {}, make("b", { text: said }),
      make("span", { class: "hint paths", text: all.map(nameOf).join(", ") })),
    make("button", {
      type: "button", class: "quiet", text: "Remove", disabled: !canEdit(),
      "aria-label": `Remove that ${all.map(nameOf).join(", ")} ${said}`,
      onclick: () => removeLink(link),
    }));
}

function startLinks() {
  on("view", showLinks);
  on("names", showLinks);
}

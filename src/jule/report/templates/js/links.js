// Images that belong together, and images that do not: said of those that are selected, listed, and
// removed.

const LINKED_SHOWN = 8; // pictures of one side of a link
const MOST_OF_NAME = 80; // characters

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

// Where some images are, by the numbers and names of their clusters.
function placesOf(images) {
  const inGroup = (group) => ({ branch: view.branches[group], name: groupName(group) });
  return new Map(Array.from(images, (image) => [image, inGroup(view.labels[image])]));
}

// Which images a move or a link has moved, and where; `before` is where they were.
function sayWhatMoved(before, stay = "") {
  const now = placesOf(before.keys());
  const moved = [...now.keys()].filter((image) =>
    now.get(image).branch !== before.get(image).branch);
  if (!moved.length) {
    say(`No picture had to move. ${stay}`.trim());
    return;
  }
  const [first] = moved;
  const others = moved.length > 1 ? ` and ${plural(moved.length - 1, "other")}` : "";
  const from = others ? "" : ` from ${before.get(first).name}`;
  say(pictureName(first), `${others} moved${from} to ${now.get(first).name}. ${stay}`.trimEnd(),
    " ", make("button", { type: "button", class: "back", text: "Undo", onclick: stepBack }));
}

// The name of a file in a sentence: it may be long, and written from right to left.
function pictureName(image) {
  const name = nameOf(image);
  const short = name.length > MOST_OF_NAME ? `${name.slice(0, MOST_OF_NAME)}…` : name;
  return make("bdi", { text: short });
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

// Splitting a cluster: one step down its branch, or a branch that has little to do with the rest.

// The suggested branch of a cluster, { branch, size }; undefined if there is none.
function strangersIn(group) {
  if (server) return server.strangers.find(({ cluster }) => cluster === view.branches[group]);
  // Of a cluster that was changed here, nothing is known.
  const known = shown === K_RUN && view.lists(group);
  return known ? SUMMARY.strangers.find(({ cluster }) => cluster === group) : undefined;
}

function splitButtons(group) {
  const needsServer = IS_SAMPLE && !server; // which has the whole tree
  if (!canEdit() || needsServer || isShelf(group) || view.sizes[group] < 2) return [];
  const name = groupName(group);
  const button = (text, title, branch) => make("button", {
    type: "button", class: "link split", text, title, "aria-label": `${text}: ${name}`,
    onclick: () => showParts(group, branch),
  });
  const buttons = [button("Split …", "Divide it in two, one step down its branch of the tree")];
  const found = strangersIn(group);
  if (found) {
    buttons.push(button(`Split off ${found.size} …`,
      "Most neighbours of these are in other clusters: they may be strangers", found.branch));
  }
  return buttons;
}

// Both parts of a split, before it is made.
async function showParts(group, branch = null) {
  const cluster = view.branches[group];
  const parts = await (server ? server.parts({ cluster, branch }) : partsHere(group, branch));
  if (!parts) return;
  const seen = () => (server ? server.revision : changesHere());
  const [name, before] = [groupName(group), seen()];
  const dialog = byId("split-dialog");
  const confirm = make("button", {
    type: "button", text: "Split", onclick: () => {
      dialog.close();
      if (seen() === before) splitGroup(group, branch);
      else say("Not changed: the clusters have changed since. Look at the parts again.");
    },
  });
  const all = parts.sizes[0] + parts.sizes[1];
  dialog.replaceChildren(
    dialogHead("split-dialog-title", `Split ${name}?`, groupColour(group),
      `${plural(all, "image")}, of which ${parts.sizes[1].toLocaleString("en")} would leave it`),
    make("div", { class: "dialog-body" },
      make("div", { class: "same-pair" },
        partSide(`Stays in ${name}`, parts.sizes[0], parts.typical[0]),
        partSide("Becomes a new cluster", parts.sizes[1], parts.typical[1])),
      make("div", { class: "buttons" }, confirm, make("button", {
        type: "button", class: "quiet", text: "Leave it whole", onclick: () => dialog.close(),
      }))));
  openDialog(dialog);
  confirm.focus();
}

function partSide(title, size, typical) {
  return make("div", { class: "same-side" },
    make("p", {}, make("b", { text: title }), " ",
      make("span", { class: "hint", text: plural(size, "image") })),
    pictureGrid(typical));
}

function showSplits() {
  for (const element of document.querySelectorAll(".card .splits")) {
    element.replaceChildren(...splitButtons(Number(element.closest(".card").dataset.group)));
  }
}

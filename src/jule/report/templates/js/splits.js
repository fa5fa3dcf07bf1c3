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
    onclick: () => splitGroup(group, branch),
  });
  const buttons = [button("Split", "Divide it in two, one step down its branch of the tree")];
  const found = strangersIn(group);
  if (found) {
    buttons.push(button(`Split off ${found.size}`,
      "Most neighbours of these are in other clusters: they may be strangers", found.branch));
  }
  return buttons;
}

function showSplits() {
  for (const element of document.querySelectorAll(".card .splits")) {
    element.replaceChildren(...splitButtons(Number(element.closest(".card").dataset.group)));
  }
}

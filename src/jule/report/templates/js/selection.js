// The images selected on the map or one by one, and what can be done with them.

const SELECTED_SHOWN = 48;
const SELECTION_BAR = byId("selection-bar");

function showSelection() {
  markSelected();
  const images = [...selection];
  const panel = byId("selected");
  const bar = SELECTION_BAR;
  panel.hidden = bar.hidden = !images.length;
  // Nothing behind an open dialog can be pressed, so the bar moves into it.
  const dialog = byId("group-dialog");
  (dialog.open ? dialog : document.body).append(bar);
  if (!images.length) return;
  panel.replaceChildren(
    make("h3", { text: `Selected: ${plural(images.length, "image")}` }),
    pictureGrid(images.slice(0, SELECTED_SHOWN)));
  if (images.length > SELECTED_SHOWN) {
    const rest = (images.length - SELECTED_SHOWN).toLocaleString("en");
    panel.append(make("p", { class: "hint", text: `and ${rest} more` }));
  }
  const done = () => {
    select([]);
    dialog.close();
  };
  bar.replaceChildren(
    make("span", { text: `${plural(images.length, "image")} selected`, role: "status" }),
    moveControl(images, done),
    ...linkButtons(images, done),
    make("button", { type: "button", text: "Clear", onclick: () => select([]) }));
}

// Chooses whether a press on a picture selects it, for those who cannot hold down Ctrl.
function pickButton() {
  return make("button", {
    type: "button", class: "pick", text: "Select", title: "A press on a picture selects it",
    "aria-pressed": String(isPicking()),
    onclick: () => {
      document.body.classList.toggle("picking");
      for (const button of document.querySelectorAll(".pick")) {
        button.setAttribute("aria-pressed", String(isPicking()));
      }
    },
  });
}

function isPicking() {
  return document.body.classList.contains("picking");
}

function startSelection() {
  byId("same-open").before(pickButton());
  on("selection", showSelection);
  byId("group-dialog").addEventListener("close", showSelection);
  on("view", () => { if (selection.size) showSelection(); });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    if (selection.size) select([]);
  });
}

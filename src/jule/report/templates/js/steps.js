// Undo and redo, by buttons and keys, and short messages.

const MESSAGE = byId("message");
const MESSAGE_TEXT = byId("message-text");
const EDIT_WORDS = {
  name: "a name", move: "a move", shelve: "a move to “unsure”", split: "a split",
  merge: "a merge", refuse: "“different”", "must-link": "“belong together”",
  "cannot-link": "“do not belong together”", unlink: "a link that was removed",
  cut: "the number of clusters", place: "new images", all: "all changes here",
};
const TYPED_INTO = "input, select, textarea, [contenteditable]";

function showSteps() {
  const { undo, redo } = server ? server.steps : {
    undo: steps.past.at(-1)?.what, redo: steps.future.at(-1)?.what,
  };
  for (const [id, what, verb] of [["step-back", undo, "Undo"], ["step-forward", redo, "Redo"]]) {
    byId(id).disabled = !what;
    byId(id).title = what ? `${verb}: ${EDIT_WORDS[what]}` : `Nothing to ${verb.toLowerCase()}`;
  }
}

// Keys belong to the text while somebody types.
function isTyping(event) {
  return event.target.matches?.(TYPED_INTO) && event.target.type !== "range";
}

function pressStep(event) {
  const key = event.key.toLowerCase();
  if (!(event.ctrlKey || event.metaKey) || event.altKey || isTyping(event)) return;
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  if (key === "y" || event.shiftKey) stepForward();
  else stepBack();
}

// A message for a person, of texts and names, which stays until the next one or until it is closed.
function say(...parts) {
  MESSAGE.hidden = !parts.join("");
  MESSAGE_TEXT.replaceChildren(...parts);
  placeMessage();
}

// Nothing behind an open dialog can be pressed, so the message moves into the topmost one.
function placeMessage() {
  const open = document.querySelectorAll("dialog[open]");
  (open[open.length - 1] || document.body).append(MESSAGE);
}

function startSteps() {
  byId("step-back").addEventListener("click", stepBack);
  byId("step-forward").addEventListener("click", stepForward);
  byId("message-close").addEventListener("click", () => say(""));
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("close", placeMessage);
  }
  addEventListener("keydown", pressStep);
  on("view", showSteps);
  on("names", showSteps);
}

// The part of a served page that talks to its server, and nobody else: edits are saved when they
// are made, one after another, and the page shows the clusters that the server answers with.

const LATER = 300; // milliseconds after an edit, when the tree of the new clusters is asked for
const HOW = "Start it again with jule serve, and open its new address.";
let labelsText = RUN.served.labels.base64;
let moreText = ""; // the clusters of images that the page did not show at first
let waitingEdits = Promise.resolve();

async function ask(path, body) {
  const request = body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  const response = await fetch(path, { ...request, redirect: "error" });
  if (response.status === 403) throw new Error(`The server has ended. ${HOW}`);
  const answer = await response.json().catch(() => ({ problem: "The server had an error." }));
  return { ok: response.ok, status: response.status, answer };
}

// Edits wait for each other, so that each is based on the one before. Return whether it was made.
function send(path, edit = {}) {
  waitingEdits = waitingEdits.then(async () => {
    const answer = await askOf(path, edit);
    if (!answer) return false;
    say("");
    await meet(answer.more.rows);
    takeState(answer);
    return true;
  });
  return waitingEdits;
}

// Ask for something that is based on the clusters as they are shown; say it if that is impossible.
async function askOf(path, edit) {
  try {
    const { ok, status, answer } = await ask(path, { ...edit, revision: server.revision });
    if (ok) return answer;
    if (status !== 409) {
      refuse(answer.problem);
      return null;
    }
    await meet(answer.state.more.rows);
    takeState(answer.state);
    say("The clusters were changed in another window, and are shown as they are now."
      + " Your last change was not made.");
  } catch (error) {
    refuse(error instanceof TypeError ? `The server does not answer. ${HOW}` : error.message);
  }
  return null;
}

// The parts of a split before it is made.
async function askParts(split) {
  await waitingEdits;
  const answer = await askOf("parts", split);
  if (!answer) return null;
  for (const rows of answer.typical) await meet(rows);
  return { sizes: answer.sizes, typical: answer.typical.map((rows) => rows.map(imageOf)) };
}

function refuse(problem) {
  say(`Not changed: ${problem}`);
  same.refused.clear();
  tell("names"); // fields show the names that are in effect
}

// Show the clusters as the server has them.
function takeState(state) {
  const moved = state.labels.base64 !== labelsText || String(state.more.labels) !== moreText;
  server.sizes = state.sizes;
  server.revision = state.revision;
  server.steps = { undo: state.undo, redo: state.redo };
  server.links = state.links.map(ofImages);
  names = new Map(state.numbers.map((number, group) => [number, state.names[group]]));
  BY_HAND = withGuests(decoded(state.by_hand));
  for (const row of state.more.rows) BY_HAND[imageOf(row)] = 1;
  if (moved) {
    labelsText = state.labels.base64;
    moreText = String(state.more.labels);
    LABELS = labelsOf(state);
    NUMBERS = state.numbers;
    NEXT_NUMBER = state.next_number;
    K_RUN = clustersOfRun();
    CONFIDENCE = RUN_NODES = null; // until they arrive
    server.strangers = [];
    show(K_RUN);
  } else {
    tell("names");
  }
  later("clusters", askClusters);
}

async function askClusters() {
  try {
    const { ok, answer } = await ask("clusters");
    if (ok && answer.arrays.labels.base64 === labelsText) takeClusters(answer);
    const suggested = await ask("suggestions");
    if (!suggested.ok || suggested.answer.revision !== server.revision) return;
    server.pairs = suggested.answer.same;
    server.strangers = suggested.answer.strangers;
    same.refused.clear();
    server.pairsOf = server.revision;
    showSame();
    showSplits();
  } catch {
    // The next edit will say that the server does not answer.
  }
}

// The clusters of all images on the page.
function labelsOf(state) {
  const labels = withGuests(decoded(state.labels));
  state.more.rows.forEach((row, i) => { labels[imageOf(row)] = state.more.labels[i]; });
  return labels;
}

// Take over what follows from the clusters: the tree, the confidence, lists of pictures.
function takeClusters({ arrays, summary }) {
  if (RUN_NODES && CONFIDENCE && isPlanted(arrays)) return; // nothing has moved
  Object.assign(SUMMARY, onPage(summary));
  CONFIDENCE = withGuests(decoded(arrays.confidence));
  plant(decoded(arrays.merges), decoded(arrays.affinities), arrays.sizes && decoded(arrays.sizes),
    decoded(arrays.fixed));
  explain();
  look();
}

// Whether the page has this tree. It changes with what is kept apart, even where nothing moves.
function isPlanted(arrays) {
  const isSame = (array, own) => decoded(array).every((value, i) => value === own[i]);
  return isSame(arrays.fixed, [TREE.together, TREE.forced]) && isSame(arrays.merges, TREE.merges);
}

// Another window may have changed the clusters while this one was not looked at.
async function refresh() {
  try {
    const { ok, answer } = await ask("state");
    if (!ok || answer.revision === server.revision) return;
    await meet(answer.more.rows);
    takeState(answer);
    say("The clusters were changed in another window, and are shown as they are now.");
  } catch {
    // The next edit will say that the server does not answer.
  }
}

// The original of an image in a frame, or the reason why there is none below the thumbnail.
async function showOriginal(image, frame) {
  try {
    const response = await fetch(`pictures/${rowOf(image)}`, { redirect: "error" });
    if (!response.ok) throw new Error((await response.json()).problem);
    const url = URL.createObjectURL(await response.blob());
    const original = make("img", { alt: nameOf(image) });
    original.addEventListener("load", () => {
      frame.replaceChildren(original);
      URL.revokeObjectURL(url);
    });
    original.src = url;
  } catch (error) {
    const text = error instanceof TypeError ? `The server does not answer. ${HOW}` : error.message;
    frame.append(make("p", { class: "hint problem", text }));
  }
}

function startServer() {
  const { revision, undo, redo, links, sizes, more } = RUN.served;
  server = {
    revision, steps: { undo, redo }, links: links.map(ofImages), pairs: [], strangers: [],
    showOriginal, sizes, contents: showContents, parts: askParts,
    edit: (edit) => send("edit", edit), undo: () => send("undo"), redo: () => send("redo"),
  };
  RUN.served.numbers.forEach((number, group) => names.set(number, RUN.served.names[group]));
  addEventListener("focus", refresh);
  setTimeout(askClusters, LATER);
  if (more.rows.length) meet(more.rows).then(() => takeState(RUN.served));
}

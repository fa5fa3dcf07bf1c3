// Undo and redo in a page that was opened as a file: everything that an edit may change is kept.

function snapshot(what) {
  return {
    what, shown, refused, changes: new Map(changes), names: new Map(names),
    newNames: new Set(newNames),
  };
}

function remember(what) {
  steps.past = [...steps.past.slice(1 - MOST_STEPS), snapshot(what)];
  steps.future = [];
}

function stepBack() {
  if (server) server.undo();
  else step(steps.past, steps.future);
}

function stepForward() {
  if (server) server.redo();
  else step(steps.future, steps.past);
}

function step(from, to) {
  const back = from.pop();
  if (!back) return;
  to.push(snapshot(back.what));
  ({ names, newNames, refused } = back);
  changes = new Map([...back.changes].map(([k, here]) => [k, { ...here, touched: true }]));
  say("");
  show(back.shown);
  tell("names");
}

function forgetChanges() {
  remember("all");
  for (const branch of view.branches) {
    names.delete(branch);
    newNames.delete(branch);
  }
  namesOfRun();
  changes.delete(shown);
  look();
  tell("names");
}

function namesOfRun() {
  for (const { cluster, name } of SUMMARY.groups) {
    if (name && !names.has(NUMBERS[cluster])) names.set(NUMBERS[cluster], name);
  }
}

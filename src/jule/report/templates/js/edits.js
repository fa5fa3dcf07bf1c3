// Names and moves, and taking them away as files.

function tellEdits() {
  const { names, moves, touched } = changesHere();
  const parts = [];
  if (names.size) parts.push(plural(names.size, "cluster has a name", "clusters have names"));
  if (moves.size) parts.push(plural(moves.size, "image was moved", "images were moved"));
  const what = shown === RUN_VIEW
    ? "The run’s own result"
    : `The tree cut at ${plural(shown, "cluster")}`;
  const how = parts.length ? `: ${parts.join(", ")}.` : ", unchanged.";
  byId("edits-said").textContent = what + how;
  byId("undo").disabled = !touched;
}

// A cell of CSV: quoted, and never the beginning of a formula where a spreadsheet opens it.
function cell(value) {
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function asCsv() {
  const names = changesHere().names;
  const lines = ["path,cluster,name,confidence"];
  for (let i = 0; i < N; i++) {
    const group = view.labels[i];
    const row = [nameOf(i), group, names.get(group) || "", view.confidence[i].toFixed(4)];
    lines.push(row.map(cell).join(","));
  }
  return lines.join("\r\n") + "\r\n";
}

function asEdits() {
  const { names, moves } = changesHere();
  const clusters = [];
  for (let group = 0; group < view.k; group++) {
    clusters.push({
      cluster: group,
      name: names.get(group) || "",
      images: [...view.members(group)].map(nameOf),
    });
  }
  return {
    format: "jule-edits-1",
    run: SUMMARY.run,
    labels: shown === RUN_VIEW ? SUMMARY.labels : null,
    k: shown === RUN_VIEW ? null : shown,
    names: Object.fromEntries(names),
    moves: [...moves].map(([image, cluster]) => ({ image, path: nameOf(image), cluster })),
    clusters,
  };
}

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  for (const one of changes.values()) one.touched = one.touched && one !== changesHere();
}

function startEdits() {
  byId("save-csv").addEventListener("click", () => download("clusters.csv", "text/csv", asCsv()));
  byId("save-json").addEventListener("click", () =>
    download("edits.json", "application/json", JSON.stringify(asEdits(), null, 1)));
  byId("undo").addEventListener("click", forgetChanges);
  addEventListener("beforeunload", (event) => {
    if ([...changes.values()].some((one) => one.touched)) event.preventDefault();
  });
  on("view", tellEdits);
  on("names", tellEdits);
}

// Names and moves: what was changed, and taking it away as files.

function tellEdits() {
  if (server) {
    byId("edits-said").textContent = "Every change is saved in the run when you make it.";
    return;
  }
  const { edits, decided } = changesHere();
  const named = [...view.branches.keys()].filter((group) => givenName(group)).length;
  const here = new Set(view.branches);
  const elsewhere = [...newNames].filter((branch) => !here.has(branch)).length;
  const parts = [];
  if (named) parts.push(plural(named, "cluster has a name", "clusters have names"));
  if (decided.size) parts.push(plural(decided.size, "image was moved", "images were moved"));
  const others = edits.filter(({ edit }) => edit !== "move" && edit !== "shelve").length;
  if (others) parts.push(plural(others, "split, merge or link", "splits, merges and links"));
  byId("edits-said").textContent = clustersText(shown)
    + (parts.length ? `: ${parts.join(", ")}.` : ", unchanged.")
    + (elsewhere ? ` ${plural(elsewhere, "new name belongs to a cluster",
      "new names belong to clusters")} that another number of clusters shows.` : "");
  const nameInRun = (branch) => SUMMARY.groups[NUMBERS.indexOf(branch)]?.name || "";
  byId("undo").disabled = !edits.length
    && !view.branches.some((branch) => (names.get(branch) || "") !== nameInRun(branch));
}

// A cell of CSV: text is quoted, and never the beginning of a formula where a spreadsheet opens it.
// If it begins with apostrophes before such a sign, it gets one more, so that the first can be
// removed.
function cell(value) {
  let text = String(value);
  if (typeof value !== "number" && /^'*[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function asCsv() {
  const lines = ["path,cluster,name,confidence,index"];
  for (let i = 0; i < N; i++) {
    const group = view.labels[i];
    const sure = view.confidence[i].toFixed(4);
    const row = [nameOf(i), view.numbers[group], givenName(group), sure, indexOf(i)];
    lines.push(row.map(cell).join(","));
  }
  return lines.join("\r\n") + "\r\n";
}

// What `jule apply` reads: the edits in their order, and then the names.
function asEdits() {
  const groups = [...view.branches.keys()].filter((group) => view.sizes[group]);
  const named = groups.filter((group) => names.has(view.branches[group]) && !isShelf(group));
  return {
    format: "jule-page-edits-3",
    run: SUMMARY.run,
    labels: SUMMARY.labels,
    k: shown,
    edits: [...changesHere().edits, ...named.map((group) =>
      ({ edit: "name", cluster: memberOf(group), name: givenName(group) }))],
    clusters: IS_SAMPLE ? [] : groups.map((group) => ({
      cluster: view.numbers[group],
      name: givenName(group),
      images: [...view.members(group)].map(nameOf),
      indices: [...view.members(group)].map(indexOf),
    })),
  };
}

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  changes.set(shown, { ...changesHere(), touched: false });
  for (const branch of view.branches) newNames.delete(branch);
}

function startEdits() {
  namesOfRun();
  byId("save-csv").hidden = IS_SAMPLE; // jule export writes all images
  byId("save-csv").addEventListener("click", () => download("clusters.csv", "text/csv", asCsv()));
  byId("save-json")?.addEventListener("click", () =>
    download("edits.json", "application/json", JSON.stringify(asEdits(), null, 1)));
  byId("undo")?.addEventListener("click", forgetChanges);
  addEventListener("beforeunload", (event) => {
    const unsaved = newNames.size || [...changes.values()].some(({ touched }) => touched);
    if (unsaved) event.preventDefault();
  });
  on("view", tellEdits);
  on("names", tellEdits);
}

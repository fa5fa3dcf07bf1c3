// Start all parts, and show the clusters of the run.

startSlider();
startGallery();
startDialogs();
startSelection();
startMap();
startDendrogram();
startDoubts();
startEvidence();
startCharts();
startStages();
startEdits();
startSteps();
startSame();
startLinks();
if (RUN.served) startServer();
explain();
show(K_RUN);
DARK.addEventListener("change", () => tell("view"));
practise([2, 5, 20, 100]);

// Cut the tree a few times while the browser is idle, so that it has compiled the code for that
// when the slider first moves.
function practise(cuts) {
  const whenIdle = window.requestIdleCallback || ((work) => setTimeout(work, 100));
  whenIdle(() => {
    const [k, ...others] = cuts;
    const { labels, nodes } = cutAt(clampGroups(k));
    if (!nodes) return; // the tree of the new clusters is on its way
    const votes = votesFor(labels, nodes.length);
    distances(describe(labels, confidenceIn(labels, votes).sure, nodes.length));
    if (others.length) practise(others);
  });
}

// For the console and for tests; the page does not use it.
window.jule = {
  cutOther: (n, merges, k, fixed) => cutTree(growTree(n, merges, null, fixed), k),
  numbersOther: (n, merges, labels) => branchNumbers(growTree(n, merges), labels),
  show: showGroups,
  select,
  open: openImage,
  get labels() { return view.labels; },
  get votes() { return view.votes; },
  get confidence() { return view.confidence; },
  get numbers() { return view.numbers; },
  get shown() { return shown; },
  get pair() { return same.pairs[0]?.map((group) => view.branches[group]); },
  get revision() { return server?.revision; },
  get settled() { return Boolean(RUN_NODES) && server?.pairsOf === server?.revision; },
  get map() { return map; },
};

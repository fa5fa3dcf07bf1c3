// Everything is in place: start, and show the run's own result.

startSlider();
startGallery();
startDialogs();
startSelection();
startMap();
startDendrogram();
startDoubts();
startCharts();
startStages();
startEdits();
show(RUN_VIEW);
DARK.addEventListener("change", () => tell("view"));
practise([2, 5, 20, 100]);

// The first move of the slider should be as quick as the tenth: while nobody waits, cut the tree a
// few times, so that the browser has compiled what that takes.
function practise(cuts) {
  const whenIdle = window.requestIdleCallback || ((work) => setTimeout(work, 100));
  whenIdle(() => {
    const [k, ...others] = cuts;
    const labels = cutTree(TREE, clampGroups(k));
    distances(describe(labels, neighborShare(labels)));
    if (others.length) practise(others);
  });
}

// For whoever looks from the console: nothing on the page needs it.
window.jule = {
  cut: (k) => cutTree(TREE, k),
  cutOther: (n, merges, k) => cutTree(growTree(n, merges), k),
  show: showGroups,
  open: openImage,
  get labels() { return view.labels; },
  get shown() { return shown; },
};

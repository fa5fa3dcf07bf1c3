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

// For whoever looks from the console: nothing on the page needs it.
window.jule = {
  cut: (k) => cutTree(TREE, k),
  cutOther: (n, merges, k) => cutTree(growTree(n, merges), k),
  show: showGroups,
  open: openImage,
  get labels() { return view.labels; },
  get shown() { return shown; },
};

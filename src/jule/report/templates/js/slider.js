// The number of groups. The slider is logarithmic: 5 or 6 matters more than 205 or 206.

const STEPS = 1000;

function placeOf(k) {
  if (MOST_GROUPS === LEAST_GROUPS) return 0;
  return (STEPS * Math.log(k / LEAST_GROUPS)) / Math.log(MOST_GROUPS / LEAST_GROUPS);
}

function groupsAt(place) {
  return Math.round(LEAST_GROUPS * (MOST_GROUPS / LEAST_GROUPS) ** (place / STEPS));
}

function clampGroups(k) {
  return Math.min(MOST_GROUPS, Math.max(LEAST_GROUPS, Math.round(k) || LEAST_GROUPS));
}

function showGroups(k) {
  if (clampGroups(k) !== shown) show(clampGroups(k));
}

function showSlider() {
  const k = shown === RUN_VIEW ? view.k : shown;
  const slider = byId("slider");
  slider.value = placeOf(clampGroups(k));
  slider.setAttribute("aria-valuetext", plural(k, "cluster"));
  byId("k").value = k;
  const edited = SUMMARY.edited ? ", changed by hand" : "";
  byId("which").textContent = shown === RUN_VIEW
    ? `${plural(k, "cluster")}: the run’s own result (${SUMMARY.chosen.toUpperCase()}${edited})`
    : `${plural(view.k, "cluster")}: the merge tree, cut here`;
  byId("back").hidden = shown === RUN_VIEW;
  byId("fewer").disabled = k <= LEAST_GROUPS;
  byId("more").disabled = k >= MOST_GROUPS;
}

function showSuggestions() {
  const suggested = SUMMARY.suggestions.filter(({ k }) => k >= LEAST_GROUPS && k <= MOST_GROUPS);
  if (!suggested.length) return;
  byId("suggested").append(make("span", { text: "Suggested" }));
  for (const { k } of suggested) {
    byId("suggested").append(make("button", {
      type: "button", class: "chip", text: k, "aria-label": plural(k, "cluster"),
      onclick: () => showGroups(k),
    }));
    const tick = make("i");
    tick.style.left = `${placeOf(k) / (STEPS / 100)}%`;
    byId("ticks").append(tick);
  }
}

function startSlider() {
  const slider = byId("slider");
  const now = () => (shown === RUN_VIEW ? view.k : shown);
  byId("k").min = LEAST_GROUPS;
  byId("k").max = MOST_GROUPS;
  slider.addEventListener("input", () => showGroups(groupsAt(Number(slider.value))));
  slider.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault(); // one group a key, wherever on the scale
    showGroups(now() + step);
  });
  byId("k").addEventListener("change", () => {
    showGroups(Number(byId("k").value));
    showSlider();
  });
  byId("fewer").addEventListener("click", () => showGroups(now() - 1));
  byId("more").addEventListener("click", () => showGroups(now() + 1));
  byId("back").addEventListener("click", () => {
    show(RUN_VIEW);
    slider.focus();
  });
  showSuggestions();
  on("view", showSlider);
}

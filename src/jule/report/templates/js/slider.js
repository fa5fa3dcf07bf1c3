// The number of clusters. The slider is logarithmic: 5 or 6 matters more than 205 or 206.

const STEPS = 1000;
let scaleOf = ""; // the limits that the numbers below the slider were drawn for

function placeOf(k) {
  if (MOST_GROUPS === LEAST_GROUPS || k < LEAST_GROUPS) return 0;
  return (STEPS * Math.log(k / LEAST_GROUPS)) / Math.log(MOST_GROUPS / LEAST_GROUPS);
}

function groupsAt(place) {
  return Math.round(LEAST_GROUPS * (MOST_GROUPS / LEAST_GROUPS) ** (place / STEPS));
}

function clampGroups(k) {
  return Math.min(MOST_GROUPS, Math.max(LEAST_GROUPS, Math.round(k)));
}

function showGroups(k) {
  if (!RUN_NODES) return; // the tree of the new clusters is on its way
  if (clampGroups(k) !== shown) show(clampGroups(k));
}

function showSlider() {
  const slider = byId("slider");
  const limits = `${LEAST_GROUPS} ${MOST_GROUPS}`;
  if (limits !== scaleOf) {
    scaleOf = limits;
    showScale();
    showSuggestions();
  }
  slider.value = placeOf(shown);
  slider.setAttribute("aria-valuetext", clustersText(shown));
  byId("k").value = shown;
  const edited = SUMMARY.edited ? ", with the changes made by hand" : "";
  byId("which").textContent = shown === K_RUN
    ? `${clustersText(shown)}, as in the run${edited}`
    : `${clustersText(shown)} instead of the run’s ${K_RUN.toLocaleString("en")}`
      + (canEdit() ? "" : ", to look at")
      + (changes.get(K_RUN)?.edits.length ? ", without the changes made there" : "");
  byId("back").hidden = shown === K_RUN;
  byId("back").textContent = `Back to ${K_RUN.toLocaleString("en")}`;
  byId("use").hidden = canEdit();
  byId("k").min = LEAST_GROUPS;
  byId("k").max = MOST_GROUPS;
  byId("fewer").disabled = shown <= LEAST_GROUPS;
  byId("more").disabled = shown >= MOST_GROUPS;
  for (const chip of byId("suggested").querySelectorAll(".chip")) {
    chip.setAttribute("aria-pressed", Number(chip.textContent) === shown);
  }
}

// Follows what is shown, as the title of the window does.
function showHeadline() {
  const isCluster = (size, group) => size && !isShelf(group);
  const clusters = clustersText([...view.sizes].filter(isCluster).length);
  const images = plural(TOTAL, SUMMARY.pictures ? "image" : "sample");
  byId("headline").textContent = `${images} in ${clusters}`;
  const unchanged = shown === K_RUN && !changesHere().moves.size;
  const sureness = view.confidence.reduce((a, b) => a + b, 0) / N;
  byId("sureness").textContent = percent(unchanged ? SUMMARY.sureness : sureness);
  document.title = `${images} in ${clusters}${SUMMARY.title ? ` · ${SUMMARY.title}` : ""}`;
}

// Round numbers below the slider show that its scale is logarithmic. It changes with what
// corrections keep together or apart.
function showScale() {
  byId("scale").replaceChildren();
  for (let ten = 1; ten <= MOST_GROUPS; ten *= 10) {
    for (const k of [ten, 2 * ten, 5 * ten]) {
      if (k < LEAST_GROUPS || k > MOST_GROUPS) continue;
      const kind = k === 2 * ten ? "twos" : ""; // left out where there is little room
      byId("scale").append(atPlace(make("span", { class: kind, text: k.toLocaleString("en") }), k));
    }
  }
}

function atPlace(element, k) {
  element.style.left = `${placeOf(k) / (STEPS / 100)}%`;
  return element;
}

function showSuggestions() {
  const suggested = SUMMARY.suggestions.filter(({ k }) => k >= LEAST_GROUPS && k <= MOST_GROUPS);
  byId("suggested").replaceChildren();
  byId("ticks").replaceChildren();
  if (!suggested.length) return;
  byId("suggested").append(make("span", { text: "Suggested" }));
  for (const { k } of suggested) {
    byId("suggested").append(make("button", {
      type: "button", class: "chip", text: k, "aria-label": plural(k, "cluster"),
      onclick: () => showGroups(k),
    }));
    byId("ticks").append(atPlace(make("i"), k));
  }
}

// What is no number is replaced by the number shown; what is out of range, by the nearest one.
function takeNumber() {
  const typed = byId("k").value.trim();
  const k = Number(typed);
  if (typed) showGroups(k);
  showSlider();
  if (typed && k !== shown) {
    byId("which").textContent = notPossible(typed);
  }
}

// Why there are not as many clusters as somebody has asked for.
function notPossible(asked) {
  let why = `the page shows ${LEAST_GROUPS} to ${MOST_GROUPS.toLocaleString("en")}`;
  if (asked < LEAST_GROUPS && LEAST_GROUPS > 1) why = "corrections keep this many apart";
  const copies = COPIES ? COPIES.filter((first, image) => first !== image).length : 0;
  if (asked > MOST_GROUPS && MOST_GROUPS < 300 && TREE.together > copies) {
    why = "more would separate what corrections keep together";
  }
  return `${asked} is not possible: ${plural(shown, "cluster")} instead (${why})`;
}

async function useClusters() {
  const asked = shown;
  if (await server.edit({ edit: "cut", k: asked }) && K_RUN !== asked) say(notPossible(asked));
}

function startSlider() {
  const slider = byId("slider");
  slider.addEventListener("input", () => showGroups(groupsAt(Number(slider.value))));
  slider.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault(); // one cluster per key, wherever on the scale
    showGroups(shown + step);
  });
  byId("k").addEventListener("change", takeNumber);
  byId("k").addEventListener("blur", () => { if (!byId("k").value) showSlider(); });
  byId("fewer").addEventListener("click", () => showGroups(shown - 1));
  byId("more").addEventListener("click", () => showGroups(shown + 1));
  byId("use").addEventListener("click", useClusters);
  byId("back").addEventListener("click", () => {
    showGroups(K_RUN);
    slider.focus();
  });
  on("view", showSlider);
  on("view", showHeadline);
}

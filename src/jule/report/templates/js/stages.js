// First, middle and final stage side by side, turned together, as in Fig. 1 of the paper.

const turn = { across: 0.6, up: 0.35, kept: [] };

function drawStage({ canvas: element, positions, labels, samples, context: size, colours }) {
  const context = fitCanvas(element, size);
  if (!size.width) return; // inside a closed section
  const count = samples.length;
  const xs = new Float32Array(count);
  const ys = new Float32Array(count);
  const far = new Float32Array(count);
  turnInto(xs, ys, far, positions, 3, count, turn.across, turn.up);
  const scale = (0.48 * Math.min(size.width, size.height)) / radiusOf(positions, 3, count);
  const order = [...far.keys()].sort((a, b) => far[a] - far[b]);
  context.globalAlpha = 0.8;
  for (const i of order) {
    context.fillStyle = colourOf(colours(labels[i], samples[i]));
    context.beginPath();
    context.arc(size.width / 2 + xs[i] * scale, size.height / 2 - ys[i] * scale, 2, 0, 7);
    context.fill();
  }
}

function redrawStages() {
  if (turn.waiting) return;
  turn.waiting = true;
  requestAnimationFrame(() => {
    turn.waiting = false;
    turn.kept.forEach(drawStage);
  });
}

function stageFigure(stage, which, count) {
  const clusters = plural(stage.clusters, "cluster");
  const element = make("canvas", {
    role: "img", tabindex: "0", "aria-label": `Three principal components: ${clusters}`,
  });
  const title = which === 0 ? "First" : which === count - 1 ? "Final" : "Middle";
  const after = stage.period ? `after ${plural(stage.period, "period")}` : "before training";
  turn.kept.push({
    canvas: element, context: {},
    samples: typed(`stage${which}_samples`),
    positions: typed(`stage${which}_positions`),
    labels: typed(`stage${which}_labels`),
    colours: (label) => label,
  });
  startTurning(element);
  return make("figure", {}, element, make("figcaption", {},
    make("b", { text: title }), ` ${clusters}, ${after}`));
}

function startTurning(element) {
  let last = null;
  const turnBy = (right, down) => {
    turn.across += right / 120;
    turn.up = Math.min(1.5, Math.max(-1.5, turn.up + down / 120));
    redrawStages();
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    last = [event.clientX, event.clientY];
  });
  element.addEventListener("pointermove", (event) => {
    if (!last) return;
    turnBy(event.clientX - last[0], event.clientY - last[1]);
    last = [event.clientX, event.clientY];
  });
  const stop = () => { last = null; };
  element.addEventListener("pointerup", stop);
  element.addEventListener("pointercancel", stop);
  element.addEventListener("keydown", (event) => {
    const turns = {
      ArrowLeft: [-20, 0], ArrowRight: [20, 0], ArrowUp: [0, -20], ArrowDown: [0, 20],
    };
    if (!(event.key in turns)) return;
    event.preventDefault();
    turnBy(...turns[event.key]);
  });
}

function startStages() {
  const { stages } = SUMMARY;
  if (!stages.length) return;
  byId("stages").replaceChildren(...stages.map((stage, i) => stageFigure(stage, i, stages.length)));
  byId("stages").after(make("p", { class: "hint" },
    "The first three principal components; drag to turn. Colours are the clusters of each stage. ",
    stageColours()));
  for (const { canvas: element } of turn.kept) new ResizeObserver(redrawStages).observe(element);
  DARK.addEventListener("change", redrawStages);
}

function stageColours() {
  const check = make("input", {
    type: "checkbox",
    onchange: () => {
      const final = (_, sample) => LABELS[sample];
      for (const stage of turn.kept) stage.colours = check.checked ? final : (label) => label;
      redrawStages();
    },
  });
  return make("label", {}, check, " colour by the final clusters");
}

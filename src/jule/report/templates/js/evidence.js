// The scores from which numbers of clusters are suggested, against the number of clusters.

const EVIDENCE = { width: 640, height: 190, left: 38, right: 14, top: 24, bottom: 26 };
const SCORES = ["silhouette + modularity", "silhouette", "modularity"];

function evidenceChart(rows) {
  const { width, height, left, right, top, bottom } = EVIDENCE;
  const [least, most] = [rows[0][0], rows[rows.length - 1][0]];
  const both = rows.map(([, separation, inside]) => separation + inside);
  const series = [both, rows.map((row) => row[1]), rows.map((row) => row[2])];
  const low = Math.min(0, ...series.flat());
  const high = Math.max(...series.flat(), low + 0.1);
  const span = Math.log(most / least) || 1;
  const xAt = (k) => left + (Math.log(k / least) / span) * (width - left - right);
  const yAt = (score) => height - bottom - ((score - low) / (high - low)) * (height - top - bottom);
  const svg = drawing("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `Scores of ${least} to ${most} clusters`,
  });
  for (const tick of [low, (low + high) / 2, high]) {
    svg.append(
      drawing("line", { class: "grid", x1: left, x2: width - right, y1: yAt(tick), y2: yAt(tick) }),
      drawing("text", { x: left - 5, y: yAt(tick) + 3, class: "end", text: tick.toFixed(1) }));
  }
  for (const k of [1, 2, 5, 10, 20, 50, 100, 200, 500].filter((k) => k >= least && k <= most)) {
    svg.append(drawing("text", { x: xAt(k), y: height - bottom + 16, class: "mid", text: k }));
  }
  series.forEach((values, which) => {
    const points = values.map((score, i) => [xAt(rows[i][0]), yAt(score)]);
    svg.append(drawing("polyline", { class: `line-${which}`, points: points.join(" ") }));
  });
  for (const { k, score } of SUMMARY.suggestions) {
    svg.append(
      drawing("circle", { class: "line-0", cx: xAt(k), cy: yAt(score), r: 4 }),
      drawing("text", { x: xAt(k), y: yAt(score) - 7, class: "mid peak", text: k }));
  }
  return figure("score of each number of clusters", svg, SCORES);
}

function startEvidence() {
  const rows = SUMMARY.evidence;
  byId("evidence").hidden = rows.length < 2;
  if (rows.length >= 2) byId("evidence-chart").replaceChildren(evidenceChart(rows));
}

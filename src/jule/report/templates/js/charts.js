// Clusters, loss, time and, where classes were given, quality per period.

const CHART = { width: 300, height: 150, left: 38, right: 10, top: 12, bottom: 24 };
const STAGES_OF_TIME = ["train", "embed", "neighbours", "merge"];

function chartFrame(title, count, ticks, yOf, format) {
  const { width, height, left, right, bottom } = CHART;
  const viewBox = `0 0 ${width} ${height}`;
  const svg = drawing("svg", { viewBox, role: "img", "aria-label": title });
  for (const tick of ticks) {
    svg.append(
      drawing("line", { class: "grid", x1: left, x2: width - right, y1: yOf(tick), y2: yOf(tick) }),
      drawing("text", { x: left - 5, y: yOf(tick) + 3, class: "end", text: format(tick) }));
  }
  for (let period = 0; period < count; period++) {
    if (count > 12 && period % Math.ceil(count / 10)) continue;
    const x = xOf(period, count);
    svg.append(drawing("text", { x, y: height - bottom + 15, class: "mid", text: period + 1 }));
  }
  return svg;
}

function xOf(period, count) {
  const { width, left, right } = CHART;
  return left + ((period + 0.5) * (width - left - right)) / count;
}

// Returns a function from values to heights, linear or logarithmic.
function heightOf(least, largest, byRatio) {
  const { height, top, bottom } = CHART;
  const turn = byRatio ? Math.log : (value) => value;
  const span = turn(largest) - turn(least) || 1;
  const room = height - top - bottom;
  return (value) => height - bottom - ((turn(value) - turn(least)) / span) * room;
}

function lines(title, series, { byRatio = false, format = String, upTo = 0 } = {}) {
  const values = series.flatMap(({ values }) => values).filter((value) => value !== null);
  if (!values.length) return null;
  const least = byRatio ? Math.min(...values) : Math.min(0, ...values);
  const largest = Math.max(upTo, ...values);
  const yOf = heightOf(least, largest, byRatio);
  const middle = byRatio ? Math.round(Math.sqrt(least * largest)) : (least + largest) / 2;
  const count = series[0].values.length;
  const svg = chartFrame(title, count, [least, middle, largest], yOf, format);
  series.forEach(({ values: row }, which) => {
    const all = row.map((value, i) => value !== null && [xOf(i, count), yOf(value)]);
    for (const points of byRound(all)) {
      svg.append(drawing("polyline", { class: `line-${which}`, points: points.join(" ") }));
      for (const [x, y] of points) {
        svg.append(drawing("circle", { class: `line-${which}`, cx: x, cy: y, r: 2.6 }));
      }
    }
  });
  return figure(title, svg, series.length > 1 ? series.map(({ name }) => name) : []);
}

// Rounds, and the networks of an ensemble, are independent, so no line connects them.
function byRound(points) {
  const rounds = new Map();
  points.forEach((point, i) => {
    const { member, round } = SUMMARY.history[i];
    const key = `${member} ${round}`;
    if (!rounds.has(key)) rounds.set(key, []);
    if (point) rounds.get(key).push(point);
  });
  return rounds.values();
}

function timeBars(history) {
  const totals = history.map(({ seconds }) => Object.values(seconds).reduce((a, b) => a + b, 0));
  const yOf = heightOf(0, Math.max(...totals, 1e-9), false);
  const title = "seconds";
  const largest = Math.max(...totals);
  const ticks = [0, largest / 2, largest];
  const svg = chartFrame(title, history.length, ticks, yOf, (value) => value.toPrecision(2));
  const wide = Math.min(26, 180 / history.length);
  history.forEach(({ seconds }, i) => {
    let below = 0;
    STAGES_OF_TIME.forEach((stage, which) => {
      const taken = seconds[stage] || 0;
      svg.append(drawing("rect", {
        class: `bar-${which}`, x: xOf(i, history.length) - wide / 2, width: wide,
        y: yOf(below + taken), height: Math.max(0, yOf(below) - yOf(below + taken)),
      }));
      below += taken;
    });
  });
  return figure(title, svg, STAGES_OF_TIME, "bar");
}

function figure(title, svg, keys, kind = "line") {
  const caption = make("figcaption", { text: title });
  keys.forEach((key, which) => {
    caption.append(make("span", { class: "key" }, make("i", { class: `${kind}-${which}` }), key));
  });
  return make("figure", {}, caption, svg);
}

function startCharts() {
  const { history } = SUMMARY;
  if (!history.length) return;
  const of = (field) => history.map((period) => period[field]);
  const short = (value) => (value === 0 ? "0" : value.toPrecision(2));
  const all = [
    lines("clusters left", [{ values: of("clusters_after") }],
      { byRatio: true, format: (value) => value.toLocaleString("en") }),
    lines("loss", [{ name: "first tenth", values: of("loss_first") },
      { name: "last tenth", values: of("loss_last") }], { format: short }),
    timeBars(history),
    lines("agreement with the given classes", [{ name: "NMI", values: of("nmi") },
      { name: "AC", values: of("ac") }], { format: (value) => value.toFixed(1), upTo: 1 }),
  ];
  byId("charts").replaceChildren(...all.filter(Boolean));
}

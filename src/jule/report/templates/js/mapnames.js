// The names of clusters on the map, placed so that all of them can be read.

const MOST_NAMES = 100;

// The largest clusters come first; a name that would cover another one is left out.
function drawNames(context) {
  const style = getComputedStyle(document.body);
  context.font = `600 13px ${style.fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.strokeStyle = style.getPropertyValue("--panel");
  context.fillStyle = style.getPropertyValue("--text");
  context.lineWidth = 4;
  map.labels = placeNames((text) => context.measureText(text).width);
  for (const { text, x, y } of map.labels) {
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }
}

function placeNames(widthOf) {
  const high = 18;
  const buttons = byId("zoom-in").parentElement; // nothing is written below them
  const corner = [map.width - buttons.offsetWidth - 20, map.height - buttons.offsetHeight - 20];
  const taken = [{ left: corner[0], top: corner[1], right: map.width, bottom: map.height }];
  const placed = [];
  const largest = [...view.sizes.keys()].sort((a, b) => view.sizes[b] - view.sizes[a]);
  for (const group of largest.slice(0, MOST_NAMES)) {
    if (!view.sizes[group]) break;
    const middle = [map.xs, map.ys].map((values) => middleOf(view.members(group), values));
    if (middle[0] < 0 || middle[1] < 0 || middle[0] > map.width || middle[1] > map.height) continue;
    const name = groupLabel(group);
    const wide = widthOf(name) + 8;
    const x = Math.max(wide / 2, Math.min(map.width - wide / 2, middle[0]));
    const y = Math.max(high / 2, Math.min(map.height - high / 2, middle[1]));
    const box = {
      left: x - wide / 2, right: x + wide / 2, top: y - high / 2, bottom: y + high / 2,
    };
    if (wide > map.width || taken.some((other) => overlap(box, other))) continue;
    taken.push(box);
    placed.push({ text: name, x, y, ...box });
  }
  return placed;
}

function groupLabel(group) {
  const name = givenName(group) || String(view.numbers[group]);
  return name.length > 24 ? `${name.slice(0, 23)}…` : name;
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

// The median of at most a few hundred images: outliers do not move it.
function middleOf(members, values) {
  const step = Math.max(1, Math.floor(members.length / 301));
  const some = [];
  for (let i = 0; i < members.length; i += step) some.push(values[members[i]]);
  return some.sort((a, b) => a - b)[some.length >> 1];
}

// A colour for every branch number: far apart for a few, still different for hundreds.

const GOLDEN_ANGLE = 137.50776405;
const DARK = matchMedia("(prefers-color-scheme: dark)");
let paletteOf = {};
DARK.addEventListener("change", () => { paletteOf = {}; });

function colourOf(index) {
  if (index < 0) return "rgb(128 128 128)"; // of images that fit nowhere
  if (!paletteOf[index]) paletteOf[index] = mixed(index);
  return paletteOf[index];
}

function mixed(index) {
  // Three levels of light in turn, so that similar hues differ in light as well.
  const level = [0, 0.1, -0.09][Math.floor(index / 9) % 3];
  const light = (DARK.matches ? 0.74 : 0.6) + level;
  const chroma = index < 9 ? 0.16 : 0.13;
  const [red, green, blue] = fromOklch(light, chroma, 255 + index * GOLDEN_ANGLE);
  return `rgb(${red} ${green} ${blue})`;
}

// Oklch to sRGB (Ottosson 2020), where equal steps look equal.
function fromOklch(light, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map(gamma);
}

function gamma(linear) {
  const value = Math.min(1, Math.max(0, linear));
  const curved = value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
  return Math.round(255 * curved);
}

// Colours of heat maps: one ramp whose lightness rises or falls steadily, so that order is seen without hue.

const STEPS = 64;
/** Lightness, chroma and hue at points of the ramp, from little to much. */
const LIGHT = [[0.97, 0.01, 250], [0.86, 0.07, 230], [0.7, 0.12, 245], [0.52, 0.16, 265], [0.33, 0.15, 285], [0.2, 0.09, 300]];
const DARK = [[0.23, 0.02, 260], [0.36, 0.11, 280], [0.5, 0.16, 300], [0.64, 0.17, 350], [0.79, 0.15, 60], [0.96, 0.09, 105]];

/** The ramp of a theme as CSS colours. */
export function ramp(isDark) {
  const points = isDark ? DARK : LIGHT;
  return Array.from({ length: STEPS }, (_, step) => {
    const at = (step / (STEPS - 1)) * (points.length - 1);
    const [low, share] = [Math.min(Math.floor(at), points.length - 2), at - Math.min(Math.floor(at), points.length - 2)];
    const [l, c, hue] = points[low].map((value, part) => {
      const next = points[low + 1][part];
      // The shorter way around the circle of hues.
      const by = part === 2 ? ((next - value + 540) % 360) - 180 : next - value;
      return value + by * share;
    });
    return `oklch(${l.toFixed(4)} ${c.toFixed(4)} ${((hue + 360) % 360).toFixed(1)})`;
  });
}

/** The step of a value. The root makes small values visible; numbers of calls differ by orders of magnitude, so they have the logarithm. */
export function stepOf(value, most, isLogarithmic = false) {
  if (value <= 0) return 0;
  const share = isLogarithmic ? Math.log1p(value) / Math.log1p(most) : (value / most) ** 0.6;
  return Math.min(STEPS - 1, Math.max(1, Math.round(share * (STEPS - 1))));
}

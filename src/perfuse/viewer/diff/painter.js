// Boxes of the graph, and the colours of changes.

export const ROW = 20;
const STEPS = [0.02, 0.05, 0.1, 0.2, 0.5];
const LEAST_PIXELS = 0.5;

/** The step of a change: 0 for none, up to 5. */
function step(change) {
  const size = Math.abs(change);
  return STEPS.filter((least) => size >= least).length;
}

/** The colour of a change: red for more, blue for less, never red against green; grey for none. */
export function colourOf(change, dark) {
  const nth = step(change);
  if (!nth) return dark ? "oklch(0.42 0.004 260)" : "oklch(0.9 0.004 260)";
  const hue = change > 0 ? 28 : 255;
  const lightness = dark ? 0.42 + 0.05 * nth : 0.92 - 0.065 * nth;
  return `oklch(${lightness} ${0.03 + 0.028 * nth} ${hue})`;
}

/** The boxes that are wide enough to be seen, below a node or all of the roots. */
export function boxes(tree, view, width) {
  const widths = tree.widths(view.width, view.number);
  const path = view.zoom < 0 ? [] : tree.path(view.zoom);
  const found = [];
  let left;
  if (path.length) {
    for (const node of path) found.push({ node, x: 0, w: width, depth: found.length });
    left = [{ node: view.zoom, x: 0, w: width, depth: path.length - 1 }];
  } else {
    const whole = tree.roots.reduce((sum, node) => sum + widths[node], 0);
    left = [];
    let x = 0;
    for (const node of tree.roots) {
      const w = whole ? (widths[node] / whole) * width : 0;
      if (w >= LEAST_PIXELS) left.push({ node, x, w, depth: 0 });
      x += w;
    }
    found.push(...left);
  }
  while (left.length) {
    const { node, x, w, depth } = left.pop();
    let at = x;
    for (const child of tree.children[node]) {
      const part = widths[node] ? (widths[child] / widths[node]) * w : 0;
      if (part >= LEAST_PIXELS) {
        const box = { node: child, x: at, w: part, depth: depth + 1 };
        found.push(box);
        left.push(box);
      }
      at += part;
    }
  }
  return found;
}

/** Draws the boxes of the rows between two heights. */
export function paint(context, tree, view, found, { top, height, dark, text, quiet, isMatch }) {
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const box of found) {
    const y = box.depth * ROW - top;
    if (y + ROW < 0 || y > height) continue;
    paintBox(context, tree, view, box, y, { dark, text, quiet, isMatch });
  }
}

function paintBox(context, tree, view, { node, x, w }, y, { dark, text, quiet, isMatch }) {
  const [left, top, wide, high] = [x + 0.5, y + 0.5, Math.max(w - 1, 0.5), ROW - 1.5];
  const state = tree.state(node);
  const faded = isMatch && !isMatch(node);
  context.globalAlpha = faded ? 0.25 : 1;
  const base = tree.shown(tree.total.base[node], "base", view.number);
  const after = tree.shown(tree.total.new[node], "new", view.number);
  // In the view of both, the filled part is the second side's; what the first had more is only outlined.
  const part = view.width === "both" && state !== "gone" && after < base ? after / base : 1;
  context.fillStyle = colourOf(tree.change(node, view.colour, view.number), dark);
  if (state === "gone") context.globalAlpha *= 0.45;
  context.fillRect(left, top, wide * part, high);
  context.globalAlpha = faded ? 0.25 : 1;
  if (state === "gone" && wide > 2) hatch(context, left, top, wide, high, quiet);
  if (part < 1 || state !== "both") {
    context.setLineDash(state === "new" ? [3, 2] : []);
    context.strokeStyle = state === "new" ? text : quiet;
    context.lineWidth = 1;
    if (wide > 3) context.strokeRect(left + 0.5, top + 0.5, wide - 1, high - 1);
    context.setLineDash([]);
  }
  if (wide > 26) {
    context.save();
    context.beginPath();
    context.rect(left, top, wide - 2, high);
    context.clip();
    context.fillStyle = text;
    context.fillText(tree.name(node), left + 4, y + ROW / 2);
    context.restore();
  }
  context.globalAlpha = 1;
}

function hatch(context, x, y, width, height, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.globalAlpha *= 0.35;
  context.beginPath();
  for (let at = x - height; at < x + width; at += 6) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

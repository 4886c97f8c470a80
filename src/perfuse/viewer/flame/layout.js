// The layout of boxes: rows of [left, right) in pixels. Boxes too narrow to see are one box together.

import { Remainder } from "./view.js";

const NARROWEST = 0.5;

/**
 * Rows of boxes of a tree, from its root on. The zoomed node has the whole width; so have those above it.
 *
 * @returns rows of `{ node, left, right }`, ordered from left to right
 */
export function layout(zoomed, width) {
  const rows = zoomed.path.map((node) => [{ node, left: 0, right: width }]);
  const scale = zoomed.value > 0 ? width / zoomed.value : 0;
  let row = rows.at(-1);
  while (row.length) {
    const next = [];
    for (const { node, left } of row) {
      let at = left;
      const { children } = node;
      for (let nth = 0; nth < children.length; nth++) {
        let shown = children[nth];
        // Children come heaviest first: after one too narrow all are.
        const isRest = shown.value * scale < NARROWEST;
        if (isRest) shown = new Remainder(node, children.slice(nth));
        const right = at + shown.value * scale;
        if (right - at >= NARROWEST) next.push({ node: shown, left: at, right });
        if (isRest) break;
        at = right;
      }
    }
    if (next.length) rows.push(next);
    row = next;
  }
  return rows;
}

/** The box of a row that is at a position, or null. */
export function boxAt(row, x) {
  let low = 0;
  let high = (row?.length ?? 0) - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const box = row[middle];
    if (x < box.left) high = middle - 1;
    else if (x >= box.right) low = middle + 1;
    else return box;
  }
  return null;
}

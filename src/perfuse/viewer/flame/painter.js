// Draws rows of boxes on a canvas that shows the part of them scrolled to.

import { FONT } from "../widgets/font.js";
import { boxAt } from "./layout.js";

export const ROW = 20;
const PADDING = 5;
const NARROWEST_TEXT = 34;
const FEWEST_LETTERS = 3;

/** A scrolling pane of boxes. Callers are drawn upwards from the bottom, everything else down from the top. */
export class Painter {
  constructor(pane, palette, { upwards = false } = {}) {
    this.pane = pane;
    this.palette = palette;
    this.upwards = upwards;
    this.canvas = pane.querySelector("canvas");
    this.spacer = pane.querySelector(".spacer");
    this.context = this.canvas.getContext("2d");
    this.forms = new Map();
    this.rows = [];
    this.look = {};
    pane.addEventListener("scroll", () => this.paint(), { passive: true });
  }

  get width() {
    return this.pane.clientWidth;
  }

  /** Shows rows; `look` states which of them are highlighted. */
  show(rows, look) {
    this.rows = rows;
    this.look = look;
    this.spacer.style.height = `${Math.max(0, rows.length * ROW - this.pane.clientHeight)}px`;
    this.paint();
  }

  /** Brings a row into sight. */
  reveal(depth) {
    const top = this.topOf(depth) + this.pane.scrollTop;
    if (top < this.pane.scrollTop) this.pane.scrollTop = top;
    else if (top + ROW > this.pane.scrollTop + this.pane.clientHeight) this.pane.scrollTop = top + ROW - this.pane.clientHeight;
  }

  /** The box at a place of the pane. */
  at(x, y) {
    const row = Math.floor((y + this.pane.scrollTop - this.offset) / ROW);
    return boxAt(this.rows[this.upwards ? this.rows.length - 1 - row : row], x);
  }

  /** Where the first row is when there are fewer than fit. */
  get offset() {
    return this.upwards ? Math.max(0, this.pane.clientHeight - this.rows.length * ROW) : 0;
  }

  topOf(depth) {
    const row = this.upwards ? this.rows.length - 1 - depth : depth;
    return this.offset + row * ROW - (this.scrolled ?? this.pane.scrollTop);
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.pane;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) Object.assign(this.canvas, { width: wide, height: high });
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const { context } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paintRows(context, width, height);
  }

  /** Draws all rows, as a picture that is saved has them, to another context. */
  paintAll(context, width, height) {
    const { context: own } = this;
    Object.assign(this, { context, scrolled: 0 });
    this.paintRows(context, width, height);
    Object.assign(this, { context: own, scrolled: undefined });
  }

  paintRows(context, width, height) {
    const { palette } = this;
    context.fillStyle = palette.page;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    for (let depth = 0; depth < this.rows.length; depth++) {
      const top = this.topOf(depth);
      if (top > -ROW && top < height) this.paintRow(this.rows[depth], top);
    }
    for (const [node, width] of [[this.look.hovered, 1], [this.look.selected, 2]]) if (node) this.outline(node, width);
  }

  paintRow(row, top) {
    const { context, palette, look } = this;
    for (const { node, left, right } of row) {
      const { fill, faint } = this.styleOf(node, look);
      context.fillStyle = fill;
      // The gap between boxes is their border; boxes too narrow for one would vanish.
      const gap = right - left > 3 ? 1 : 0;
      context.fillRect(left, top, Math.max(right - left - gap, 0.5), ROW - 1);
      if (right - left < NARROWEST_TEXT) continue;
      context.fillStyle = faint ? palette.faint : palette.text;
      context.fillText(this.fitted(look.names(node), right - left - 2 * PADDING), left + PADDING, top + ROW / 2);
    }
  }

  styleOf(node, { flags, focus, origin, zoomed, profile }) {
    const { palette } = this;
    if (node.symbol < 0) return { fill: palette.dimmed, faint: false };
    if (flags?.[node.symbol]) return { fill: palette.match, faint: false };
    const out = flags || (focus !== null && node.view.key(node.symbol) !== focus);
    const other = origin !== null && profile.originOf[node.symbol] !== origin;
    if (out || other) return { fill: palette.dimmed, faint: true };
    return { fill: palette.of(node.symbol), faint: node.depth < zoomed.depth };
  }

  outline(node, width) {
    const box = this.rows[node.depth]?.find((box) => box.node === node);
    if (!box) return;
    const { context } = this;
    context.strokeStyle = this.palette.line;
    context.lineWidth = width;
    const inset = width / 2;
    context.strokeRect(box.left + inset, this.topOf(node.depth) + inset, Math.max(box.right - box.left - 1 - width, 1), ROW - 1 - width);
  }

  /** A name, or a shorter form of it, or as much of that as a width takes. */
  fitted(names, width) {
    let forms = this.forms.get(names[0]);
    if (!forms) {
      forms = names.map((text) => ({ text, full: this.context.measureText(text).width }));
      this.forms.set(names[0], forms);
    }
    const form = forms.find(({ full }) => full <= width);
    return form ? form.text : this.cut(forms.at(-1), width);
  }

  cut({ text, full }, width) {
    const letters = [...text];
    let [fits, tooLong] = [0, Math.min(letters.length, Math.ceil((letters.length * width) / full) + 8)];
    while (tooLong - fits > 1) {
      const middle = (fits + tooLong) >> 1;
      if (this.context.measureText(`${letters.slice(0, middle).join("")}…`).width <= width) fits = middle;
      else tooLong = middle;
    }
    return fits >= FEWEST_LETTERS ? `${letters.slice(0, fits).join("")}…` : "";
  }
}

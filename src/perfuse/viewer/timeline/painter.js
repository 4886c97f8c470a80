// Draws the rows of the timeline: boxes from tiles, coarser ones where finer ones are not here yet.

import { tileLength } from "../data/tiles.js";
import { momentText, tickStep } from "../data/times.js";
import { FONT } from "../widgets/font.js";
import { SvgContext } from "../widgets/svg_context.js";
import { BOX, depthsAsked } from "./layout.js";

export const AXIS = 26;
const NARROWEST_TEXT = 30;
const NARROWEST_EDGE = 4;
const PADDING = 4;
const MOMENT = 1.5;
/** How many resolutions coarser and finer are tried in place of a missing tile. */
const COARSER = 10;
const FINER = 3;

/** The scale between moments and pixels. */
export class Scale {
  constructor([from, to], width) {
    Object.assign(this, { from, to, width, perPixel: (to - from) / Math.max(1, width) });
  }

  x(time) {
    return (time - this.from) / this.perPixel;
  }

  time(x) {
    return this.from + x * this.perPixel;
  }

  /** The power of two whose bucket is half a pixel to one pixel long. */
  k(finest, coarsest) {
    return Math.min(Math.max(Math.floor(Math.log2(this.perPixel)), finest), coarsest);
  }
}

/** Draws the axis with its ticks. */
function paintAxis(context, scale, palette) {
  const { width } = scale;
  context.fillStyle = palette.raised;
  context.fillRect(0, 0, width, AXIS);
  context.font = FONT;
  context.textBaseline = "middle";
  const step = tickStep(scale.perPixel * 110);
  context.strokeStyle = palette.edge;
  context.lineWidth = 1;
  for (let tick = Math.ceil(scale.from / step) * step; tick <= scale.to; tick += step) {
    const x = Math.round(scale.x(tick)) + 0.5;
    context.beginPath();
    context.moveTo(x, AXIS - 7);
    context.lineTo(x, AXIS);
    context.stroke();
    context.fillStyle = palette.quiet;
    context.fillText(momentText(tick, step), x + 4, AXIS / 2);
  }
}

/** Draws rows and remembers where boxes are, so that a pointer finds them. */
export class RowsPainter {
  constructor({ tiles, symbols, colours, palette }) {
    Object.assign(this, { tiles, symbols, colours, palette, forms: new Map() });
    this.raster = new OffscreenCanvas(1, 1);
  }

  /**
   * Draws the rows in sight.
   *
   * @param look `{ rows, scroll, scale, k, counters, flags }`
   */
  paint(context, width, height, look) {
    const { palette } = this;
    Object.assign(this, { look, hits: [] });
    context.fillStyle = palette.page;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    this.grid(context, height, look.scale);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height - AXIS);
    context.clip();
    for (const row of look.rows) {
      const top = AXIS + row.top - look.scroll;
      if (top > height || top + row.height < AXIS) continue;
      if (row.kind === "process") this.heading(context, top, width, row);
      else if (row.kind === "counter") this.counter(context, top, row);
      else this.track(context, top, width, height, row);
    }
    context.restore();
    paintAxis(context, look.scale, palette);
  }

  grid(context, height, scale) {
    const step = tickStep(scale.perPixel * 110);
    context.fillStyle = this.palette.edge;
    for (let tick = Math.ceil(scale.from / step) * step; tick <= scale.to; tick += step) context.fillRect(Math.round(scale.x(tick)), AXIS, 1, height);
  }

  heading(context, top, width, row) {
    context.fillStyle = this.palette.raised;
    context.fillRect(0, top, width, row.height);
  }

  track(context, top, width, height, row) {
    const { look } = this;
    const size = row.depths === 1 ? row.height : BOX;
    const first = Math.max(0, Math.floor((AXIS - top) / size));
    const end = Math.min(row.depths, Math.ceil((height - top) / size));
    if (end <= first) return;
    const boxes = this.boxes(row, depthsAsked(row, top, height));
    const shown = boxes.filter(({ depth }) => depth >= first && depth < end);
    this.hits.push({ row, top, size, boxes: shown });
    if (context instanceof SvgContext) this.paintShapes(context, shown, top, size, row);
    else this.paintRaster(context, shown, top, width, size, first, end, row);
    this.paintTexts(context, shown, top, size, width, row);
    if (!boxes.length && this.pending) {
      context.fillStyle = this.palette.quiet;
      context.fillText("…", 6, top + size / 2);
    }
    look.pending ||= this.pending;
  }

  /** The boxes of a row in the window: `{ depth, left, right, symbol, count, share, start, duration, index }` in pixels. */
  boxes(row, depths) {
    const { scale, k } = this.look;
    const length = tileLength(k);
    const boxes = [];
    this.pending = false;
    const last = Math.floor(Math.min(scale.to, this.look.span) / length);
    this.continued = false;
    for (let tile = Math.max(0, Math.floor(scale.from / length)); tile <= last; tile++) {
      const found = this.tiles.get(k, row.track.track, tile, depths);
      if (found) this.collect(boxes, found, k, tile * length, (tile + 1) * length, row);
      else {
        this.pending = true;
        this.standIn(boxes, row, depths, k, tile * length, (tile + 1) * length);
      }
      this.continued = Boolean(found);
    }
    return boxes;
  }

  /** Boxes of another resolution in place of those that are not here yet. */
  standIn(boxes, row, depths, k, from, to) {
    for (let coarser = k + 1; coarser <= k + COARSER; coarser++) {
      const found = this.tiles.get(coarser, row.track.track, Math.floor(from / tileLength(coarser)), depths);
      if (found) return this.collect(boxes, found, coarser, from, to, row);
    }
    for (let finer = k - 1; finer >= Math.max(0, k - FINER); finer--) {
      const length = tileLength(finer);
      let any = false;
      for (let tile = Math.floor(from / length); tile * length < to; tile++) {
        const found = this.tiles.get(finer, row.track.track, tile, depths);
        if (found) this.collect(boxes, found, finer, tile * length, (tile + 1) * length, row);
        any ||= Boolean(found);
      }
      if (any) return;
    }
  }

  collect(boxes, { columns, first, end }, k, from, to, row) {
    const { scale, k: asked } = this.look;
    const bucket = 2 ** k;
    // A box that reaches into several tiles is in each: it is drawn by the first that is here.
    const skipped = this.continued && k === asked ? from : -Infinity;
    for (let at = first; at < end; at++) {
      const [start, duration] = [columns.start[at], columns.duration[at]];
      let [left, right, share] = [start, start + duration, 1];
      if (duration < bucket && !row.moments) {
        left = Math.floor(start / bucket) * bucket;
        right = left + bucket;
        share = columns.busy[at] / bucket;
      }
      if (right <= scale.from && !row.moments) continue;
      if (left >= scale.to) continue;
      if (start < skipped) continue;
      if (k !== asked) {
        left = Math.max(left, from);
        right = Math.min(right, to);
        if (right < left) continue;
      }
      boxes.push({
        depth: columns.depth[at], left: scale.x(left), right: row.moments ? scale.x(left) + MOMENT : Math.max(scale.x(right), scale.x(left) + 0.5), share,
        symbol: columns.symbol[at], count: columns.count[at], busy: columns.busy[at], start, duration, index: columns.index[at],
      });
    }
  }

  colourOf({ symbol }, row) {
    const { flags } = this.look;
    if (flags) return flags[symbol] ? this.palette.match : this.palette.dimmed;
    return row.byName ? this.colours.ofLabel(this.symbols.names[symbol]) : this.colours.of(symbol);
  }

  /** Boxes as lines of pixels, one for each depth, stretched: 10,000 boxes take milliseconds. */
  paintRaster(context, boxes, top, width, size, first, end, row) {
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.max(1, Math.round(width * ratio)), end - first];
    if (this.raster.width < wide || this.raster.height < high) {
      this.raster = new OffscreenCanvas(Math.max(wide, this.raster.width), Math.max(high, this.raster.height));
    }
    const target = this.raster.getContext("2d");
    const image = new ImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    const thin = row.moments ? Math.ceil(ratio * MOMENT) : 1;
    for (const box of boxes) {
      const from = Math.max(0, Math.round(box.left * ratio));
      let to = Math.min(wide, Math.max(Math.round(box.right * ratio), from + thin));
      if (to <= from) continue;
      if (box.right - box.left >= NARROWEST_EDGE) to -= Math.round(ratio);
      const line = (box.depth - first) * wide;
      pixels.fill(this.colours.pixel(this.colourOf(box, row), box.share), line + from, line + Math.max(to, from + 1));
    }
    target.clearRect(0, 0, this.raster.width, high);
    target.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.raster, 0, 0, wide, high, 0, top + first * size, width, high * size);
    context.fillStyle = this.palette.page;
    for (let depth = first; depth < end; depth++) context.fillRect(0, top + (depth + 1) * size - 1, width, 1);
  }

  paintShapes(context, boxes, top, size, row) {
    for (const box of boxes) {
      context.fillStyle = this.colourOf(box, row);
      context.globalAlpha = 0.22 + 0.78 * Math.min(1, box.share);
      const gap = box.right - box.left >= NARROWEST_EDGE ? 1 : 0;
      context.fillRect(box.left, top + box.depth * size, box.right - box.left - gap, size - 1);
    }
    context.globalAlpha = 1;
  }

  paintTexts(context, boxes, top, size, width, row) {
    if (row.moments) return;
    const { palette, look } = this;
    for (const box of boxes) {
      const [left, right] = [Math.max(0, box.left), Math.min(width, box.right)];
      if (right - left < NARROWEST_TEXT) continue;
      context.fillStyle = look.flags && !look.flags[box.symbol] ? palette.faint : palette.text;
      context.fillText(this.fitted(context, box.symbol, right - left - 2 * PADDING), left + PADDING, top + box.depth * size + size / 2);
    }
  }

  /** A name, a shorter form of it, or as much as fits. */
  fitted(context, symbol, width) {
    let forms = this.forms.get(symbol);
    if (!forms) {
      forms = this.symbols.forms(symbol).map((text) => ({ text, full: context.measureText(text).width }));
      if (symbol < this.symbols.names.length) this.forms.set(symbol, forms);
    }
    const form = forms.find(({ full }) => full <= width);
    if (form) return form.text;
    const { text, full } = forms.at(-1);
    const letters = Math.floor((text.length * width) / full) - 1;
    return letters >= 3 ? `${text.slice(0, letters)}…` : "";
  }

  counter(context, top, row) {
    const values = this.look.counters?.get(row.counter.counter);
    if (!values || (!values.t.length && values.before === null)) return;
    const { scale } = this.look;
    const { height } = row;
    const { min, max } = row.counter;
    const low = Math.min(0, min);
    const y = (value) => top + height - 2 - ((value - low) / (max - low || 1)) * (height - 6);
    context.beginPath();
    // Between two values it has the earlier one; where there are more than points of the screen, the greatest are drawn.
    let held = values.before;
    let lastX = scale.x(values.from);
    if (held !== null) context.moveTo(lastX, y(held));
    values.t.forEach((time, at) => {
      lastX = scale.x(time);
      if (held !== null) context.lineTo(lastX, y(held));
      context[held === null ? "moveTo" : "lineTo"](lastX, y(values.max[at]));
      held = values.last[at];
    });
    context.lineTo(Math.max(lastX, Math.min(scale.width, scale.x(this.look.span))), y(held));
    context.strokeStyle = this.palette.accent;
    context.lineWidth = 1.25;
    context.stroke();
    context.fillStyle = this.palette.edge;
    context.fillRect(0, top + height - 1, scale.width, 1);
  }

  /** The box under a point: `{ row, box, top, size }`. */
  at(x, y) {
    for (const { row, top, size, boxes } of this.hits ?? []) {
      if (y < top || y >= top + row.depths * size || y < AXIS) continue;
      const depth = Math.floor((y - top) / size);
      let best = null;
      let nearest = 3;
      for (const box of boxes) {
        if (box.depth !== depth) continue;
        const distance = x < box.left ? box.left - x : x > box.right ? x - box.right : 0;
        if (distance < nearest) [best, nearest] = [box, distance];
        if (distance === 0) break;
      }
      return { row, box: best, top, size };
    }
    return null;
  }
}

// What is drawn over the timeline without drawing it again: the pointer's line, the selection, the chosen box.

import { momentText } from "../data/times.js";
import { FONT } from "../widgets/font.js";
import { AXIS } from "./painter.js";

/** A transparent canvas over that of the timeline. */
export class Overlay {
  constructor(host, view) {
    Object.assign(this, { host, view, pointer: null, hovered: null, draft: null });
    this.canvas = document.createElement("canvas");
    this.canvas.className = "overlay";
    this.canvas.setAttribute("aria-hidden", "true");
    host.append(this.canvas);
    this.context = this.canvas.getContext("2d");
  }

  show(part) {
    Object.assign(this, part);
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.frame = undefined;
    const { host, canvas, context, view } = this;
    const [width, height] = [host.clientWidth, host.clientHeight];
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      Object.assign(canvas, { width: wide, height: high });
      Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const { scale, palette } = view;
    const { range, base } = view.app.state;
    const draft = this.draft;
    this.band(scale, height, draft?.isBase ? draft.range : base, palette.base);
    this.band(scale, height, draft && !draft.isBase ? draft.range : range, palette.accent);
    this.outline(scale);
    if (this.pointer) this.line(scale, width, height);
  }

  band(scale, height, range, colour) {
    if (!range) return;
    const { context } = this;
    const [left, right] = range.map((time) => scale.x(time));
    context.fillStyle = colour;
    context.globalAlpha = 0.14;
    context.fillRect(left, 0, Math.max(1, right - left), height);
    context.globalAlpha = 1;
    context.fillRect(Math.round(left), 0, 1, height);
    context.fillRect(Math.round(right), 0, 1, height);
    context.fillRect(left, AXIS - 3, Math.max(1, right - left), 3);
  }

  outline(scale) {
    const { view, context } = this;
    const { palette } = view;
    const draw = (track, depth, start, duration, width) => {
      const hit = view.painter.hits?.find(({ row }) => row.track.track === track);
      if (!hit || depth >= hit.row.depths) return;
      const left = Math.max(-4, scale.x(start));
      const right = Math.min(scale.width + 4, Math.max(scale.x(start + duration), scale.x(start) + 3));
      context.strokeStyle = palette.line;
      context.lineWidth = width;
      const top = hit.top + depth * hit.size;
      if (top < AXIS - hit.size || right < 0 || left > scale.width) return;
      context.strokeRect(left + width / 2, top + width / 2, Math.max(1, right - left - width - 1), hit.size - width - 1);
    };
    if (this.hovered) draw(this.hovered.row.track.track, this.hovered.box.depth, this.hovered.box.start, this.hovered.box.duration, 1);
    const slice = view.chosen?.slice;
    if (slice) draw(slice.track, slice.depth, slice.start_ns, slice.duration_ns, 2);
  }

  line(scale, width, height) {
    const { context, view: { palette } } = this;
    const [x] = this.pointer;
    context.fillStyle = palette.quiet;
    context.globalAlpha = 0.6;
    context.fillRect(Math.round(x), AXIS, 1, height);
    context.globalAlpha = 1;
    const text = momentText(scale.time(x), scale.perPixel);
    context.font = FONT;
    context.textBaseline = "middle";
    const wide = context.measureText(text).width + 10;
    const left = Math.min(Math.max(0, x - wide / 2), width - wide);
    context.fillStyle = palette.text;
    context.fillRect(left, 3, wide, AXIS - 8);
    context.fillStyle = palette.page;
    context.fillText(text, left + 5, AXIS / 2 - 1);
  }
}

// A canvas that fills its element, drawn at most once a frame, and the same drawing as PNG or SVG.

import { SvgContext } from "./svg_context.js";

/** A canvas of the size of its host. `draw(context, width, height)` draws everything. */
export class PaneCanvas {
  constructor(host, draw, { label = "" } = {}) {
    Object.assign(this, { host, draw });
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    if (label) this.canvas.ariaLabel = label;
    host.append(this.canvas);
    this.context = this.canvas.getContext("2d", { alpha: false });
    new ResizeObserver(() => this.paint()).observe(host);
  }

  get width() {
    return this.host.clientWidth;
  }

  get height() {
    return this.host.clientHeight;
  }

  /** Draws in the next frame. */
  request() {
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.frame = undefined;
    const { width, height, canvas, context } = this;
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      Object.assign(canvas, { width: wide, height: high });
      Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw(context, width, height);
  }

  /** The picture as SVG. */
  svg() {
    const context = new SvgContext(this.width, this.height);
    this.draw(context, this.width, this.height);
    return context.toString();
  }
}

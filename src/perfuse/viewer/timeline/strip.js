// The whole recording in one strip: activity by origin of code, and the part of it that the timeline shows.

import { ENDED } from "../data/server.js";
import { PaneCanvas } from "../widgets/pane_canvas.js";
import { h } from "../widgets/dom.js";

const BUCKETS = 800;
const LEAST = 6;

/** The strip above the timeline. Dragging in it moves or resizes the window. */
export class Strip {
  constructor(host, app, palette, { onWindow }) {
    Object.assign(this, { host, app, palette, onWindow });
    this.pane = new PaneCanvas(host, (context, width, height) => this.draw(context, width, height), { label: "Activity over the whole recording" });
    this.pane.canvas.setAttribute("aria-hidden", "true");
    const key = (event) => this.key(event);
    this.slider = h("div.strip-slider", { role: "slider", tabIndex: 0, "aria-label": "Time in sight", "aria-valuemin": "0", onkeydown: key });
    host.append(this.slider);
    this.bind();
  }

  /** Loads the activity; the timeline is computed by then. */
  async load() {
    const { has } = this.app.overview;
    if (!has.samples && !has.calls) return;
    try {
      this.activity = await this.app.server.columns("activity", { buckets: BUCKETS, by: "origin" });
      this.pane.request();
    } catch (error) {
      // The strip then shows the window only; a server that has ended is reported by the timeline itself.
      if (error.code !== ENDED) throw error;
    }
  }

  show({ from, to, range, base, text }) {
    Object.assign(this, { from, to, range, base });
    this.slider.ariaValueText = text;
    this.slider.ariaValueNow = String(Math.round(from));
    this.slider.ariaValueMax = String(Math.round(this.app.span));
    this.pane.request();
  }

  draw(context, width, height) {
    const { palette, activity, app } = this;
    context.fillStyle = palette.raised;
    context.fillRect(0, 0, width, height);
    if (activity) this.drawActivity(context, width, height);
    const x = (time) => (time / app.span) * width;
    for (const [range, colour] of [[this.base, palette.base], [this.range, palette.accent]]) {
      if (!range) continue;
      context.globalAlpha = 0.3;
      context.fillStyle = colour;
      context.fillRect(x(range[0]), 0, Math.max(2, x(range[1]) - x(range[0])), height);
      context.globalAlpha = 1;
    }
    const [left, right] = [x(this.from ?? 0), Math.max(x(this.to ?? app.span), x(this.from ?? 0) + 2)];
    context.globalAlpha = 0.6;
    context.fillStyle = palette.page;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    context.strokeRect(left + 1, 1, Math.max(1, right - left - 2), height - 2);
  }

  drawActivity(context, width, height) {
    const { activity: { labels, columns: { cells }, buckets }, palette, app } = this;
    const sums = new Float64Array(buckets);
    for (let row = 0; row < labels.length; row++) for (let at = 0; at < buckets; at++) sums[at] += cells[row * buckets + at];
    const most = sums.reduce((a, b) => Math.max(a, b), 0) || 1;
    const base = new Float64Array(buckets);
    const origins = app.overview.origins.map(({ name, label }) => [name, label]);
    labels.forEach((label, row) => {
      const origin = origins.findIndex((names) => names.includes(label));
      context.fillStyle = origin < 0 ? palette.accent : palette.ofOrigin(origin);
      for (let at = 0; at < buckets; at++) {
        const cell = cells[row * buckets + at];
        if (!cell) continue;
        const [low, high] = [(base[at] / most) * (height - 4), ((base[at] + cell) / most) * (height - 4)];
        base[at] += cell;
        context.fillRect((at / buckets) * width, height - high, width / buckets + 0.5, high - low);
      }
    });
  }

  bind() {
    const { host } = this;
    const timeAt = (event) => {
      const { left, width } = host.getBoundingClientRect();
      return (Math.min(Math.max(event.clientX - left, 0), width) / width) * this.app.span;
    };
    let drag = null;
    host.addEventListener("pointerdown", (event) => {
      host.setPointerCapture(event.pointerId);
      const time = timeAt(event);
      const near = (LEAST * this.app.span) / host.clientWidth;
      const whole = this.to - this.from > 0.98 * this.app.span;
      const edge = !whole && Math.abs(time - this.from) < near ? "from" : !whole && Math.abs(time - this.to) < near ? "to" : null;
      const inside = !whole && time > this.from && time < this.to;
      drag = { kind: edge ?? (inside ? "move" : "new"), time, from: this.from, to: this.to };
    });
    host.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const time = timeAt(event);
      const by = time - drag.time;
      const windows = { from: [time, drag.to], to: [drag.from, time], move: [drag.from + by, drag.to + by], new: [drag.time, time] };
      const [from, to] = windows[drag.kind].toSorted((a, b) => a - b);
      if (to > from) this.onWindow(from, to);
    });
    host.addEventListener("pointerup", () => (drag = null));
    host.addEventListener("dblclick", () => this.onWindow(0, this.app.span));
  }

  key(event) {
    const step = (this.to - this.from) / 10;
    const by = { ArrowLeft: -step, ArrowRight: step, PageUp: -10 * step, PageDown: 10 * step }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.onWindow(this.from + by, this.to + by);
  }
}

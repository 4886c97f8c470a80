// The timeline: what ran when, at any scale.

import { Symbols } from "../data/symbols.js";
import { tileLength, Tiles } from "../data/tiles.js";
import { commandOfTime, lengthText, momentText, rangeText } from "../data/times.js";
import { Palette } from "../flame/palette.js";
import { visible } from "../flame/format.js";
import { matcher } from "../flame/search.js";
import { functionState } from "../flame/symbols.js";
import { h, toggles } from "../widgets/dom.js";
import { Hint } from "../widgets/hint.js";
import { PaneCanvas } from "../widgets/pane_canvas.js";
import { Colours } from "./colours.js";
import { valueAt, valueText } from "./counters.js";
import { bindGestures } from "./gestures.js";
import { Headers } from "./headers.js";
import { depthsAsked, layoutRows } from "./layout.js";
import { timelineKey, TIMELINE_KEYS } from "./keys.js";
import { Overlay } from "./overlay.js";
import { AXIS, RowsPainter, Scale } from "./painter.js";
import { Panel } from "./panel.js";
import { Strip } from "./strip.js";

const NARROWEST = 20;
const WAIT_MS = 140;

/** The tab "Timeline". */
export class TimelineView {
  constructor(app, host) {
    Object.assign(this, { app, host, scroll: 0, folded: new Map(), keys: TIMELINE_KEYS, window: [0, app.span] });
    this.symbols = new Symbols(app.server, app.overview);
    this.palette = new Palette(this.symbols);
    this.colours = new Colours(this.palette, this.symbols);
    this.tiles = new Tiles(app.server, () => this.paint());
    this.tiles.onFailure = (error) => app.fail(this, error);
    this.counters = new Map();
    this.painter = new RowsPainter(this);
    this.makeElements();
    this.palette.onChange(() => (this.colours.update(), this.paint()));
  }

  makeElements() {
    const { app, host } = this;
    this.search = h("input", { type: "search", id: "timeline-search", placeholder: "Highlight, regex ( / )", "aria-label": "Highlight functions by name or regular expression", spellcheck: false, autocomplete: "off", oninput: () => this.app.change({ q: this.search.value }) });
    const button = (text, title, act) => h("button", { title, "aria-label": title.replace(/ \(.*/, ""), onclick: act }, text);
    this.where = h("output.where", { "aria-live": "off" });
    const bar = h("div.bar", { role: "toolbar", "aria-label": "Timeline" },
      button("+", "Zoom in (w)", () => this.zoom(0.5)), button("−", "Zoom out (s)", () => this.zoom(2)), button("Whole", "The whole recording (0)", () => this.setWindow(0, app.span)),
      this.fit = button("Fit selection", "Zoom to the selection (f)", () => this.fitSelection()),
      this.toFlame = button("Flame graph", "Flame graph of the selection (Enter)", () => app.change({ tab: "flame" })),
      this.where, h("span.room"), this.tableChoice = h("span"), this.search);
    const strip = h("div.strip");
    this.headersHost = h("div.headers", { role: "group", "aria-label": "Rows of the timeline" });
    this.canvasHost = h("div.canvas", { tabIndex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": "Timeline. Arrow keys walk over the calls, w and s zoom, a and d move." });
    this.scrollbar = h("div.scrollbar", { onscroll: () => this.scrolled(), tabIndex: -1 }, this.filler = h("div"));
    this.body = h("div.timeline-body", {}, this.headersHost, this.canvasHost, this.scrollbar);
    this.panelHost = h("div.panel");
    host.replaceChildren(bar, strip, this.body, this.panelHost);
    this.pane = new PaneCanvas(this.canvasHost, (context, width, height) => this.draw(context, width, height), { label: "Timeline" });
    this.overlay = new Overlay(this.canvasHost, this);
    this.strip = new Strip(strip, app, this.palette, { onWindow: (from, to) => this.setWindow(from, to) });
    this.headers = new Headers(this.headersHost, this);
    this.panel = new Panel(this.panelHost, this);
    this.hint = new Hint();
    bindGestures(this.canvasHost, this);
  }

  async update(state) {
    await this.ready();
    const key = JSON.stringify([state.threads, state.processes]);
    if (key !== this.rowsKey) {
      this.rowsKey = key;
      this.layOut();
    }
    if (state.window) this.window = this.clipped(...state.window);
    else if (!this.moved) this.window = [0, this.app.span];
    if (this.search.value !== (state.q ?? "")) this.search.value = state.q ?? "";
    this.flags = state.q ? this.matching(state.q) : null;
    this.fit.hidden = this.toFlame.hidden = !state.range;
    this.paint();
    this.panel.rangeChanged(state);
  }

  /** Waits until the index of the timeline is there. */
  async ready() {
    this.loading ??= this.load();
    try {
      await this.loading;
    } catch (error) {
      this.loading = undefined;
      throw error;
    }
  }

  async load() {
    const { app } = this;
    const answer = await app.timeline(() => this.waiting ?? this.host.prepend(this.waiting = this.waitingNote())).finally(() => this.waiting?.remove());
    await this.symbols.load();
    this.colours.update();
    this.timeline = answer;
    this.strip.load();
  }

  /** What is shown while the timeline is computed. */
  waitingNote() {
    const cancel = h("button", { onclick: () => this.app.server.post("cancel", {}) }, "Cancel");
    return h("p.note", { role: "status" }, "The timeline is being computed… ", h("progress", { "aria-label": "Computing the timeline" }), " ", cancel);
  }

  matching(text) {
    const test = matcher(text);
    return Uint8Array.from(this.symbols.names, (name) => (test.test(name) ? 1 : 0));
  }

  layOut() {
    const { threads, processes } = this.app.state;
    const isOpen = (key, usual) => this.folded.get(key) ?? usual;
    Object.assign(this, layoutRows(this.timeline, this.app.overview, { isOpen, only: { threads, processes } }));
    const { tracks, counters } = this.timeline;
    this.pane.canvas.ariaLabel = `${tracks.length} tracks, ${counters.length} counters, ${lengthText(this.app.span)}`;
    this.filler.style.height = `${this.height + AXIS}px`;
    this.headers.show(this.rows);
    this.showTableChoice();
  }

  /** Where there are counters, the table has boxes or counters. */
  showTableChoice() {
    const show = (kind) => (this.panel.show(kind), this.showTableChoice());
    const kinds = [["boxes", "Boxes", "The table below has the boxes in sight"], ["counters", "Counters", "The table below has the counters in sight"]];
    this.tableChoice.replaceChildren(this.timeline.counters.length ? toggles("Table below", kinds, this.panel.tabled, show) : "");
  }

  toggle(row) {
    this.folded.set(row.key, !row.open);
    this.layOut();
    this.paint();
  }

  clipped(from, to) {
    const { span } = this.app;
    const length = Math.min(Math.max(to - from, NARROWEST), span);
    const start = Math.min(Math.max(0, from), span - length);
    return [start, start + length];
  }

  setWindow(from, to) {
    this.window = this.clipped(from, to);
    this.moved = true;
    this.paint();
    clearTimeout(this.writing);
    const whole = this.window[0] <= 0 && this.window[1] >= this.app.span;
    this.writing = setTimeout(() => this.app.change({ window: whole ? null : this.window.map(Math.round) }, { push: false }), WAIT_MS);
  }

  get scale() {
    return new Scale(this.window, Math.max(1, this.canvasHost.clientWidth));
  }

  /** The time in sight in whole nanoseconds, as the server is asked for it; the end is not included. */
  get windowAsked() {
    const [from, to] = this.window;
    return [Math.floor(from), Math.ceil(to) >= this.app.span ? this.app.span + 1 : Math.ceil(to)];
  }

  paint() {
    if (!this.rows) return;
    delete this.host.dataset.filled;
    this.pane.request();
    const [from, to] = this.window;
    this.where.textContent = `${rangeText(this.window)} · ${lengthText(to - from)}`;
    const { range, base } = this.app.state;
    this.strip.show({ from, to, range, base, text: this.where.textContent });
  }

  draw(context, width, height) {
    if (!this.rows) {
      context.fillStyle = this.palette.page;
      return context.fillRect(0, 0, width, height);
    }
    const { scale } = this;
    const { finest_k, top_k } = this.timeline;
    const k = scale.k(Math.max(0, finest_k), top_k);
    const look = { rows: this.rows, scroll: this.scroll, scale, k, counters: this.counters, flags: this.flags, span: this.app.span };
    this.painter.paint(context, width, height, look);
    this.headers.place(this.scroll);
    this.overlay.paint();
    this.ask(k, scale, height);
    this.host.dataset.pending = look.pending ? "tiles" : "";
    this.panel.viewChanged();
  }

  /** Asks for the tiles in sight, then for those beside and above them. */
  ask(k, scale, height) {
    const inSight = this.rows.filter(({ top, height: high }) => top - this.scroll < height && top + high - this.scroll > -AXIS);
    const tracks = inSight.filter(({ track }) => track).map((row) => [row.track.track, depthsAsked(row, AXIS + row.top - this.scroll, height)]);
    const last = Math.floor(this.app.span / tileLength(k));
    const [from, to] = [Math.floor(scale.from / tileLength(k)), Math.floor(scale.to / tileLength(k))].map((tile) => Math.min(Math.max(tile, 0), last));
    const wanted = [{ k, first: from, last: to, tracks }];
    if (k < this.timeline.top_k) wanted.push({ k: k + 1, first: from >> 1, last: to >> 1, tracks });
    if (from > 0) wanted.push({ k, first: from - 1, last: from - 1, tracks });
    if (to < last) wanted.push({ k, first: to + 1, last: to + 1, tracks });
    this.tiles.want(wanted);
    this.askCounters(inSight.filter(({ counter }) => counter), scale);
  }

  async askCounters(rows, scale) {
    const margin = scale.to - scale.from;
    const ids = rows.map(({ counter }) => counter.counter);
    const [from, to] = [Math.max(0, Math.floor(scale.from - margin)), Math.min(this.app.span + 1, Math.ceil(scale.to + margin))];
    const key = JSON.stringify([ids, Math.round(Math.log2(margin) * 2), Math.round((2 * scale.from) / margin)]);
    if (!ids.length || key === this.countersKey) return;
    this.countersKey = key;
    try {
      const answer = await this.app.server.json("counters", { counter: ids.join(","), from, to, buckets: 2000 }, { latest: "counters" });
      for (const counter of answer.counters) this.counters.set(counter.counter, { ...counter, from: answer.from });
      this.pane.request();
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  // What gestures and keys do.

  zoom(factor, x = this.canvasHost.clientWidth / 2) {
    const middle = this.scale.time(x);
    const [from, to] = this.window;
    const length = Math.min(Math.max((to - from) * factor, NARROWEST), this.app.span);
    const share = (middle - from) / (to - from);
    this.setWindow(middle - length * share, middle + length * (1 - share));
  }

  pan(pixels) {
    const by = pixels * this.scale.perPixel;
    this.setWindow(this.window[0] + by, this.window[1] + by);
  }

  scrollBy(pixels) {
    this.scrollbar.scrollTop += pixels;
  }

  scrolled() {
    this.scroll = this.scrollbar.scrollTop;
    this.paint();
  }

  hover(x, y) {
    const hit = this.painter.at(x, y);
    this.overlay.show({ pointer: [x, y], hovered: hit?.box && hit });
    const { counter } = hit ? {} : this.counterAt(y) ?? {};
    if (counter) return this.hoverCounter(counter, x, y);
    if (!hit?.box) return this.hint.hide();
    const { box, row } = hit;
    const { left, top } = this.canvasHost.getBoundingClientRect();
    const many = box.count > 1;
    const lines = row.moments
      ? [["at", momentText(box.start, this.scale.perPixel)]]
      : [["starts", momentText(box.start, this.scale.perPixel)], [many ? "longest" : "duration", lengthText(box.duration)]];
    if (many) lines.unshift([row.moments ? "events" : row.track.kind === "calls" ? "calls" : "times", `${box.count.toLocaleString("en-US")}${row.moments ? "" : `, ${lengthText(box.busy)} together`}`]);
    lines.push(["tier", this.symbols.tier[box.symbol]], ["source", this.symbols.place(box.symbol)], ["module", this.symbols.module[box.symbol]]);
    this.hint.show(this.symbols.name(box.symbol), lines, x + left, y + top);
  }

  /** The row of a counter at a height. */
  counterAt(y) {
    const at = y - AXIS + this.scroll;
    return y < AXIS ? null : this.rows?.find(({ kind, top, height }) => kind === "counter" && at >= top && at < top + height);
  }

  hoverCounter(counter, x, y) {
    const { left, top } = this.canvasHost.getBoundingClientRect();
    const series = this.counters.get(counter.counter);
    const moment = this.scale.time(x);
    const value = series ? valueAt(series, moment) : null;
    if (value === null) return this.hint.hide();
    this.hint.show(visible(counter.name), [["value", `${valueText(value)} ${visible(counter.unit ?? "")}`.trim()], ["at", momentText(moment, this.scale.perPixel)]], x + left, y + top);
  }

  leave() {
    this.overlay.show({ pointer: null, hovered: null });
    this.hint.hide();
  }

  click(x, y) {
    const hit = this.painter.at(x, y);
    this.canvasHost.focus({ preventScroll: true });
    const row = hit ? null : this.counterAt(y);
    if (hit?.box) this.select(hit.row.track, hit.box.depth, hit.box.index);
    else if (row) this.panel.showCounter(row.counter);
    else this.deselect();
  }

  open(x, y) {
    const hit = this.painter.at(x, y);
    if (hit?.box) this.showSlice(hit.box.start, hit.box.duration);
  }

  selecting(from, to, isBase) {
    const { scale } = this;
    this.overlay.show({ draft: from === null ? null : { range: [scale.time(from), scale.time(to)], isBase } });
  }

  selected(from, to, isBase) {
    const { scale, app } = this;
    const range = [Math.max(0, Math.floor(scale.time(from))), Math.min(app.span, Math.ceil(scale.time(to)))];
    this.overlay.show({ draft: null });
    if (range[1] > range[0]) app.change({ [isBase ? "base" : "range"]: range });
    app.announce(`${isBase ? "To compare with" : "Selected"}: ${rangeText(range)}`);
  }

  fitSelection() {
    const { range } = this.app.state;
    if (range) this.showSlice(range[0], range[1] - range[0]);
  }

  /** Brings a piece of time into sight, with a margin. */
  showSlice(start, duration) {
    const margin = Math.max(duration * 0.08, NARROWEST / 2);
    this.setWindow(start - margin, start + duration + margin);
  }

  /** Selects one box: the panel shows it. */
  async select(track, depth, index) {
    await this.app.run(this, async () => {
      await this.ready();
      const answer = await this.app.server.json("slice", { track: track.track, depth, index }, { latest: "slice" });
      this.chosen = { track, ...answer };
      this.reveal(answer.slice);
      this.panel.showSlice(this.chosen);
      this.overlay.paint();
    });
  }

  deselect() {
    this.chosen = null;
    this.panel.showSlice(null);
    this.overlay.paint();
  }

  /** Brings a slice into sight if it is not. */
  reveal({ start_ns: start, duration_ns: duration, track, depth }) {
    const [from, to] = this.window;
    if (start > to || start + duration < from) this.setWindow(start - (to - from) / 2, start + (to - from) / 2);
    const row = this.rows.find((each) => each.track?.track === track);
    if (!row) return;
    const top = row.top + (row.depths > 1 ? depth * 17 : 0);
    const height = this.canvasHost.clientHeight - AXIS;
    if (top < this.scroll || top + 34 > this.scroll + height) this.scrollbar.scrollTop = Math.max(0, top - height / 2);
  }

  /** Scrolls a row into sight if it is not. */
  revealRow({ top, height }) {
    const room = this.canvasHost.clientHeight - AXIS;
    if (top < this.scroll) this.scrollbar.scrollTop = top;
    else if (top + height > this.scroll + room) this.scrollbar.scrollTop = top + Math.min(height, room) - room;
  }

  key(event) {
    return timelineKey(this, event);
  }

  /** The function that other views are asked for. */
  get chosenFunction() {
    return functionState(this.chosen?.slice);
  }

  save() {
    const { overview } = this.app;
    return {
      png: () => new Promise((resolve) => this.pane.canvas.toBlob(resolve)),
      svg: () => this.pane.svg(),
      csv: () => this.panel.csv(),
      command: this.chosen?.command ?? commandOfTime(overview.command, this.window.map(Math.round), overview),
    };
  }
}

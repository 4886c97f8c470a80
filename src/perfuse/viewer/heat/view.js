// The tab "Heat map": when work was done, by the second, by thread, by tier, or how long calls took over time.

import { rgb } from "../timeline/colours.js";
import { lengthText, momentText, rangeText, tickStep } from "../data/times.js";
import { amountText, visible, weightText } from "../flame/format.js";
import { Palette } from "../flame/palette.js";
import { choice, h } from "../widgets/dom.js";
import { FONT } from "../widgets/font.js";
import { Grid } from "../widgets/grid.js";
import { Hint } from "../widgets/hint.js";
import { PaneCanvas } from "../widgets/pane_canvas.js";
import { SvgContext } from "../widgets/svg_context.js";
import { ramp, stepOf } from "./ramp.js";

const LEFT = 64;
const WIDEST_LEFT = 220;
const BOTTOM = 26;
const TOP = 6;
const MOST_COLUMNS = 1200;
/** Cells that the table has, the hottest first. */
const MOST_CELLS = 50_000;
const LONG_NS = 4e9;
/** Letters at the end of a label that are always shown. */
const ENDS = 7;
const KINDS = [["seconds", "offset in the second"], ["threads", "thread"], ["processes", "process"], ["processors", "processor"], ["origins", "origin of code"], ["tiers", "tier"], ["latency", "length of calls"]];

/** The heat map. Dragging selects cells; with Shift it selects what to compare with. */
export class HeatView {
  constructor(app, host) {
    Object.assign(this, { app, host, cursor: null });
    this.keys = [["← → ↑ ↓", "move the cursor over the cells"], ["Shift ← →", "extend the selection"], ["Enter", "flame graph of the selection, or of the cell"], ["drag", "select a time; with Shift, what to compare it with"]];
    this.palette = new Palette({ origins: app.overview.origins, shades: app.overview.shades });
    this.bar = h("div.bar");
    this.legend = h("div.ramp", { role: "img" });
    this.canvasHost = h("div.canvas", { tabIndex: 0, role: "application", "aria-roledescription": "heat map", "aria-label": "Heat map. Arrow keys move over the cells; the table has them, the hottest first." });
    this.tableHost = h("div.grid-host");
    host.replaceChildren(this.bar, h("div.heat-panes", {}, this.canvasHost, h("div.side", {}, this.legend, this.tableHost)));
    this.pane = new PaneCanvas(this.canvasHost, (context, width, height) => this.draw(context, width, height), { label: "Heat map" });
    this.hint = new Hint();
    this.grid = new Grid(this.tableHost, {
      label: "Hottest cells", empty: "Nothing was recorded.",
      columns: [
        { key: "time", label: "Hottest cells", text: ({ column, row }) => momentText(this.timeOf(column, row), this.cellLength), value: ({ column, row }) => this.timeOf(column, row), hint: ({ row }) => this.rowLabel(row) },
        { key: "value", label: "Amount", number: true, sort: true, width: "7rem", text: ({ value }) => amountText(value, this.heat.unit), value: ({ value }) => value, share: ({ value }) => value / this.most },
      ],
      onOpen: (cell) => this.selectCells(cell, cell, false),
    });
    this.palette.onChange(() => this.pane.request());
    this.bind();
  }

  /** What says most: offsets in seconds where there are some seconds, else threads, else the lengths of calls. */
  get usualKind() {
    const { span, overview } = this.app;
    if (span >= LONG_NS) return "seconds";
    if (overview.threads.length > 1) return "threads";
    return overview.has.calls ? "latency" : "origins";
  }

  /** The column length that gives the most columns that are still seen. */
  columnLength(kind) {
    const { span } = this.app;
    const given = Number(this.app.state.column);
    if (given > 0) return given;
    if (kind === "seconds") return [1e9, 10e9, 60e9].find((length) => span / length <= MOST_COLUMNS) ?? 300e9 * Math.ceil(span / MOST_COLUMNS / 300e9);
    return Math.max(1, tickStep(span / 300));
  }

  async update(state) {
    const asked = KINDS.some(([name]) => name === state.heat) ? state.heat : this.usualKind;
    // The map of origins is of all samples.
    const kind = asked === "origins" && state.filters?.length ? "tiers" : asked;
    const column = this.columnLength(kind);
    const rows = kind === "seconds" ? 50 : undefined;
    const filtered = kind !== "latency" && !this.isOfCalls;
    const { from, to, ...selection } = filtered ? this.app.selection() : this.app.unfiltered();
    const key = JSON.stringify([kind, column, selection, state.function, state.handle]);
    if (key !== this.shown) {
      this.tracks = this.app.overview.has.timeline ? (await this.app.timeline()).tracks : [];
      const of = kind === "latency" ? await this.functionOf(state) : {};
      const answer = await this.app.server.columns("heat", { kind, column_ns: column, rows, ...selection, ...of }, { latest: "heat" });
      this.heat = kind === "seconds" ? answer : cropped(answer, kind === "latency");
      this.shown = key;
      this.kind = kind;
      this.most = answer.columns.cells.reduce((most, value) => Math.max(most, value), 0) || 1;
      this.showControls(kind, column);
      this.showTable();
    }
    this.pane.request();
    this.host.dataset.kind = this.kind;
  }

  /** Whether the map is of calls, to which filters of stacks do not apply. */
  get isOfCalls() {
    return !this.app.overview.has.samples;
  }

  /** Whether there is something to show: calls have lengths, samples have origins, tiers, and processors where these were recorded. */
  hasKind(kind) {
    const { overview, state } = this.app;
    if (kind === "latency") return overview.has.calls;
    if (kind === "processors") return overview.has.samples && this.tracks.some((track) => track.kind === "cpu");
    if (kind === "origins") return overview.has.samples && !state.filters?.length;
    return kind !== "tiers" || overview.has.samples;
  }

  /** The function in focus, as parameters of a request. */
  async functionOf({ function: name, handle }) {
    if (name === undefined) return {};
    if (handle === undefined) {
      const { num } = await this.app.server.json("find", { q: name, limit: 1 });
      if (!num) throw Object.assign(new Error(`No call of a function with ${name} in its name was recorded.`), { code: "no_function" });
    }
    return { function: name, handle };
  }

  showControls(kind, column) {
    const { app } = this;
    const kinds = KINDS.filter(([key]) => this.hasKind(key));
    const lengths = [...new Set([column, ...[1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 6e10].filter((length) => app.span / length <= MOST_COLUMNS && app.span / length >= 4)])].sort((a, b) => a - b);
    this.bar.replaceChildren(
      choice("Rows", kinds, kind, (heat) => app.change({ heat, column: null })),
      choice("Columns", lengths.map((length) => [String(length), lengthText(length)]), String(column), (value) => app.change({ column: value })),
      kind === "latency" ? this.functionInput() : "",
      h("button", { onclick: () => app.change({ tab: "flame" }), title: "Flame graph of the selection (Enter)" }, "Flame graph"),
      h("output.where", {}, kind === "latency" ? `calls of ${this.functionsText}` : `${weightText(this.heat.total ?? 0, this.heat.unit)} in all`),
    );
    const colours = ramp(this.palette.isDark);
    const bar = h("span.ramp-bar");
    bar.style.background = `linear-gradient(to right, ${colours.filter((_, at) => at % 7 === 0).join(", ")})`;
    this.legend.replaceChildren("0 ", bar, ` ${weightText(this.most, this.heat.unit)} a cell${this.isLogarithmic ? ", logarithmic" : ""}`);
    this.legend.ariaLabel = `Colours from 0 to ${weightText(this.most, this.heat.unit)} a cell`;
  }

  /** The functions whose calls the map is of. */
  get functionsText() {
    const { function: name, num_functions: number } = this.heat;
    if (name === undefined) return "all functions";
    return number > 1 ? `${visible(name)}, ${number} functions of this name` : visible(name);
  }

  /** Which function's calls the map is of; empty is all. */
  functionInput() {
    const { app } = this;
    return h("input", { type: "search", value: app.state.function ?? "", placeholder: "all functions", "aria-label": "Calls of this function", spellcheck: false, autocomplete: "off", onchange: ({ target }) => app.change({ function: target.value || null }) });
  }

  showTable() {
    const { columns: { cells }, columns_num: width, rows_num: height } = this.heat;
    const found = [];
    for (let row = 0; row < height; row++) for (let column = 0; column < width; column++) {
      const value = cells[row * width + column];
      if (value > 0) found.push({ column, row, value });
    }
    found.sort((a, b) => b.value - a.value);
    const foot = found.length > MOST_CELLS ? `the hottest of ${found.length.toLocaleString("en-US")} cells` : "";
    this.grid.show(found.slice(0, MOST_CELLS), { foot });
    this.pane.canvas.ariaLabel = found.length ? `${width} columns of ${lengthText(this.heat.column_ns)}, ${height} rows; the hottest cell is at ${momentText(this.timeOf(found[0].column, found[0].row), this.cellLength)}` : "Nothing was recorded.";
  }

  get isSeconds() {
    return this.kind === "seconds";
  }

  get cellLength() {
    return this.isSeconds ? this.heat.row_ns : this.heat.column_ns;
  }

  timeOf(column, row) {
    return (this.heat.zero_ns ?? 0) + column * this.heat.column_ns + (this.isSeconds ? row * this.heat.row_ns : 0);
  }

  rowLabel(row) {
    const label = this.heat.labels?.[row] ?? row;
    if (this.kind === "latency") return Number.isNaN(Number(label)) ? visible(String(label)) : lengthText(Number(label));
    return this.isSeconds ? "" : visible(String(label));
  }

  /** Room for the names of rows: as much as they need, at most a third of the picture. */
  leftOf(context, width) {
    context.font = FONT;
    const labels = Array.from({ length: Math.min(this.heat.rows_num, 200) }, (_, row) => this.rowLabel(row));
    const widest = Math.max(0, ...labels.map((label) => context.measureText(label).width));
    return Math.max(LEFT, Math.min(Math.ceil(widest) + 14, WIDEST_LEFT, width / 3));
  }

  size(width, height) {
    const { columns_num, rows_num } = this.heat;
    const [wide, high] = [width - this.left - 8, height - TOP - BOTTOM];
    // Few cells are not blown up to bars.
    return { cellWidth: Math.min(wide / columns_num, 24), cellHeight: Math.min(high / rows_num, this.isSeconds ? high / rows_num : 28) };
  }

  draw(context, width, height) {
    const { palette, heat } = this;
    context.fillStyle = palette.page;
    context.fillRect(0, 0, width, height);
    if (!heat) return;
    this.left = this.leftOf(context, width);
    const { cellWidth, cellHeight } = this.size(width, height);
    const { columns_num: numColumns, rows_num: numRows, columns: { cells } } = heat;
    const colours = ramp(palette.isDark);
    const [wide, high] = [cellWidth * numColumns, cellHeight * numRows];
    // The first row is at the bottom for offsets and lengths, as on a chart; names are read from the top.
    const line = (row) => (this.isUpwards ? numRows - 1 - row : row);
    if (context instanceof SvgContext) {
      for (let at = 0; at < cells.length; at++) {
        if (!cells[at]) continue;
        context.fillStyle = colours[stepOf(cells[at], this.most, this.isLogarithmic)];
        context.fillRect(this.left + (at % numColumns) * cellWidth, TOP + line(Math.floor(at / numColumns)) * cellHeight, cellWidth, cellHeight);
      }
    } else {
      const values = colours.map((colour) => rgb(colour));
      const image = new ImageData(numColumns, numRows);
      for (let at = 0; at < cells.length; at++) {
        const [r, g, b] = values[stepOf(cells[at], this.most, this.isLogarithmic)];
        const to = 4 * (line(Math.floor(at / numColumns)) * numColumns + (at % numColumns));
        image.data.set([r, g, b, 255], to);
      }
      const small = new OffscreenCanvas(numColumns, numRows);
      small.getContext("2d").putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(small, this.left, TOP, wide, high);
    }
    this.drawAxes(context, width, cellWidth, cellHeight, line);
    this.drawSelections(context, cellWidth, cellHeight, high);
  }

  get isLogarithmic() {
    return this.kind === "latency";
  }

  get isUpwards() {
    return this.isSeconds || this.kind === "latency";
  }

  drawAxes(context, width, cellWidth, cellHeight, line) {
    const { palette, heat } = this;
    const { columns_num: numColumns, rows_num: numRows } = heat;
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = palette.quiet;
    const every = Math.max(1, Math.ceil(15 / cellHeight));
    for (let row = 0; row < numRows; row++) {
      if (row % (this.isSeconds ? Math.max(every, 5) : every)) continue;
      const label = this.isSeconds ? momentText(row * heat.row_ns, heat.row_ns) : this.rowLabel(row);
      context.fillText(cut(context, label, this.left - 12), this.left - 6, TOP + (line(row) + 0.5) * cellHeight);
    }
    context.textAlign = "left";
    const step = tickStep((heat.column_ns / cellWidth) * 90);
    const end = numColumns * heat.column_ns;
    for (let time = 0; time < end; time += step) {
      const x = this.left + (time / heat.column_ns) * cellWidth;
      context.fillRect(Math.round(x), TOP + numRows * cellHeight, 1, 5);
      const label = momentText(time, step);
      if (x + 3 + context.measureText(label).width <= width) context.fillText(label, x + 3, TOP + numRows * cellHeight + 14);
    }
  }

  drawSelections(context, cellWidth, cellHeight, high) {
    const { heat, palette, app } = this;
    for (const [range, colour] of [[app.state.base, palette.base], [app.state.range, palette.accent]]) {
      if (!range) continue;
      const x = (time) => this.left + (time / heat.column_ns) * cellWidth;
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(x(range[0]), TOP - 2, Math.max(2, x(range[1]) - x(range[0])), high + 4);
    }
    if (this.draft || this.cursor) {
      const [a, b] = this.draft?.cells ?? [this.cursor, this.cursor];
      context.strokeStyle = this.draft?.isBase ? palette.base : palette.line;
      context.lineWidth = 1.5;
      const [left, right] = [Math.min(a.column, b.column), Math.max(a.column, b.column) + 1];
      const rows = this.isUpwards ? [a, b].map(({ row }) => heat.rows_num - 1 - row) : [a.row, b.row];
      const single = a === b;
      const [top, bottom] = single || this.isSeconds ? [Math.min(...rows), Math.max(...rows) + 1] : [0, heat.rows_num];
      context.strokeRect(this.left + left * cellWidth, TOP + top * cellHeight, (right - left) * cellWidth, (bottom - top) * cellHeight);
    }
  }

  cellAt(event) {
    if (!this.heat) return null;
    const box = this.canvasHost.getBoundingClientRect();
    const { cellWidth, cellHeight } = this.size(this.pane.width, this.pane.height);
    const column = Math.floor((event.clientX - box.left - this.left) / cellWidth);
    const drawn = Math.floor((event.clientY - box.top - TOP) / cellHeight);
    const row = this.isUpwards ? this.heat.rows_num - 1 - drawn : drawn;
    const inside = column >= 0 && column < this.heat.columns_num && row >= 0 && row < this.heat.rows_num;
    return inside ? { column, row } : null;
  }

  /** From the earlier to the end of the later of two cells. */
  selectCells(a, b, isBase) {
    const times = [a, b].map(({ column, row }) => this.timeOf(column, row));
    const range = [Math.max(0, Math.round(Math.min(...times))), Math.min(this.app.span, Math.round(Math.max(...times) + this.cellLength))];
    if (range[1] <= range[0]) return;
    const part = { [isBase ? "base" : "range"]: range };
    if (this.kind === "threads" && a.row === b.row && !isBase && this.heat.keys) part.threads = [this.heat.keys[a.row]];
    if (this.kind === "processes" && a.row === b.row && !isBase && this.heat.keys) part.processes = [this.heat.keys[a.row]];
    this.app.change(part);
    this.app.announce(`${isBase ? "To compare with" : "Selected"}: ${rangeText(range)}`);
  }

  bind() {
    const host = this.canvasHost;
    host.addEventListener("pointerdown", (event) => {
      const cell = this.cellAt(event);
      if (!cell || event.button) return;
      host.setPointerCapture(event.pointerId);
      this.draft = { cells: [cell, cell], isBase: event.shiftKey };
      this.cursor = cell;
    });
    host.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event);
      if (cell && this.draft) {
        this.draft.cells[1] = cell;
        this.pane.request();
      }
      if (!cell) return this.hint.hide();
      const value = this.heat.columns.cells[cell.row * this.heat.columns_num + cell.column];
      this.hint.show(momentText(this.timeOf(cell.column, cell.row), this.cellLength), [["amount", weightText(value, this.heat.unit)], ["row", this.rowLabel(cell.row)], ["cell", lengthText(this.cellLength)]], event.clientX, event.clientY);
    });
    host.addEventListener("pointerup", () => {
      const { draft } = this;
      this.draft = null;
      if (draft) this.selectCells(...draft.cells, draft.isBase);
    });
    host.addEventListener("pointerleave", () => this.hint.hide());
  }

  key(event) {
    if (!event.target.closest(".canvas") || !this.heat) return false;
    const up = this.isUpwards ? 1 : -1;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, up], ArrowDown: [0, -up] }[event.key];
    if (event.key === "Enter") {
      if (this.cursor && !this.app.state.range) this.selectCells(this.cursor, this.cursor, false);
      this.app.change({ tab: "flame" });
      return true;
    }
    if (!step) return false;
    const from = this.cursor ?? { column: 0, row: 0 };
    this.cursor = {
      column: Math.min(Math.max(from.column + step[0], 0), this.heat.columns_num - 1),
      row: Math.min(Math.max(from.row + step[1], 0), this.heat.rows_num - 1),
    };
    if (event.shiftKey) this.selectCells((this.anchor ??= from), this.cursor, false);
    else this.anchor = null;
    const value = this.heat.columns.cells[this.cursor.row * this.heat.columns_num + this.cursor.column];
    this.app.announce([momentText(this.timeOf(this.cursor.column, this.cursor.row), this.cellLength), this.rowLabel(this.cursor.row), weightText(value, this.heat.unit)].filter(Boolean).join(", "));
    this.pane.request();
    return true;
  }

  save() {
    return { png: () => new Promise((resolve) => this.pane.canvas.toBlob(resolve)), svg: () => this.pane.svg(), csv: () => this.csv(), command: this.heat?.command };
  }

  csv() {
    const { columns: { cells }, columns_num: width, rows_num: height } = this.heat;
    const lines = ["start_ns,row,value"];
    for (let row = 0; row < height; row++) for (let column = 0; column < width; column++) {
      const value = cells[row * width + column];
      if (value) lines.push(`${Math.round(this.timeOf(column, row))},"${this.rowLabel(row).replaceAll('"', '""')}",${value}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

/** Without empty rows; of lengths only those that are shorter or longer than all calls, so that the axis stays even. */
function cropped(heat, isEven) {
  const { columns: { cells }, columns_num: width, rows_num: height } = heat;
  const rows = Array.from({ length: height }, (_, row) => row).filter((row) => cells.subarray(row * width, (row + 1) * width).some((value) => value > 0));
  if (!rows.length) return heat;
  const shown = isEven ? Array.from({ length: rows.at(-1) - rows[0] + 1 }, (_, at) => rows[0] + at) : rows;
  const kept = new Float64Array(shown.length * width);
  shown.forEach((row, at) => kept.set(cells.subarray(row * width, (row + 1) * width), at * width));
  const pick = (values) => values && shown.map((row) => values[row]);
  return { ...heat, rows_num: shown.length, labels: pick(heat.labels), keys: pick(heat.keys), columns: { cells: kept } };
}

/** A text that fits, without its middle: what differs between threads is at the end. */
function cut(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const end = text.slice(-ENDS);
  let num = Math.max(0, text.length - ENDS - 1);
  while (num > 0 && context.measureText(`${text.slice(0, num)}…${end}`).width > width) num -= 1;
  return `${text.slice(0, num)}…${end}`;
}

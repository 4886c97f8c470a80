// A listing of machine code: instructions with their samples, jumps as arrows, source lines between them.

import { visible } from "../flame/format.js";

const MAX_LANES = 8;
const LANE_WIDTH = 6;
const ROW_HEIGHT = 20;

/** An element with a class, a text, and children. */
export function element(tag, name, text, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined && text !== null) made.textContent = text;
  made.append(...children);
  return made;
}

export const numberText = (value) => value.toLocaleString("en");
export const partText = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)}%` : "");

export function sizeText(bytes) {
  return bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`;
}

/** Seconds since the start of the recording. */
export function lifeText(ns, zero) {
  return ns === null ? "" : `${((ns - zero) / 1e9).toFixed(3)} s`;
}

/** Columns of arrows of the jumps of a listing: the shortest are the innermost. */
function lanesOf(jumps) {
  const lanes = [];
  const placed = [];
  const length = (jump) => Math.abs(jump.from - jump.to);
  for (const jump of [...jumps].sort((a, b) => length(a) - length(b))) {
    const low = Math.min(jump.from, jump.to);
    const high = Math.max(jump.from, jump.to);
    let lane = lanes.findIndex((used) => used.every(([a, b]) => high < a || b < low));
    if (lane < 0) lane = lanes.push([]) - 1;
    if (lane >= MAX_LANES) continue;
    lanes[lane].push([low, high]);
    placed.push({ ...jump, lane });
  }
  return { placed, width: Math.min(lanes.length, MAX_LANES) };
}

/**
 * A listing in a pane.
 *
 * `data` is the report as JSON; `showsSource()` and `showsNames()` return what is shown of each instruction; `onSelect(index)`
 * gets the number of an instruction that is selected, and `onRender()` is called when rows were made.
 */
export class Pane {
  constructor(root, { data = null, showsSource, showsNames, onSelect = () => {} }) {
    Object.assign(this, { root, data, showsSource, showsNames, onSelect });
    this.current = -1;
    this.history = [];
    root.addEventListener("click", (event) => {
      const row = event.target.closest(".one");
      if (row) this.select(Number(row.dataset.index), false);
    });
    root.addEventListener("dblclick", () => this.follow());
  }

  show(number) {
    this.number = number;
    this.listing = this.data.listings.find((one) => one.number === number);
    this.compilation = this.data.compilations.find((one) => one.number === number);
    this.history = [];
    this.render();
    this.hottest();
  }

  render() {
    const { listing, compilation } = this;
    this.rows = [];
    this.current = -1;
    this.root.replaceChildren();
    if (!listing || !listing.instructions.length) {
      const why = listing ? listing.missing : "this compilation is not in the page";
      this.root.append(element("p", "missing", why || "no instructions"));
      return;
    }
    const all = listing.instructions;
    const sampled = all.some((one) => one.total_samples);
    const totals = all.some((one) => one.total_samples > one.self_samples);
    const mostWeight = Math.max(1, ...all.map((one) => one.self_weight));
    const indexOf = new Map(all.map((one, index) => [one.offset, index]));
    const rows = element("div", "listing");
    rows.setAttribute("role", "table");
    rows.ariaLabel = "Instructions";
    const lines = [];
    let position = null;
    const rowOf = [];
    for (const [index, one] of all.entries()) {
      const here = JSON.stringify([one.path, one.line, one.inlined]);
      if (this.showsSource() && here !== position) {
        lines.push(...this.sourceRows(one, position, sampled, totals));
        position = here;
      }
      rowOf[index] = lines.length;
      lines.push(this.instructionRow(one, index, { sampled, totals, mostWeight }));
    }
    const jumps = [];
    for (const [index, one] of all.entries()) {
      const to = one.target_offset === null ? undefined : indexOf.get(one.target_offset);
      if (to !== undefined) jumps.push({ from: rowOf[index], to: rowOf[to], index });
    }
    const { placed, width } = lanesOf(jumps);
    const lanesWidth = width ? (width + 1) * LANE_WIDTH + 6 : 0;
    rows.style.setProperty("--lanes", `${lanesWidth}px`);
    rows.append(this.heading(sampled, totals, lanesWidth), ...lines);
    for (const row of rows.children) {
      row.setAttribute("role", "row");
      for (const cell of row.children) cell.setAttribute("role", row.className === "head" ? "columnheader" : "cell");
    }
    for (const cell of rows.querySelectorAll(".lanes")) cell.style.width = `${lanesWidth}px`;
    this.root.append(rows);
    this.drawJumps(rows, placed, width);
  }

  heading(sampled, totals, lanesWidth) {
    const head = element("div", "head");
    if (sampled) {
      head.append(element("span", "share", "share"), element("span", "count", "self"));
      if (totals) head.append(element("span", "count", "total"));
    }
    const lanes = element("span", "lanes");
    lanes.style.width = `${lanesWidth}px`;
    const { handle, tier, kind, size_bytes, address, source } = this.compilation;
    const facts = [handle, tier || kind, `${sizeText(size_bytes)} at ${address}`, source].filter(Boolean).map(visible).join(", ");
    head.append(lanes, element("span", "offset", "offset"), element("span", "code", facts));
    return head;
  }

  counts(one, sampled, totals, mostWeight) {
    if (!sampled) return [];
    const cell = element("span", "share");
    if (one && one.self_samples) {
      const bar = element("i");
      bar.style.width = `${(100 * one.self_weight) / mostWeight}%`;
      cell.append(bar, element("span", "", partText(one.self_weight, this.compilation.self_weight)));
    }
    const cells = [cell, element("span", "count", one && one.self_samples ? numberText(one.self_samples) : "")];
    if (totals) cells.push(element("span", "count", one && one.total_samples ? numberText(one.total_samples) : ""));
    return cells;
  }

  sourceRows(one, before, sampled, totals) {
    const rows = [];
    const add = (kind, text) => {
      const row = element("div", "from");
      row.append(...this.counts(null, sampled, totals, 1), element("span", "lanes"), element("span", "offset"));
      row.append(element("span", kind, text));
      rows.push(row);
    };
    const previous = before === null ? [] : JSON.parse(before)[2];
    if (JSON.stringify(previous) !== JSON.stringify(one.inlined)) {
      for (const [depth, call] of one.inlined.entries()) {
        const at = call.call_line ? ` at ${(call.call_path || "").split("/").pop()}:${call.call_line}` : "";
        add("inlined", visible(`${"  ".repeat(depth)}inlined ${call.name}${at}`));
      }
    }
    if (one.path !== null || one.line !== null) {
      const source = this.data.sources[one.path];
      const text = source ? source.lines[one.line] : undefined;
      const place = `${(one.path || "?").split("/").pop()}:${one.line}`;
      add("line", visible(text === undefined ? place : `${place}  ${text.replaceAll("\t", "    ")}`));
    }
    return rows;
  }

  instructionRow(one, index, { sampled, totals, mostWeight }) {
    const row = element("div", one.self_samples ? "one hot" : "one");
    row.dataset.index = index;
    row.append(...this.counts(one, sampled, totals, mostWeight), element("span", "lanes"));
    row.append(element("span", "offset", one.offset.toString(16)));
    row.append(element("span", one.flow === "bad" ? "code bad" : "code", visible(this.showsNames() ? one.shown : one.text)));
    const notes = [];
    const loop = this.listing.loops.find((each) => each.first === one.offset);
    if (loop) {
      const part = partText(loop.self_weight, this.compilation.self_weight);
      notes.push(`loop to ${loop.last.toString(16)}: ${numberText(loop.self_samples)} samples, ${part}`);
    }
    if (one.called) notes.push(one.called);
    if (notes.length) row.append(element("span", "note", visible(notes.join("; "))));
    this.rows[index] = row;
    return row;
  }

  drawJumps(rows, placed, width) {
    if (!placed.length) return;
    const lanes = rows.querySelector(".one .lanes");
    const left = lanes.offsetLeft;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const { from, to, lane, index } of placed) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      const x = left + (width - lane) * LANE_WIDTH;
      const end = left + (width + 1) * LANE_WIDTH;
      const y = (row) => (row + 1.5) * ROW_HEIGHT;
      const tip = y(to);
      path.setAttribute("d", `M${end} ${y(from)}H${x}V${tip}H${end}M${end - 4} ${tip - 3}L${end} ${tip}L${end - 4} ${tip + 3}`);
      path.dataset.index = index;
      svg.append(path);
    }
    rows.append(svg);
  }

  select(index, scroll = true) {
    if (!this.rows[index]) return;
    this.rows[this.current]?.removeAttribute("aria-current");
    this.current = index;
    const row = this.rows[index];
    row.setAttribute("aria-current", "true");
    // Only the pane is scrolled: on a narrow screen the page around it stays where it is.
    if (scroll) this.root.scrollTop = row.offsetTop - this.root.clientHeight / 2;
    for (const path of this.root.querySelectorAll("svg path")) {
      path.classList.toggle("current", Number(path.dataset.index) === index);
    }
    this.onSelect(index);
  }

  /** Where the selected instruction is, and its place among those with samples. */
  get whereText() {
    const one = this.listing?.instructions[this.current];
    if (!one) return "";
    const ranked = this.ranked();
    const rank = ranked.indexOf(this.current);
    return `${one.offset.toString(16)}${rank < 0 ? "" : `, ${rank + 1} of ${ranked.length} with samples`}`;
  }

  /** Instructions with samples, the heaviest first. */
  ranked() {
    const all = this.listing ? this.listing.instructions : [];
    const indexes = [...all.keys()].filter((index) => all[index].self_weight);
    return indexes.sort((a, b) => all[b].self_weight - all[a].self_weight || a - b);
  }

  hottest() {
    this.select(this.ranked()[0] ?? 0);
  }

  step(by) {
    const ranked = this.ranked();
    const at = ranked.indexOf(this.current);
    if (ranked.length) this.select(ranked[at < 0 ? 0 : Math.min(Math.max(at + by, 0), ranked.length - 1)]);
  }

  follow() {
    const one = this.listing?.instructions[this.current];
    if (!one || one.target_offset === null) return;
    const to = this.listing.instructions.findIndex((each) => each.offset === one.target_offset);
    if (to >= 0) {
      this.history.push(this.current);
      this.select(to);
    }
  }

  back() {
    if (this.history.length) this.select(this.history.pop());
  }
}

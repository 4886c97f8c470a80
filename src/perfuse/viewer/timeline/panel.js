// Below the timeline: the chosen call, and the calls in sight as a table with the same data as the picture.

import { hasCode } from "../annotate/view.js";
import { lengthText, momentText } from "../data/times.js";
import { facts, h } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";
import { CountersTable, valuesOf } from "./counters.js";
import { functionState } from "../flame/symbols.js";

const MOST = 200;
const REST_MS = 160;

/** The panel. */
export class Panel {
  constructor(host, view) {
    Object.assign(this, { host, view });
    this.slice = h("section.slice", { "aria-label": "Chosen call", tabIndex: -1 });
    const table = this.table = h("section.in-sight", { "aria-label": "In sight" });
    this.countersHost = h("section.counters", { "aria-label": "Counters" });
    host.replaceChildren(this.slice, table, this.countersHost);
    const track = (row) => row.track.label;
    this.grid = new Grid(table, {
      label: "Longest in sight",
      empty: "Nothing is in sight.",
      columns: [
        { key: "name", label: "Longest in sight", sort: true, text: ({ box }) => view.symbols.name(box.symbol), swatch: ({ row, box }) => (row.byName ? view.colours.ofLabel(view.symbols.name(box.symbol)) : view.colours.of(box.symbol)) },
        { key: "start", label: "Start", number: true, width: "8rem", sort: true, text: ({ box }) => momentText(box.start, view.scale.perPixel), value: ({ box }) => box.start },
        { key: "duration", label: "Duration", number: true, width: "6.5rem", sort: true, text: ({ box }) => lengthText(box.duration), value: ({ box }) => box.duration },
        { key: "count", label: "Calls", number: true, width: "5rem", sort: true, text: ({ box }) => box.count.toLocaleString("en-US"), value: ({ box }) => box.count, title: "How many calls the box stands for: too short to be drawn one by one" },
        { key: "depth", label: "Depth", number: true, width: "4.5rem", sort: true, text: ({ box }) => String(box.depth), value: ({ box }) => box.depth },
        { key: "track", label: "Row", width: "12rem", text: ({ row }) => track({ track: row }) },
      ],
      onSelect: ({ row, box }) => view.select(row.track, box.depth, box.index),
      onOpen: ({ box }) => view.showSlice(box.start, box.duration),
    });
    this.showSlice(null);
  }

  /** Fills the table after the picture has been at rest for a moment. */
  viewChanged() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.fill(), REST_MS);
  }

  /** The rows of the table that is shown, of the picture as it is now. */
  csv() {
    clearTimeout(this.resting);
    this.fill();
    return this.shownGrid.csv();
  }

  fill() {
    const seen = new Set();
    const rows = [];
    for (const { row, boxes } of this.view.painter.hits ?? []) {
      for (const box of boxes) {
        const key = `${row.key}/${box.depth}/${box.index}`;
        if (!seen.has(key)) rows.push({ row, box });
        seen.add(key);
      }
    }
    // Processors and states show the time of calls once more: they come last.
    rows.sort((a, b) => Number(a.row.byName ?? false) - Number(b.row.byName ?? false) || b.box.duration - a.box.duration || a.box.start - b.box.start);
    const foot = rows.length > MOST ? `the ${MOST} longest of ${rows.length.toLocaleString("en-US")} boxes` : "";
    this.grid.show(rows.slice(0, MOST), { foot });
    this.fillCounters();
    // The table has the whole picture; else more tiles come, and it is filled again.
    if (!this.view.host.dataset.pending) this.view.host.dataset.filled = "";
  }

  /** What the table has: `boxes` or `counters`. */
  get tabled() {
    const { rows } = this.view;
    if (!rows.some(({ counter }) => counter)) return "boxes";
    return this.kind ?? (rows.some(({ track }) => track) ? "boxes" : "counters");
  }

  get shownGrid() {
    return this.tabled === "counters" && this.counters ? this.counters.grid : this.grid;
  }

  /** Changes what the table has. */
  show(kind) {
    this.kind = kind;
    this.fillCounters();
  }

  fillCounters() {
    const { tabled } = this;
    this.table.hidden = tabled !== "boxes";
    this.countersHost.hidden = tabled !== "counters";
    if (tabled !== "counters") return;
    this.counters ??= new CountersTable(this.countersHost, this.view);
    this.counters.fill();
    const key = JSON.stringify(this.view.windowAsked);
    if (this.counter && key !== this.counterKey) this.showCounter(this.counter);
  }

  /** Shows the values of a counter in place of a chosen call. */
  async showCounter(counter) {
    const { view } = this;
    this.counterKey = JSON.stringify(view.windowAsked);
    await view.app.run(view, async () => {
      const elements = await valuesOf(view, counter);
      Object.assign(this, { counter });
      this.slice.ariaLabel = "Chosen counter";
      this.slice.replaceChildren(...elements);
    });
  }

  rangeChanged() {
    this.view.overlay.paint();
  }

  showSlice(chosen) {
    const { view } = this;
    this.counter = null;
    this.slice.ariaLabel = "Chosen call";
    if (!chosen) return this.slice.replaceChildren(h("p.note", {}, "Click a box to see what it is. Drag to select a time. Press ? for all keys."));
    const { slice, parents, children, track } = chosen;
    const button = (text, title, act) => h("button", { title, onclick: act }, text);
    const linked = (each) => h("button.link", { title: each.name, onclick: () => view.select(track, each.depth, each.index) }, each.name);
    const moment = momentText(slice.start_ns, Math.max(1, slice.duration_ns / 100));
    const list = facts([
      ["starts", moment], ["duration", lengthText(slice.duration_ns)], ["self", slice.self_ns === null || slice.self_ns === undefined ? "" : lengthText(slice.self_ns)],
      ["depth", String(slice.depth)], ["tier", slice.tier], ["source", slice.place],
    ]);
    const below = (children ?? []).slice(0, 6).map((child) => h("li", {}, `${child.name} `, h("small", {}, `${child.count > 1 ? `${child.count.toLocaleString("en-US")} calls, ` : ""}${lengthText(child.duration_ns)}`)));
    this.slice.replaceChildren(
      h("h2", {}, slice.name), list,
      h("p.actions", {}, button("Zoom", "Zoom to it (f)", () => view.showSlice(slice.start_ns, slice.duration_ns)), button("Select", "Select its time (r)", () => view.app.change({ range: [Math.floor(slice.start_ns), Math.ceil(slice.start_ns + Math.max(1, slice.duration_ns))] })),
        button("Flame graph", "Flame graph of its time in its thread", () => view.app.change({ tab: "flame", range: [Math.floor(slice.start_ns), Math.ceil(slice.start_ns + Math.max(1, slice.duration_ns))], threads: track.thread === null ? null : [track.thread] })),
        hasCode(view.app.overview) && slice.name ? button("Machine code", "Source and machine code (l)", () => view.app.annotate(functionState(slice))) : "",
        button("‹ same", "Previous call of it ( , )", () => this.walk("previous-same")), button("same ›", "Next call of it ( . )", () => this.walk("next-same"))),
      parents?.length ? h("p.parents", {}, h("small", {}, "called by "), parents.toReversed().slice(0, 12).flatMap((each, nth) => [nth ? " ‹ " : "", linked(each)])) : "",
      below.length ? h("div", {}, h("small", {}, "calls"), h("ul.children", {}, below)) : "",
    );
    view.app.announce(`${slice.name}, ${lengthText(slice.duration_ns)}, at ${moment}`);
  }

  /** The longest call in sight that a call makes. */
  longestBelow(track, { depth, start_ns: start, duration_ns: duration }) {
    const hit = (this.view.painter.hits ?? []).find(({ row }) => row.track === track);
    const below = (hit?.boxes ?? []).filter((box) => box.depth === depth + 1 && box.start >= start && box.start < start + Math.max(1, duration));
    return below.reduce((longest, box) => (box.duration > (longest?.duration ?? -1) ? box : longest), null);
  }

  /** Chooses a neighbour of the chosen call; without one, the longest in sight. */
  async walk(direction) {
    const { view } = this;
    const { chosen } = view;
    if (!chosen) {
      this.fill();
      const [first] = this.grid.rows;
      return first && view.select(first.row.track, first.box.depth, first.box.index);
    }
    const { slice, parents, track } = chosen;
    if (direction === "parent") return parents.length && view.select(track, parents.at(-1).depth, parents.at(-1).index);
    if (direction === "child") {
      const longest = this.longestBelow(track, slice);
      return longest ? view.select(track, longest.depth, longest.index) : view.app.announce("It calls nothing that is in sight.");
    }
    const [way, same] = direction.split("-");
    await view.app.run(view, async () => {
      const answer = await view.app.server.json("neighbour", { track: slice.track, depth: slice.depth, index: slice.index, direction: way, same: same ? "symbol" : undefined }, { latest: "neighbour" });
      if (answer.slice) await view.select(view.timeline.tracks.find((each) => each.track === answer.slice.track) ?? track, answer.slice.depth, answer.slice.index);
      else view.app.announce("No further call.");
    });
  }
}

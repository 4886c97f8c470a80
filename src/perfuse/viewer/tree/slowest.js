// The tab "Slowest calls": the longest calls of the selection, each a click away from its place on the timeline.

import { lengthText, momentText } from "../data/times.js";
import { visible } from "../flame/format.js";
import { functionState } from "../flame/symbols.js";
import { h } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";
import { SearchField } from "../widgets/search_field.js";
import { tableOf } from "../widgets/table_picture.js";

const SHOWN = 200;

/** The longest calls. */
export class SlowestView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.keys = [["↑ ↓", "walk over the calls"], ["Enter", "show the call on the timeline"], ["/", "the calls of one function"]];
    this.search = new SearchField(app, "of", "Calls of this function", "Name of a function");
    const table = h("div.grid-host");
    host.replaceChildren(h("div.bar", {}, h("output.where", {}, "The longest calls of the selection. Enter shows one on the timeline."), h("span.room"), this.search.input), table);
    const time = (key, label, extra = {}) => ({ key, label, number: true, sort: true, width: "7.5rem", value: (slice) => slice[key], text: (slice) => (slice[key] === null || slice[key] === undefined ? "" : lengthText(slice[key])), ...extra });
    this.grid = new Grid(table, {
      label: "Slowest calls", empty: "No call was recorded in this selection.",
      columns: [
        time("duration_ns", "Duration", { share: ({ duration_ns }) => duration_ns / (this.longest || 1) }), time("self_ns", "Self"),
        time("start_ns", "Start", { text: ({ start_ns, duration_ns }) => momentText(start_ns, Math.max(1, duration_ns / 100)) }),
        { key: "thread", label: "Thread", width: "12rem", text: (slice) => this.threadOf(slice) },
        { key: "depth", label: "Depth", number: true, width: "5rem", text: ({ depth }) => String(depth), sort: true, value: ({ depth }) => depth },
        { key: "name", label: "Function", text: ({ name }) => visible(name ?? ""), hint: ({ place }) => visible(place ?? "") },
      ],
      onOpen: (slice) => this.open(slice),
    });
  }

  async update(state) {
    const { app } = this;
    this.search.show(state);
    const key = app.selectionKey() + (state.of ?? "");
    if (key === this.shown) return;
    this.tracks ??= (await app.timeline()).tracks;
    const answer = await app.server.json("slowest", { ...app.unfiltered(), function: state.of, limit: SHOWN }, { latest: "slowest" });
    this.shown = key;
    this.command = answer.command;
    this.longest = Math.max(0, ...answer.slices.map(({ duration_ns }) => duration_ns));
    this.grid.show(answer.slices, { foot: answer.slices.length === SHOWN ? `the ${SHOWN} longest` : "" });
  }

  threadOf(slice) {
    const track = this.tracks?.find(({ track }) => track === slice.track);
    const thread = this.app.overview.threads.find(({ thread }) => thread === track?.thread);
    return visible(thread?.label ?? track?.name ?? "");
  }

  open({ start_ns: start, duration_ns: duration, track, depth, index }) {
    const margin = Math.max(10, duration * 0.2);
    const { app } = this;
    app.change({ tab: "timeline", window: [Math.max(0, start - margin), start + duration + margin] });
    const { view } = app;
    const found = this.tracks.find((each) => each.track === track);
    if (found) view.select(found, depth, index);
  }

  key(event) {
    return this.search.key(event);
  }

  /** The function that other views are asked for. */
  get chosenFunction() {
    return functionState(this.grid.rows[this.grid.selected]);
  }

  save() {
    return { table: tableOf(this.grid), csv: () => this.grid.csv(), command: this.command };
  }
}

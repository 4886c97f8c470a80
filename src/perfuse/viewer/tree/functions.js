// The tab "Functions": a row for each function of the selection.

import { amountText, amountsWidth, placeTexts, shareText, visible, weightText } from "../flame/format.js";
import { Palette } from "../flame/palette.js";
import { functionState } from "../flame/symbols.js";
import { lengthText } from "../data/times.js";
import { h } from "../widgets/dom.js";
import { PagedGrid } from "../widgets/paged_grid.js";
import { SearchField } from "../widgets/search_field.js";
import { tableOf } from "../widgets/table_picture.js";

/** Functions of the selection, sorted and searched by the server. */
export class FunctionsView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.keys = [["/", "search names"], ["↑ ↓", "walk over the rows"], ["Enter", "callers and callees of the row"]];
    this.palette = new Palette({ origins: app.overview.origins, shades: app.overview.shades });
    this.origins = new Map(app.overview.origins.map(({ name }, at) => [name, at]));
    this.search = new SearchField(app, "q", "Search", "Search functions");
    this.totals = h("output.where");
    const table = h("div.grid-host");
    host.replaceChildren(h("div.bar", {}, this.totals, h("span.room"), this.search.input), table);
    this.grid = new PagedGrid(table, {
      label: "Functions", columns: [], sort: this.ofCalls ? "self_ns" : "self", empty: "No function matches.",
      ask: (page) => this.ask(page),
      run: (act) => app.run(this, act),
      onAnswer: (answer) => this.answered(answer),
      onOpen: (row) => app.change({ tab: "callers", ...functionState(row) }),
    });
  }

  /** Whether the rows have the statistics of calls; sums by function otherwise. */
  get ofCalls() {
    const { overview, state } = this.app;
    return overview.has.calls && !state.filters?.length && [undefined, "wall-time"].includes(state.event ?? overview.events[0]?.name);
  }

  ask({ sort, ...page }) {
    const { app, ofCalls } = this;
    // What is sorted by may be a column of the other kind of answer.
    const known = ofCalls === /_ns$|^num_/.test(sort) || sort === "name";
    const parameters = { ...(ofCalls ? app.unfiltered() : app.selection()), q: app.state.q, sort: known ? sort : ofCalls ? "self_ns" : "self", ...page };
    return app.server.json(ofCalls ? "calls" : "functions", parameters, { latest: page.offset ? undefined : "functions" });
  }

  async update(state) {
    this.search.show(state);
    const key = this.app.selectionKey() + (state.q ?? "");
    if (key === this.shown) return;
    const sort = this.ofCalls ? "self_ns" : "self";
    if (/_ns$/.test(this.grid.order.column) !== this.ofCalls && ["self", "self_ns"].includes(this.grid.order.column)) this.grid.setOrder(sort, true);
    if (this.ofCalls) {
      const { parent, totalWeight } = await this.app.trees.get();
      this.wholeOfCalls = totalWeight.reduce((sum, weight, node) => (parent[node] < 0 ? sum + weight : sum), 0);
    }
    await this.grid.reload();
    this.shown = key;
  }

  answered({ unit, whole, num, event, command, totals, rows }) {
    const places = placeTexts(rows.map(({ name, path, line, module }) => ({ name, place: path ? (line ? `${path}:${line}` : path) : module })));
    rows.forEach((row, at) => (row.where = places[at]));
    Object.assign(this, { unit, whole: whole ?? this.wholeOfCalls, command, event });
    const parts = [whole === undefined || whole === null ? "" : weightText(whole, unit), event, totals && weightText(totals.num_calls, "calls"), weightText(num, num === 1 ? "function" : "functions")];
    this.totals.textContent = parts.filter(Boolean).join(" · ");
    const layout = JSON.stringify([event, this.ofCalls, amountsWidth(this.whole, unit)]);
    if (layout === this.layout) return;
    this.layout = layout;
    this.grid.setColumns(this.columns(this.ofCalls));
  }

  columns(ofCalls) {
    const part = (key, label, title) => ({
      key, label, title, number: true, sort: "server", width: amountsWidth(this.whole, this.unit), share: (row) => row[key] / this.whole, value: (row) => row[key],
      text: (row) => (row[key] ? `${amountText(row[key], this.unit)}  ${shareText(row[key], this.whole)}` : "–"),
    });
    const time = (key, label) => ({ key, label, number: true, sort: "server", width: "6.4rem", text: (row) => (row[key] === null || row[key] === undefined ? "" : lengthText(row[key])), value: (row) => row[key] });
    const count = (key, label) => ({ key, label, number: true, sort: "server", width: "6rem", text: (row) => Number(row[key] ?? 0).toLocaleString("en-US"), value: (row) => row[key] });
    const { events, span_ns: span } = this.app.overview;
    const isSum = events.find(({ name }) => name === this.event)?.is_sum;
    // Sums of calls without times, as of XRay's Profiling mode, have a number only.
    const ofTime = [count("num_calls", "Calls"), ...(!span ? [] : [time("min_ns", "Shortest"), time("median_ns", "Median"), time("p90_ns", "90 %"), time("p99_ns", "99 %"), time("max_ns", "Longest")])];
    const statistics = ofCalls ? ofTime : isSum ? [] : [count("samples", "Samples")];
    const suffix = ofCalls ? "_ns" : "";
    return [
      part(`self${suffix}`, "Self", "What ran in the function itself"), part(`total${suffix}`, "Total", "What ran in it or below it"), ...statistics,
      {
        key: "name", label: "Function", sort: "server", text: (row) => visible(row.name ?? ""), value: (row) => row.name,
        swatch: (row) => (row.origin ? this.palette.ofOrigin(this.origins.get(row.origin) ?? this.palette.fills.length - 1) : null),
        hint: (row) => visible([tiersText(row.tiers), row.where].filter(Boolean).join(" · ")),
        full: (row) => visible([row.name, row.path && `${row.path}${row.line ? `:${row.line}` : ""}`, row.module].filter(Boolean).join("\n")),
      },
    ];
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

function tiersText(tiers) {
  return Array.isArray(tiers) ? tiers.join(", ") : (tiers ?? "");
}

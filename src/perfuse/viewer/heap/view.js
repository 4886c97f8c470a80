// The tab "Heap": what was alive at a snapshot, what holds it, and how it grew.

import { momentText } from "../data/times.js";
import { visible, weightText } from "../flame/format.js";
import { choice, h, note, toggles } from "../widgets/dom.js";
import { PagedGrid } from "../widgets/paged_grid.js";
import { SearchField } from "../widgets/search_field.js";
import { bytes, count, signed, typeColumn } from "./columns.js";
import { Dominators } from "./dominators.js";
import { Inspector } from "./inspector.js";
import { Sites } from "./sites.js";
import { tableOf } from "../widgets/table_picture.js";

const PARTS = [["types", "Types"], ["dominators", "Dominators"], ["growth", "Growth"], ["sites", "Allocation sites"]];

/** The heap explorer. */
export class HeapView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.keys = [["↑ ↓", "walk over the rows"], ["→ ←", "open and close"], ["Enter", "look at the row"], ["/", "search types"]];
    this.bar = h("div.bar");
    this.facts = h("p.where");
    this.left = h("div.grid-host");
    this.right = h("div.inspector", { "aria-label": "Object" });
    host.replaceChildren(this.bar, this.facts, h("div.heap-panes", {}, this.left, this.right));
    this.inspector = new Inspector(this.right, app);
    this.search = new SearchField(app, "q", "Search types", "Search types");
  }

  get snapshots() {
    return this.app.overview.snapshots;
  }

  async update(state) {
    const shot = this.snapshots.find(({ snapshot }) => String(snapshot) === state.snapshot) ?? this.snapshots.at(-1);
    if (!shot) return this.left.replaceChildren(note("The recording has no heap snapshot."));
    const earlier = this.snapshots.slice(0, this.snapshots.indexOf(shot));
    const part = PARTS.some(([name]) => name === state.heap) && (state.heap !== "growth" || earlier.length) ? state.heap : "types";
    const since = earlier.some(({ snapshot }) => String(snapshot) === state.since) ? state.since : undefined;
    Object.assign(this, { snapshot: shot.snapshot, part, since });
    this.search.show(state);
    this.showControls(shot, earlier);
    const key = JSON.stringify([this.snapshot, part, since, part === "types" ? state.q : ""]);
    if (key !== this.shown) {
      await this[part]();
      this.shown = key;
    }
    await this.inspector.show(this.snapshot, state);
  }

  showControls(shot, earlier) {
    const { app } = this;
    const label = ({ snapshot, ts_ns: time, objects, bytes: size }) => [String(snapshot), `${snapshot}${time === null || time === undefined ? "" : ` at ${momentText(time, 1e6)}`}: ${weightText(objects, "objects")}, ${weightText(size, "bytes")}`];
    this.bar.replaceChildren(
      choice("Snapshot", this.snapshots.map(label), String(shot.snapshot), (snapshot) => app.change({ snapshot, object: null, since: null })),
      earlier.length ? choice("Growth since", [["", "–"], ...earlier.map(label)], this.since ?? "", (since) => app.change({ since: since || null })) : "",
      toggles("Part", PARTS.filter(([name]) => name !== "growth" || earlier.length), this.part, (heap) => app.change({ heap })), h("span.room"), this.part === "types" ? this.search.input : "",
    );
  }

  async types() {
    const { app, snapshot, since } = this;
    const sorted = (column) => ({ ...column, sort: "server" });
    const columns = [
      { ...sorted(bytes("retained_bytes", "Retained", "What would be freed with all objects of the type")), key: "retained", share: (row) => row.retained_bytes / (this.totals?.bytes || Infinity) },
      { ...sorted(bytes("bytes", "Size", "Sum of their own sizes")), key: "size" }, { ...sorted(count("objects", "Objects")), key: "count" },
      ...(since === undefined ? [] : [{ ...sorted(signed(bytes("delta_bytes", "Growth"))), key: "growth" }, signed(count("delta_objects", "New objects"))]),
      typeColumn({ sort: "server", hint: (row) => (row.unreachable ? `${row.unreachable.toLocaleString("en-US")} unreachable` : "") }),
    ];
    this.grid = new PagedGrid(this.left, {
      label: "Types", columns, sort: "retained", empty: "No type matches.",
      ask: (page) => app.server.json("heap/types", { snapshot, since, q: app.state.q, ...page }, { latest: page.offset ? undefined : "heap" }),
      run: (act) => app.run(this, act),
      onAnswer: ({ totals, command, num }) => {
        Object.assign(this, { totals, command });
        const parts = [`${Number(num).toLocaleString("en-US")} types`];
        if (totals?.objects !== undefined) parts.push(weightText(totals.objects, "objects"), weightText(totals.bytes, "bytes"));
        this.facts.textContent = parts.join(" · ");
      },
      onSelect: (row) => app.change({ type: row.type_id, typename: row.type, object: null }),
      onOpen: (row) => row.largest_address && app.change({ object: row.largest_address }),
    });
    await this.grid.reload();
  }

  async dominators() {
    this.facts.textContent = "Each object with what only it keeps alive. Click a box to go into it.";
    this.dominated ??= new Dominators(h("div"), this.app);
    this.left.replaceChildren(this.dominated.host);
    this.grid = this.dominated.grid;
    await this.dominated.show(this.snapshot);
    this.grid = this.dominated.grid;
    this.command = this.dominated.command;
  }

  async growth() {
    const since = this.since ?? String(this.snapshots[0].snapshot);
    const answer = await this.app.server.json("heap/growth", { snapshot: this.snapshot, since, limit: 500 }, { latest: "heap" });
    this.command = answer.command;
    this.facts.textContent = `What changed since snapshot ${since}.`;
    const { Grid } = await import("../widgets/grid.js");
    const [table, fresh] = [h("div.grid-host"), h("section.fresh", { "aria-label": "Largest new objects" })];
    this.left.replaceChildren(table, fresh);
    const object = ({ address, type, retained_bytes: retained }) => h("li", {}, h("button.link", { title: address, onclick: () => this.app.change({ object: address }) }, visible(type ?? "object")), h("small", {}, ` ${address}, retains ${weightText(retained, "bytes")}`));
    if (answer.new_objects.length) fresh.append(h("h3", {}, "Largest new objects"), h("ol.plain", {}, answer.new_objects.map(object)));
    this.grid = new Grid(table, {
      label: "Growth", empty: "Nothing changed.",
      onSelect: (row) => row.type_id !== null && this.app.change({ type: row.type_id, typename: row.type, object: null }),
      columns: [{ ...signed(bytes("delta_bytes", "Size")), sort: true }, { ...signed(bytes("delta_retained_bytes", "Retained")), sort: true }, { ...signed(count("delta_objects", "Objects")), sort: true }, { ...count("new_objects", "New objects"), sort: true }, { ...bytes("new_bytes", "New size"), sort: true }, typeColumn({ sort: true })],
    });
    this.grid.show(answer.rows);
  }

  async sites() {
    this.facts.textContent = "Where the objects that are alive were allocated.";
    this.grid = await new Sites(this.left, this.app).show(this.snapshot);
  }

  key(event) {
    return this.part === "types" && this.search.key(event);
  }

  save() {
    const pictured = this.part === "dominators" ? this.dominated?.pictures() : {};
    return { ...pictured, table: this.grid && tableOf(this.grid), csv: () => this.grid?.csv() ?? "", command: this.command };
  }
}

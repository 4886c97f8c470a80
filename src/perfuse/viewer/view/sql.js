// The tab "SQL": a query over the tables, with the tables beside it.

import { visible } from "../flame/format.js";
import { h, note } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";
import { tableOf } from "../widgets/table_picture.js";

const LIMIT = 1000;
const OF_SAMPLES = `SELECT coalesce(f.name, fr.kind) AS name, s.event, sum(s.weight) AS weight, count(*) AS samples
FROM samples s JOIN stacks USING (stack_id) JOIN frames fr USING (frame_id) LEFT JOIN functions f USING (function_id)
GROUP BY ALL ORDER BY weight DESC LIMIT 20`;
const OF_CALLS = `SELECT f.name, count(*) AS calls, sum(s.self_ns) AS self_ns, max(s.duration_ns) AS longest_ns
FROM slices s JOIN functions f USING (function_id)
GROUP BY ALL ORDER BY self_ns DESC LIMIT 20`;
const OF_FILES = "SELECT * FROM sources";

/** Queries. */
export class SqlView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.keys = [["Ctrl Enter", "run the query"], ["Esc", "leave the text"]];
    this.text = h("textarea", { id: "query", rows: 6, spellcheck: false, "aria-label": "Query", autocapitalize: "off" });
    this.runButton = h("button.primary", { title: "Ctrl Enter", onclick: () => this.start() }, "Run");
    this.stop = h("button", { hidden: true, onclick: () => this.cancel() }, "Cancel");
    this.status = h("output.where", { role: "status" });
    this.result = h("div.grid-host");
    this.tables = h("aside.tables", { "aria-label": "Tables" });
    host.replaceChildren(this.tables, h("div.query", {}, this.text, h("div.bar", {}, this.runButton, this.stop, this.status), this.result));
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.start();
    });
  }

  async update(state) {
    if (!this.answer) await this.loadTables();
    if (state.query !== undefined && this.text.value !== state.query) {
      this.text.value = state.query;
      if (this.ran !== state.query) await this.run(state.query);
    } else if (!this.text.value) this.text.value = this.first();
  }

  async loadTables() {
    this.answer = await this.app.server.json("tables");
    const filter = h("input", { type: "search", placeholder: "Tables and columns", "aria-label": "Filter tables", oninput: () => this.filter(filter.value) });
    this.list = h("div.list", {}, this.answer.tables.map((table) => this.table(table)));
    this.tables.replaceChildren(filter, this.list);
  }

  table({ name, doc, columns }) {
    const insert = (text) => {
      this.text.setRangeText(text, this.text.selectionStart, this.text.selectionEnd, "end");
      this.text.focus();
    };
    const column = (each) => h("li", { title: each.doc ?? "" }, h("button.link", { onclick: () => insert(each.name) }, each.name), h("small", {}, ` ${each.type}${each.nullable ? ", may be null" : ""}`));
    const details = h("details", {}, h("summary", { title: doc ?? "" }, name), doc ? h("p", {}, doc) : "", h("ul.plain", {}, columns.map(column)), h("button", { onclick: () => this.show(`SELECT * FROM ${name} LIMIT 100`) }, "First 100 rows"));
    details.dataset.text = `${name} ${columns.map((each) => each.name).join(" ")}`.toLowerCase();
    return details;
  }

  filter(text) {
    for (const details of this.list.children) details.hidden = !details.dataset.text.includes(text.trim().toLowerCase());
  }

  first() {
    const { has } = this.app.overview;
    return has.samples ? OF_SAMPLES : has.calls ? OF_CALLS : OF_FILES;
  }

  show(query) {
    this.text.value = query;
    this.start();
  }

  start() {
    const query = this.text.value.trim();
    if (!query) return;
    this.ran = null;
    this.app.run(this, async () => {
      await this.run(query);
      this.app.change({ query });
    });
  }

  async run(query) {
    this.ran = query;
    this.stop.hidden = false;
    this.runButton.disabled = true;
    this.status.textContent = "Running…";
    try {
      const answer = await this.app.server.post("sql", { query, limit: LIMIT });
      this.showAnswer(answer);
    } catch (error) {
      this.status.textContent = "";
      if (error.code === "cancelled") this.status.textContent = "Cancelled.";
      else {
        this.grid = null;
        this.result.replaceChildren(h("pre.problem", { role: "alert" }, [error.message, error.hint].filter(Boolean).join("\n")));
      }
    } finally {
      this.stop.hidden = true;
      this.runButton.disabled = false;
    }
  }

  showAnswer({ columns, rows, truncated, elapsed_ms: elapsed, command }) {
    this.command = command;
    this.status.textContent = `${rows.length.toLocaleString("en-US")} row${rows.length === 1 ? "" : "s"}${truncated ? `, cut at ${LIMIT.toLocaleString("en-US")}` : ""} in ${Math.round(elapsed)} ms`;
    if (!columns.length) return this.result.replaceChildren(note("The query returns no columns."));
    const isNumber = (type) => /INT|FLOAT|DOUBLE|DECIMAL|REAL/i.test(type);
    const text = (value) => (value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : visible(String(value)));
    this.grid = new Grid(this.result, {
      label: "Result", empty: "No rows.",
      columns: columns.map(({ name, type }, at) => ({ key: String(at), label: name, title: type, number: isNumber(type), sort: true, value: (row) => row[at], text: (row) => text(row[at]), width: isNumber(type) ? "9rem" : undefined })),
    });
    this.grid.show(rows);
  }

  async cancel() {
    await this.app.server.post("sql/cancel", {});
  }

  save() {
    return { table: this.grid && tableOf(this.grid), csv: this.grid ? () => this.grid.csv() : undefined, command: this.command };
  }
}

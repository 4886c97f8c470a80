// The tab "Code": the life of JIT code. Which functions were compiled when, by which tier, and where the code was.

import { annotateButton } from "../annotate/view.js";
import { lengthText, momentText } from "../data/times.js";
import { fileName, visible, weightText } from "../flame/format.js";
import { Palette } from "../flame/palette.js";
import { functionState } from "../flame/symbols.js";
import { facts, h, note, toggles } from "../widgets/dom.js";
import { PagedGrid } from "../widgets/paged_grid.js";
import { PaneCanvas } from "../widgets/pane_canvas.js";
import { SearchField } from "../widgets/search_field.js";
import { ChartTable } from "./chart_table.js";
import { CodeCharts } from "./code_charts.js";
import { LifeChart, lifeOf, lifeText } from "./life.js";

/** JIT code over time. */
export class CodeView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.keys = [["/", "search functions"], ["↑ ↓", "walk over the functions"], ["Enter", "callers and callees of the function"]];
    this.palette = new Palette({ origins: app.overview.origins, shades: app.overview.shades });
    this.search = new SearchField(app, "q", "Search", "Search functions");
    this.totals = h("output.where");
    this.bar = h("div.bar");
    this.chartHost = h("div.canvas.chart");
    const table = h("div.grid-host");
    this.detail = h("div.inspector", {}, note("Choose a function to see each time it was compiled."));
    this.charts = new CodeCharts(app, this.palette);
    this.chartTable = new ChartTable(this.charts);
    host.replaceChildren(this.bar, this.chartHost, this.chartTable.host, h("div.heap-panes", {}, table, this.detail));
    this.life = new LifeChart(app, this.palette);
    this.pane = new PaneCanvas(this.chartHost, (context, width, height) => this.charts.draw(context, width, height), { label: "JIT code over time" });
    this.palette.onChange(() => this.pane.request());
    this.charts.bind(this.chartHost, this.pane);
    this.grid = new PagedGrid(table, {
      label: "Functions that were compiled", sort: "compilations", empty: "No function matches.",
      columns: [
        { key: "compilations", label: "Compilations", number: true, sort: "server", width: "10rem", text: (row) => row.compilations.length.toLocaleString("en-US"), value: (row) => row.compilations.length },
        { key: "again", label: "Again", title: "Compilations in a tier in which the function had been compiled before: after a deoptimisation, for a loop that was running, or because the code had been thrown away", number: true, sort: "server", width: "5rem", text: ({ num_again: num }) => (num ? num.toLocaleString("en-US") : "–"), value: ({ num_again: num }) => num },
        { key: "size", label: "Code", number: true, sort: "server", width: "6rem", text: ({ bytes }) => weightText(bytes, "bytes"), value: ({ bytes }) => bytes },
        { key: "time", label: "First", number: true, sort: "server", width: "7rem", text: ({ compilations }) => (compilations[0]?.create_ns === null || !compilations.length ? "" : momentText(compilations[0].create_ns, 1e4)), value: ({ compilations }) => compilations[0]?.create_ns },
        { key: "tiers", label: "Tiers", width: "11rem", text: (row) => tiersText(row) },
        { key: "name", label: "Function", sort: "server", text: ({ name }) => visible(name ?? ""), hint: ({ path, line }) => visible(path ? `${fileName(path)}${line ? `:${line}` : ""}` : "") },
      ],
      ask: ({ order, ...page }) => app.server.json("code", { ...app.unfiltered(), event: undefined, q: app.state.q, ...page }, { latest: page.offset ? undefined : "code" }),
      run: (act) => app.run(this, act),
      onAnswer: (answer) => this.answered(answer),
      onSelect: (row) => app.run(this, () => this.showFunction(row)),
      onOpen: (row) => app.change({ tab: "callers", ...functionState(row) }),
    });
  }

  async update(state) {
    this.search.show(state);
    const form = state.code ?? "tiers";
    this.bar.replaceChildren(toggles("Chart", [["tiers", "Compilations over time"], ["live", "Size of live code"], ["space", "Code by address"]], form, (code) => this.app.change({ code })), this.totals, h("span.room"), this.search.input);
    const key = this.app.selectionKey() + (state.q ?? "");
    if (key !== this.shown) await this.grid.reload();
    this.shown = key;
    await this.charts.show(form, state.at === undefined ? this.app.span : Number(state.at));
    this.pane.canvas.ariaLabel = `${this.charts.label}; the table below it has the same data`;
    this.chartTable.show();
    this.pane.request();
  }

  answered({ num, tiers, command }) {
    this.command = command;
    const parts = [`${Number(num).toLocaleString("en-US")} functions`, ...tiers.map(({ tier, num: each, bytes }) => `${tier ?? "no tier"}: ${each.toLocaleString("en-US")} (${weightText(bytes, "bytes")})`)];
    this.totals.textContent = parts.join(" · ");
    this.totals.title = parts.join("\n");
  }

  /** Shows the compilations of a function, and when it ran in which. */
  async showFunction(row) {
    const codes = row.compilations.map(({ code }) => code).join(",");
    const life = await this.app.server.json("code/life", { ...this.app.unfiltered(), codes }, { latest: "life" });
    const { origins } = this.app.overview;
    const compilations = lifeOf(row.compilations, life, origins);
    const items = compilations.map((each) => {
      const end = each.retire_ns === null || each.retire_ns === undefined ? "" : `, until ${momentText(each.retire_ns, 1e4)}`;
      return h("li", {}, h("button.link", { title: "Its machine code", onclick: () => this.app.annotate({ function: row.name, handle: `c${each.code}` }) }, each.tier ?? "code"), ` at ${each.create_ns === null ? "an unknown time" : momentText(each.create_ns, 1e4)}${end}, ${weightText(each.size_bytes, "bytes")} at ${each.address}`, h("div", {}, h("small", {}, lifeText(each))));
    });
    const times = row.compilations.map(({ create_ns }) => create_ns).filter((time) => time !== null);
    const between = times.length > 1 ? lengthText(Math.max(...times) - Math.min(...times)) : "";
    this.detail.replaceChildren(h("h2", {}, visible(row.name ?? "")), facts([["source", row.path && visible(`${row.path}${row.line ? `:${row.line}` : ""}`)], ["code", weightText(row.bytes, "bytes")], ["first to last", between]]),
      h("h3", {}, "Life"), this.life.host, h("h3", {}, "Compilations"), h("ol.compilations", { "aria-label": "Compilations" }, items), h("button", { onclick: () => this.app.change({ tab: "callers", ...functionState(row) }) }, "Callers and callees"), " ", annotateButton(this.app, functionState(row)));
    this.life.show(compilations, life);
  }

  key(event) {
    return this.search.key(event);
  }

  /** The function that other views are asked for. */
  get chosenFunction() {
    return functionState(this.grid.rows[this.grid.selected]);
  }

  save() {
    return { png: () => new Promise((resolve) => this.pane.canvas.toBlob(resolve)), svg: () => this.pane.svg(), csv: () => this.grid.csv(), command: this.command };
  }
}

/** Tiers in the order of compilation, repeats counted: `baseline, optimised ×2`. */
function tiersText({ compilations }) {
  const parts = [];
  for (const { tier } of compilations) {
    const name = tier ?? "code";
    if (parts.at(-1)?.name === name) parts.at(-1).num += 1;
    else parts.push({ name, num: 1 });
  }
  const shown = parts.slice(0, 6).map(({ name, num }) => (num > 1 ? `${name} ×${num}` : name));
  return shown.join(" → ") + (parts.length > 6 ? " → …" : "");
}

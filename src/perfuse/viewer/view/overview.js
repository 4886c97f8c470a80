// The tab "Overview": what was recorded, what ran most, and where to look next.

import { originOfTier } from "../data/tiers.js";
import { lengthText } from "../data/times.js";
import { amountLabel, amountText, shareText, visible, weightText } from "../flame/format.js";
import { Palette } from "../flame/palette.js";
import { functionState } from "../flame/symbols.js";
import { facts, h } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";
import { tableOf } from "../widgets/table_picture.js";

const HEAVIEST = 12;
const EVENTS_SHOWN = 20;

/** What the recording is, at a glance. */
export class OverviewView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.palette = new Palette({ origins: app.overview.origins, shades: app.overview.shades });
    this.grids = [];
  }

  async update() {
    const key = this.app.selectionKey();
    if (key === this.shown) return;
    const { app, host } = this;
    const { overview } = app;
    const cards = [this.recording(overview)];
    const hasStacks = overview.has.samples || overview.has.calls || overview.has.allocations;
    const functions = hasStacks ? await app.server.json("functions", { ...app.selection(), sort: "self", order: "desc", limit: HEAVIEST, with_threads: 1 }, { latest: "overview" }) : null;
    this.shown = key;
    this.command = functions?.command;
    if (functions) cards.push(this.heaviest(functions));
    if (overview.threads.length) cards.push(this.threads(overview, functions));
    if (overview.has.heap) cards.push(this.snapshots(overview));
    cards.push(this.findings(overview));
    host.replaceChildren(h("div.cards", {}, cards));
    for (const { grid, rows } of this.grids) grid.show(rows);
    this.grids = [];
  }

  recording({ files, has, span_ns: span, events, processes, threads, clock, tiers }) {
    const sampled = has.samples ? threads.filter(({ samples }) => samples) : [];
    const counts = [["processes", processes, new Set(sampled.map(({ process }) => process)).size], ["threads", threads, sampled.length]];
    const size = files.reduce((sum, { size_bytes }) => sum + (size_bytes ?? 0), 0);
    const list = facts([
      ["files", files.map(({ path }) => visible(path.slice(path.lastIndexOf("/") + 1))).join(", ")], ["size", weightText(size, "bytes")], ["recorded by", [...new Set(files.map(({ producer }) => producer).filter(Boolean))].map(visible).join(", ")],
      ["time", span ? lengthText(span) : "not recorded"], ["clock", clock], ...counts.map(([name, all, num]) => [name, num && num < all.length ? `${num} with samples, ${all.length} in all` : all.length || ""]),
      ...events.slice(0, EVENTS_SHOWN).map(({ name, unit, samples, weight, is_sum: isSum }) => [name, isSum ? weightText(weight, unit) : `${samples.toLocaleString("en-US")} samples, ${weightText(weight, unit)}`]),
      ["more events", events.length > EVENTS_SHOWN ? `${(events.length - EVENTS_SHOWN).toLocaleString("en-US")}, which the menu has` : ""],
    ]);
    const bar = this.shares("Tiers", tiers ?? []);
    return h("section.card", { "aria-label": "Recording" }, h("h2", {}, "Recording"), list, bar);
  }

  /** Shares of tiers as one bar with a legend. */
  shares(title, parts) {
    const whole = parts.reduce((sum, { weight }) => sum + (weight ?? 0), 0);
    if (whole <= 0 || parts.length < 2) return "";
    const bar = h("div.shares", { role: "img", "aria-label": `${title}: ${parts.map(({ name, weight }) => `${name} ${shareText(weight, whole)}`).join(", ")}` });
    const legend = h("ul.shares-legend");
    for (const { name, weight } of [...parts].sort((a, b) => b.weight - a.weight).slice(0, 8)) {
      const colour = this.palette.ofOrigin(originOfTier(name, this.app.overview.origins));
      const [part, swatch] = [h("span"), h("i", { "aria-hidden": "true" })];
      part.style.width = `${(100 * weight) / whole}%`;
      part.style.background = swatch.style.background = colour;
      bar.append(part);
      legend.append(h("li", {}, swatch, ` ${visible(name)} `, h("small", {}, shareText(weight, whole))));
    }
    return h("div", {}, h("h3", {}, title), bar, legend);
  }

  heaviest({ rows, unit, whole }) {
    const host = h("div.grid-host");
    const open = (row) => this.app.change({ tab: "callers", ...functionState(row) });
    const part = (key, label) => ({ key, label, number: true, width: "5.6rem", share: (row) => row[key] / whole, value: (row) => row[key], text: (row) => (row[key] ? shareText(row[key], whole) : "–") });
    const origin = (row) => this.app.overview.origins.findIndex(({ name }) => name === row.origin);
    const [title, column] = rows.some((row) => row.origin === "type") ? ["Heaviest functions and types", "Function or type"] : ["Heaviest functions", "Function"];
    const grid = new Grid(host, {
      label: title, onOpen: open, empty: "Nothing was recorded.",
      columns: [part("self", "Self"), part("total", "Total"), { key: "name", label: column, text: ({ name }) => visible(name), swatch: (row) => (origin(row) < 0 ? null : this.palette.ofOrigin(origin(row))), hint: ({ self }) => weightText(self, unit) }],
    });
    this.grids.push({ grid, rows });
    this.saved = grid;
    return h("section.card.wide", { "aria-label": title }, h("h2", {}, title), host, h("p.actions", {}, ...["flame", "functions"].map((tab) => this.link(tab))));
  }

  /** The threads with what the selection has of them. */
  threads({ threads: all, events }, functions) {
    const host = h("div.grid-host");
    const weights = new Map((functions?.threads ?? []).map(([thread, weight]) => [thread, weight]));
    const threads = functions ? all.map((row) => ({ ...row, weight: weights.get(row.thread) ?? 0 })).sort((a, b) => b.weight - a.weight) : all;
    const whole = threads.reduce((sum, { weight }) => sum + (weight ?? 0), 0);
    const unit = functions?.unit ?? events[0]?.unit ?? "ns";
    const grid = new Grid(host, {
      label: "Threads", onOpen: ({ thread }) => this.app.change({ tab: this.app.overview.has.timeline ? "timeline" : "flame", threads: [thread] }),
      columns: [
        { key: "weight", label: "Share", number: true, width: "5.6rem", sort: true, share: ({ weight }) => weight / whole, value: ({ weight }) => weight, text: ({ weight }) => (weight ? shareText(weight, whole) : "–") },
        { key: "amount", label: amountLabel(unit), number: true, width: ["ns", "bytes"].includes(unit) ? "5.2rem" : "7rem", value: ({ weight }) => weight, text: ({ weight }) => (weight ? amountText(weight, unit) : "") },
        { key: "name", label: "Thread", text: ({ label, name, tid }) => visible(label ?? `${name} ${tid}`) },
      ],
    });
    this.grids.push({ grid, rows: threads });
    return h("section.card", { "aria-label": "Threads" }, h("h2", {}, "Threads"), host);
  }

  snapshots({ snapshots }) {
    const items = snapshots.slice(0, 20).map(({ snapshot, objects, bytes }) => h("li", {}, h("button.link", { onclick: () => this.app.change({ tab: "heap", snapshot: String(snapshot) }) }, `Snapshot ${snapshot}`), ` ${weightText(objects, "objects")}, ${weightText(bytes, "bytes")}`));
    return h("section.card", { "aria-label": "Heap snapshots" }, h("h2", {}, "Heap snapshots"), h("ol.plain", {}, items));
  }

  findings({ diagnostics }) {
    const entries = Object.entries(diagnostics ?? {}).filter(([, num]) => num);
    const text = entries.length ? h("ul.plain", {}, entries.map(([severity, num]) => h("li", { className: `severity ${severity}` }, `${num.toLocaleString("en-US")} ${severityText(severity, num)}`))) : h("p", {}, "Nothing is wrong with the files.");
    return h("section.card", { "aria-label": "Findings" }, h("h2", {}, "Findings"), text, h("p.actions", {}, this.link("files")));
  }

  link(tab) {
    const found = this.app.available.find(({ id }) => id === tab);
    return found ? h("button", { onclick: () => this.app.change({ tab }) }, found.label) : "";
  }

  save() {
    const { saved } = this;
    return { table: saved && tableOf(saved), csv: saved && (() => saved.csv()), command: this.command };
  }
}

/** A severity after a number of findings. */
function severityText(severity, num) {
  return severity.replaceAll("_", " ") + (num > 1 && ["error", "warning"].includes(severity) ? "s" : "");
}

// The tab "Files": each file, its clock, and what is wrong with it, explained.

import { visible, weightText } from "../flame/format.js";
import { facts, h, note } from "../widgets/dom.js";

/** Numbers that are names: thousands are not set apart. */
const PLAIN = /pid|tid|id$/;
/** What other lines of the same file state. */
const HIDDEN = new Set(["path", "numerator", "denominator", "hz_source"]);

/** Files and findings. */
export class FilesView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    host.tabIndex = 0;
  }

  async update() {
    if (this.answer) return;
    this.answer = await this.app.server.json("files");
    const { files, diagnostics } = this.answer;
    this.host.replaceChildren(
      h("div.cards", {}, files.map((file) => this.file(file))),
      h("section.findings", { "aria-label": "Findings" }, h("h2", {}, `Findings (${diagnostics.length})`), diagnostics.length ? diagnostics.map((each) => this.finding(each)) : note("Nothing is wrong with the files.")),
    );
  }

  file({ path, format, version, producer, arch, size_bytes: size, records, clock, joined }) {
    const text = (name, value) => (typeof value === "number" && !PLAIN.test(name) ? value.toLocaleString("en-US") : visible(String(value)));
    const shown = ([name, value]) => value !== null && value !== undefined && !HIDDEN.has(name);
    const words = (name) => name.replaceAll("_", " ");
    const specified = (name) => name;
    const lines = (value, label = words) => {
      const members = value && typeof value === "object" ? Object.entries(value).filter(shown) : [];
      return members.length ? h("ul.plain", {}, members.map(([name, each]) => h("li", {}, `${label(name)}: ${text(name, each)}`))) : null;
    };
    return h("section.card", { "aria-label": path }, h("h2", {}, visible(path.slice(path.lastIndexOf("/") + 1))),
      facts([["path", visible(path)], ["format", [format, version].filter((part) => part !== null && part !== undefined).join(" ")], ["written by", producer && visible(producer)], ["architecture", arch], ["size", size === null || size === undefined ? "" : weightText(size, "bytes")], ["clock", lines(clock) ?? (clock && typeof clock === "string" ? clock : "")], ["joined", lines(joined)], ["records", lines(records, specified)]]));
  }

  finding({ code, severity, path, message, offset, count, title, meaning, action }) {
    const where = [path && visible(path), offset !== null && offset !== undefined ? `offset ${typeof offset === "number" ? `0x${offset.toString(16)}` : offset}` : ""].filter(Boolean).join(", ");
    return h("details.finding", {}, h("summary", {}, h("span.severity", { className: `severity ${severity}` }, String(severity).replaceAll("_", " ")), h("b", {}, ` ${code} `), visible(message ?? title ?? ""), count > 1 ? h("small", {}, ` ×${count.toLocaleString("en-US")}`) : ""),
      facts([["where", where], ["rule", title], ["meaning", meaning], ["what to do", action]]));
  }

  save() {
    return { csv: () => this.csv(), command: this.answer?.command };
  }

  csv() {
    const quoted = (text) => `"${String(text ?? "").replaceAll('"', '""')}"`;
    const columns = ["code", "severity", "path", "offset", "count", "message"];
    return `${[columns.join(","), ...(this.answer?.diagnostics ?? []).map((each) => columns.map((name) => quoted(each[name])).join(","))].join("\n")}\n`;
  }
}

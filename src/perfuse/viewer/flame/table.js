// The heaviest functions, beside the graph.

import { placeTexts, shareText } from "./format.js";

const SHOWN = 500;
const ORDERS = {
  self: (bySamples) => (a, b) => (bySamples ? b.selfSamples - a.selfSamples : b.selfWeight - a.selfWeight) || b.weight - a.weight,
  total: (bySamples) => (a, b) => (bySamples ? b.samples - a.samples : b.weight - a.weight) || b.selfWeight - a.selfWeight,
};

/** A table of functions, sorted by a click on its heads; a click on a row chooses the function. */
export class FunctionTable {
  constructor(element, { profile, palette, onChoose, onFocus }) {
    Object.assign(this, { element, profile, palette, order: "self", rows: [], state: {} });
    this.body = element.querySelector("tbody");
    this.more = element.querySelector(".more");
    for (const head of element.querySelectorAll("th[data-order]")) {
      head.querySelector("button").addEventListener("click", () => this.sort(head.dataset.order));
    }
    const rowOf = (event) => event.target.closest("tr")?.dataset.key;
    // Rows are made anew by the first click of two, so a double click shows in the count only.
    this.body.addEventListener("click", (event) => {
      const key = rowOf(event);
      if (key !== undefined) (event.detail === 2 ? onFocus : onChoose)(Number(key));
    });
    this.body.addEventListener("keydown", (event) => {
      const key = rowOf(event);
      if (key === undefined) return;
      if (event.key === "Enter") onChoose(Number(key));
      const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (next) event.target.closest("tr")[next]?.focus();
      if (event.key === "Enter" || next) event.preventDefault(), event.stopPropagation();
    });
  }

  sort(order) {
    this.order = order;
    this.show(this.state);
  }

  /** Shows functions; `flags` keeps those that match a search, `focus` marks one. */
  show(state) {
    this.state = state;
    const { weights, flags, focus, bySamples, whole } = state;
    const found = [...weights.values()].filter((row) => !flags || flags[row.symbol]).sort(ORDERS[this.order](bySamples));
    for (const head of this.element.querySelectorAll("th[data-order]")) {
      head.ariaSort = head.dataset.order === this.order ? "descending" : "none";
    }
    const shown = found.slice(0, SHOWN);
    const places = placeTexts(shown.map(({ symbol }) => ({ name: this.profile.names[symbol], place: this.home(symbol) })));
    const rows = shown.map((row, at) => this.row(row, places[at], focus, bySamples, whole));
    this.body.replaceChildren(...rows);
    const left = found.length - rows.length;
    this.more.textContent = found.length ? (left ? `and ${left.toLocaleString("en-US")} more` : "") : "No function matches.";
  }

  row({ key, symbol, selfWeight, selfSamples, weight, samples }, place, focus, bySamples, whole) {
    const { profile } = this;
    const row = document.createElement("tr");
    row.dataset.key = key;
    row.tabIndex = -1;
    row.ariaSelected = String(key === focus);
    const [own, total] = bySamples ? [selfSamples, samples] : [selfWeight, weight];
    const name = document.createElement("td");
    const swatch = document.createElement("i");
    swatch.style.background = this.palette.of(symbol);
    const label = document.createElement("b");
    label.textContent = profile.shortNames[symbol];
    const details = [profile.tier[symbol], place].filter(Boolean);
    const where = document.createElement("small");
    where.textContent = details.join(" · ");
    name.append(swatch, label, where);
    name.title = [profile.names[symbol], profile.place(symbol), profile.module[symbol]].filter(Boolean).join("\n");
    row.append(this.cell(own, whole), this.cell(total, whole), name);
    return row;
  }

  /** The source file of JIT code, or the module of other code; null for the kernel, which its colour shows. */
  home(symbol) {
    const { profile } = this;
    const origin = profile.origins[profile.originOf[symbol]].name;
    if (origin === "kernel") return null;
    const jit = profile.module[symbol]?.startsWith("[jit]");
    return jit ? profile.place(symbol) : profile.module[symbol];
  }

  cell(part, whole) {
    const cell = document.createElement("td");
    cell.className = "number";
    cell.style.setProperty("--share", `${whole > 0 ? (100 * part) / whole : 0}%`);
    cell.textContent = part ? shareText(part, whole) : "–";
    return cell;
  }
}

// A table of any length: only the rows in sight are elements. Arrow keys walk, Enter opens, heads sort.

import { h } from "./dom.js";

const ROW = 24;
const SPARE = 8;
const NARROW = matchMedia("(max-width: 960px)");
let made = 0;

/**
 * A table of rows.
 *
 * Columns are `{ key, label, title, text(row), value(row), share(row), swatch(row), hint(row), number, width, sort }`: `text`
 * is what is shown, `value` what is sorted by and saved, `share` (0 to 1) the length of a bar, `sort` whether the
 * head sorts (`"server"` where rows are pages of a longer answer).
 */
export class Grid {
  constructor(host, { label, columns, onOpen, onSelect, onSort, onMore, role = "grid", empty = "Nothing to show." }) {
    Object.assign(this, { host, columns, onOpen, onSelect, onSort, onMore, empty, rows: [], shown: [], selected: -1 });
    this.order = null;
    this.id = `grid${(made += 1)}`;
    this.head = h("tr");
    this.body = h("tbody");
    this.table = h("table.rows", { role, "aria-label": label, tabIndex: 0 }, h("thead", {}, this.head), this.body);
    this.scroller = h("div.scroller", {}, this.table);
    this.foot = h("p.more", { role: "status" });
    host.replaceChildren(this.scroller, this.foot);
    this.scroller.addEventListener("scroll", () => this.renderSoon(), { passive: true });
    new ResizeObserver(() => this.renderSoon()).observe(this.scroller);
    // Rows may be made anew between pressing and releasing: the click is then of no row.
    this.body.addEventListener("pointerdown", ({ target }) => (this.pressed = target.closest("tr[data-row]")));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.table.addEventListener("keydown", (event) => this.key(event));
    this.setColumns(columns);
  }

  setColumns(columns) {
    this.columns = columns;
    // On a narrow screen the name of a row comes first, and stays in sight while its numbers are scrolled.
    const name = NARROW.matches ? columns.find(({ number, width }) => !number && !width) : undefined;
    this.drawn = name ? [name, ...columns.filter((column) => column !== name)] : columns;
    this.name = name;
    if (name) this.table.style.setProperty("--least-width", `calc(${this.drawn.map(leastWidth).join(" + ")})`);
    this.head.replaceChildren(...this.drawn.map((column) => this.headOf(column)));
  }

  headOf(column) {
    const cell = h(`th${column.number ? ".number" : ""}${column === this.name ? ".first" : ""}`, { role: "columnheader", scope: "col", title: column.title ?? "" });
    if (column.width) cell.style.width = column.width;
    if (!column.sort) cell.append(column.label);
    else {
      const sorted = this.order?.column === column.key;
      cell.ariaSort = sorted ? (this.order.descending ? "descending" : "ascending") : "none";
      cell.append(h("button", { onclick: () => this.sortBy(column) }, column.label));
    }
    return cell;
  }

  sortBy(column) {
    const again = this.order?.column === column.key;
    this.setOrder(column.key, again ? !this.order.descending : column.number === true);
    if (column.sort === "server") this.onSort?.(this.order);
    else this.show(this.all, this);
  }

  setOrder(column, descending) {
    this.order = { column, descending };
    this.head.replaceChildren(...this.drawn.map((each) => this.headOf(each)));
  }

  /** Shows rows; `total` is how many there are where these are the first of more. */
  show(rows, { total = rows.length, foot = "" } = {}) {
    this.all = rows;
    const column = this.columns.find(({ key, sort }) => key === this.order?.column && sort && sort !== "server");
    this.rows = column ? sorted(rows, column, this.order.descending) : rows;
    Object.assign(this, { total, footText: foot });
    this.table.setAttribute("aria-rowcount", total + 1);
    if (this.selected >= this.rows.length) this.selected = -1;
    const left = total - rows.length;
    this.foot.textContent = !rows.length ? this.empty : foot || (left > 0 && !this.onMore ? `and ${left.toLocaleString("en-US")} more` : "");
    this.loading = false;
    this.render();
  }

  renderSoon() {
    this.frame ??= requestAnimationFrame(() => this.render());
  }

  render() {
    this.frame = undefined;
    const { scroller, rows, total } = this;
    const height = scroller.clientHeight || 600;
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - SPARE);
    const end = Math.min(rows.length, first + Math.ceil(height / ROW) + 2 * SPARE);
    const parts = [];
    const spacer = (numRows) => {
      const row = h("tr.spacer", { "aria-hidden": "true" });
      row.style.height = `${numRows * ROW}px`;
      return row;
    };
    if (first) parts.push(spacer(first));
    for (let nth = first; nth < end; nth++) parts.push(this.row(rows[nth], nth));
    if (end < rows.length) parts.push(spacer(rows.length - end));
    this.body.replaceChildren(...parts);
    if (this.selected >= 0) this.table.setAttribute("aria-activedescendant", `${this.id}-${this.selected}`);
    else this.table.removeAttribute("aria-activedescendant");
    if (this.onMore && !this.loading && end === rows.length && rows.length && rows.length < total) {
      this.loading = true;
      this.foot.textContent = `${rows.length.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}…`;
      this.onMore();
    }
  }

  row(item, nth) {
    const row = h("tr", { role: "row", id: `${this.id}-${nth}`, "aria-rowindex": nth + 2, "aria-selected": String(nth === this.selected) });
    row.dataset.row = nth;
    row.append(...this.drawn.map((column) => this.cell(item, column)));
    return row;
  }

  cell(item, column) {
    const cell = h(`td${column.number ? ".number" : ""}${column === this.name ? ".first" : ""}`, { role: "gridcell" });
    if (column.share) cell.style.setProperty("--share", `${Math.min(100, 100 * (column.share(item) || 0)).toFixed(2)}%`);
    const swatch = column.swatch?.(item);
    if (swatch) {
      const box = h("i", { "aria-hidden": "true" });
      box.style.background = swatch;
      cell.append(box);
    }
    const text = column.text(item) ?? "";
    if (column.number) cell.append(text);
    else cell.append(h("b", {}, text));
    const hint = column.hint?.(item);
    if (hint) cell.append(h("small", {}, hint));
    if (!column.number) cell.title = column.full?.(item) ?? text;
    return cell;
  }

  clicked(event) {
    const row = event.target.closest("tr[data-row]") ?? this.pressed;
    if (!row) return;
    this.select(Number(row.dataset.row));
    // Rows are made anew by the first click of two, so a double click shows in the count only.
    if (event.detail === 2) this.open();
  }

  /** Selects a row and brings it into sight. */
  select(nth) {
    if (nth < 0 || nth >= this.rows.length) return;
    this.selected = nth;
    const { scroller } = this;
    const head = this.head.offsetHeight;
    if (nth * ROW < scroller.scrollTop) scroller.scrollTop = nth * ROW;
    else if ((nth + 1) * ROW + head > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = (nth + 1) * ROW + head - scroller.clientHeight;
    this.render();
    this.onSelect?.(this.rows[nth]);
  }

  open() {
    const item = this.rows[this.selected];
    if (item !== undefined) this.onOpen?.(item);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) this.select(Math.min(Math.max(this.selected + step, 0), this.rows.length - 1));
    else if (event.key === "Enter" && event.target === this.table) this.open();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The rows as comma-separated values, with a line of labels. */
  csv() {
    const lines = [this.columns.map(({ label }) => label), ...this.rows.map((row) => this.columns.map((column) => plain(row, column)))];
    return `${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`;
  }
}

/** The width of a column, where the table is as narrow as it may be. */
function leastWidth({ number, width }) {
  return width ?? (number ? "6rem" : "11rem");
}

function plain(row, column) {
  return column.value ? column.value(row) : column.text(row);
}

/** A value as a field of comma-separated values. */
export function quoted(value) {
  const text = String(value ?? "");
  // A spreadsheet would run a text that starts like a formula.
  const safe = /^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function sorted(rows, column, descending) {
  const value = column.value ?? column.text;
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a) ?? "", value(b) ?? ""];
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en"));
  });
}

// A table whose rows have rows below them, made when they are first opened.

import { h } from "./dom.js";
import { Grid } from "./grid.js";

/**
 * A tree as a table. `children(item)` returns an array, or a promise of one; `hasChildren(item)` whether it can be opened.
 * Left and right close and open; `*` opens the heaviest path.
 */
export class TreeGrid extends Grid {
  constructor(host, { children, hasChildren, ...options }) {
    super(host, { role: "treegrid", ...options });
    Object.assign(this, { children, hasChildren });
    this.openItems = new Map();
    this.levels = new Map();
  }

  /** Shows trees of these roots; the first path is opened as far as one child has most of its parent. */
  showRoots(roots, { openTo = 0 } = {}) {
    this.roots = roots;
    this.openItems = new Map();
    this.flatten();
    for (let item = roots[0], depth = 0; item && depth < openTo; depth++) {
      const children = this.hasChildren(item) ? this.children(item) : [];
      if (!Array.isArray(children) || !children.length) break;
      this.openItems.set(item, children);
      [item] = children;
    }
    this.flatten();
  }

  flatten() {
    const rows = [];
    this.levels = new Map();
    const visit = (items, level) => {
      items.forEach((item, nth) => {
        rows.push(item);
        this.levels.set(item, { level, place: nth + 1, size: items.length });
        const below = this.openItems.get(item);
        if (below) visit(below, level + 1);
      });
    };
    visit(this.roots ?? [], 1);
    this.show(rows);
  }

  row(item, nth) {
    const row = super.row(item, nth);
    const { level, place, size } = this.levels.get(item);
    const attributes = { "aria-level": level, "aria-posinset": place, "aria-setsize": size };
    for (const [name, value] of Object.entries(attributes)) row.setAttribute(name, value);
    if (this.hasChildren(item)) row.ariaExpanded = String(this.openItems.has(item));
    const name = row.querySelector("td:not(.number)");
    const twisty = h("span.twisty", { "aria-hidden": "true" }, this.hasChildren(item) ? (this.openItems.has(item) ? "▾" : "▸") : "");
    name.style.paddingLeft = `calc(0.3rem + ${Math.min(level, 60) - 1} * var(--indent, 0.9rem))`;
    name.prepend(twisty);
    return row;
  }

  clicked(event) {
    super.clicked(event);
    if (event.target.closest(".twisty")) this.toggle(this.rows[this.selected]);
  }

  async toggle(item) {
    if (this.openItems.delete(item)) this.flatten();
    else await this.expand(item);
  }

  async expand(item) {
    if (!item || !this.hasChildren(item) || this.openItems.has(item)) return;
    this.openItems.set(item, await this.children(item));
    this.flatten();
  }

  key(event) {
    const item = this.rows[this.selected];
    if (item && event.key === "ArrowRight") {
      if (this.openItems.has(item)) this.select(this.selected + 1);
      else this.expand(item);
    } else if (item && event.key === "ArrowLeft") {
      if (this.openItems.delete(item)) this.flatten();
      else this.select(this.parentRow());
    } else if (item && event.key === "*") this.expandHeaviest(item);
    else return super.key(event);
    event.preventDefault();
    event.stopPropagation();
  }

  parentRow() {
    const { level } = this.levels.get(this.rows[this.selected]);
    for (let nth = this.selected - 1; nth >= 0; nth--) if (this.levels.get(this.rows[nth]).level < level) return nth;
    return this.selected;
  }

  async expandHeaviest(item) {
    for (let depth = 0; item && depth < 60 && this.hasChildren(item); depth++) {
      if (!this.openItems.has(item)) this.openItems.set(item, await this.children(item));
      [item] = this.openItems.get(item);
    }
    this.flatten();
  }
}

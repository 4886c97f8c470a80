// A table of an answer that comes in pages, sorted and searched by the server.

import { isAbort } from "../data/server.js";
import { Grid } from "./grid.js";

const PAGE = 200;

/**
 * A grid whose rows are pages. `ask(parameters)` returns `{ rows, num, … }`; `parameters` are `sort`, `order`, `offset`
 * and `limit`. `onAnswer(answer)` gets each first page before it is shown. `run(act)` runs what a click on a head asks
 * for, and shows that the view is busy, or that it failed.
 */
export class PagedGrid extends Grid {
  constructor(host, { ask, onAnswer, run, sort, descending = true, ...options }) {
    super(host, { ...options, onSort: () => run(() => this.reload()), onMore: () => this.more() });
    Object.assign(this, { ask, onAnswer, generation: 0 });
    if (sort) this.setOrder(sort, descending);
  }

  get sorting() {
    return this.order ? { sort: this.order.column, order: this.order.descending ? "desc" : "asc" } : {};
  }

  /** Asks for the first page. */
  async reload() {
    const generation = (this.generation += 1);
    const answer = await this.ask({ ...this.sorting, offset: 0, limit: PAGE });
    if (generation !== this.generation) return;
    this.onAnswer?.(answer);
    this.selected = -1;
    this.scroller.scrollTop = 0;
    this.show(answer.rows, { total: answer.num ?? answer.rows.length });
  }

  async more() {
    const { generation } = this;
    try {
      const answer = await this.ask({ ...this.sorting, offset: this.rows.length, limit: PAGE });
      if (generation !== this.generation) return;
      const rows = [...this.rows, ...answer.rows];
      this.show(rows, { total: answer.rows.length ? (answer.num ?? rows.length) : rows.length });
    } catch (error) {
      if (!isAbort(error)) this.foot.textContent = error.message;
    }
  }
}

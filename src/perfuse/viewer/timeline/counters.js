// Counters as tables, beside the picture of their values: all of them in the time in sight, and one value by value.

import { visible } from "../flame/format.js";
import { isAbort } from "../data/server.js";
import { momentText, rangeText } from "../data/times.js";
import { h } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";

/** Most rows of the table of one counter; where it has more values, a row is for a part of the time. */
const PARTS = 4000;

/** A value of a counter, as it was recorded. */
export function valueText(value) {
  return value === null || value === undefined ? "" : value.toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** The value of a counter at a moment: the last that was recorded before it. */
export function valueAt({ t, last, before }, moment) {
  const next = t.findIndex((time) => time > moment);
  const nth = (next < 0 ? t.length : next) - 1;
  return nth < 0 ? before : last[nth];
}

function detailOf({ section, unit }) {
  return visible([section, unit].filter(Boolean).join(", "));
}

const number = (key, label, title, text) => ({ key, label, title, number: true, sort: true, width: "7.5rem", text: (row) => text(row[key]), value: (row) => row[key] });
const EXTREMES = [number("min", "Least", "The smallest value", valueText), number("max", "Greatest", "The largest value", valueText), number("last", "Last", "The last value", valueText)];
const NUM = { ...number("num", "Values", "How many values were recorded", (num) => num.toLocaleString("en-US")), width: "5rem" };

/** The table of all counters, for the time in sight. */
export class CountersTable {
  constructor(host, view) {
    Object.assign(this, { host, view });
    this.grid = new Grid(host, {
      label: "Counters in sight", empty: "No counter has a value in sight.",
      columns: [
        { key: "name", label: "Counters in sight", sort: true, text: ({ counter }) => visible(counter.name), hint: ({ counter }) => detailOf(counter) },
        number("before", "At start", "The last value before the time in sight", valueText), ...EXTREMES, NUM,
      ],
      onSelect: ({ counter }) => view.panel.showCounter(counter),
    });
  }

  /** Asks for the values in sight, unless they are here. */
  async fill() {
    const { view, host } = this;
    const counters = view.rows.filter(({ counter }) => counter).map(({ counter }) => counter);
    const [from, to] = view.windowAsked;
    const key = JSON.stringify([from, to, counters.map(({ counter }) => counter)]);
    if (key === this.key) return;
    this.key = key;
    host.dataset.pending = "1";
    try {
      const answer = await view.app.server.json("counters", { from, to, buckets: 1 }, { latest: "counters-table" });
      const found = new Map(answer.counters.map((series) => [series.counter, series]));
      const rows = counters.flatMap((counter) => {
        const { before, min, max, last, num } = found.get(counter.counter) ?? {};
        return found.has(counter.counter) ? [{ counter, before, min: min[0], max: max[0], last: last[0], num: num[0] ?? 0 }] : [];
      });
      this.grid.show(rows);
      host.dataset.pending = "";
    } catch (error) {
      this.key = undefined;
      if (!isAbort(error)) view.app.fail(view, error);
    }
  }
}

/** The values of one counter in the time in sight; returns elements. */
export async function valuesOf(view, counter) {
  const [from, to] = view.windowAsked;
  const answer = await view.app.server.json("counters", { counter: counter.counter, from, to, buckets: PARTS }, { latest: "counter-values" });
  const { t = [], before = null, ...columns } = answer.counters[0] ?? {};
  const rows = t.map((time, nth) => ({ time, ...Object.fromEntries(["min", "max", "last", "num"].map((name) => [name, columns[name][nth]])) }));
  const isExact = rows.every(({ num }) => num === 1);
  const table = h("div.grid-host");
  const moment = { key: "time", label: isExact ? "Time" : "Time of the last", number: true, width: "9rem", text: ({ time }) => momentText(time, (to - from) / 1e6), value: ({ time }) => time };
  const value = { ...EXTREMES[2], label: "Value", sort: false };
  const grid = new Grid(table, { label: `Values of ${visible(counter.name)}`, empty: "It has no value in sight.", columns: isExact ? [moment, value] : [moment, ...EXTREMES, NUM] });
  grid.show(rows);
  const facts = [detailOf(counter), rangeText([from, to]), before === null ? "" : `${valueText(before)} at its start`].filter(Boolean).join(" · ");
  return [h("h2", {}, visible(counter.name)), h("p.where", {}, facts), table];
}

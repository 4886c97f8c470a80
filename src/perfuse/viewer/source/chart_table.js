// The charts of JIT code as tables, with the same values.

import { momentText } from "../data/times.js";
import { visible, weightText } from "../flame/format.js";
import { h } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";

const number = (key, label, text, width = "9rem") => ({ key, label, number: true, sort: true, width, text: (row) => text(row[key]), value: (row) => row[key] });

/** The chart above as a table; it is made when it is opened. */
export class ChartTable {
  constructor(charts) {
    this.charts = charts;
    this.table = h("div.grid-host");
    this.host = h("details.chart-table", { ontoggle: () => this.show() }, h("summary", {}, "Chart as a table"), this.table);
  }

  /** Shows the rows of the chart in sight, if it is open. */
  show() {
    if (!this.host.open) return;
    const { label, columns, rows } = this.charts.form === "space" ? this.space() : this.series();
    new Grid(this.table, { label, columns, empty: "No code was compiled." }).show(rows);
  }

  /** Parts of the time with compilations, or in which the size of live code changed. */
  series() {
    const { form, series: { tiers, counts, live_bytes: live, from, bucket_ns: length } } = this.charts;
    const time = number("time", "From", (moment) => momentText(moment, length));
    const starts = live.map((_, at) => ({ at, time: from + at * length }));
    if (form === "live") {
      const rows = starts.filter(({ at }) => live[at] !== (live[at - 1] ?? 0)).map((row) => ({ ...row, live: live[row.at] }));
      return { label: "Size of live code", columns: [time, number("live", "Live code", (size) => weightText(size, "bytes"))], rows };
    }
    const ofTier = tiers.map((tier, nth) => number(`tier${nth}`, visible(tier ?? "code"), (count) => count.toLocaleString("en-US")));
    const rows = starts.map((row) => ({ ...row, ...Object.fromEntries(counts.map((values, nth) => [`tier${nth}`, values[row.at]])) }));
    return { label: "Compilations over time", columns: [time, ...ofTier], rows: rows.filter(({ at }) => counts.some((values) => values[at])) };
  }

  space() {
    const columns = [
      { key: "address", label: "Address", width: "11rem", text: ({ address }) => address },
      number("size_bytes", "Size", (size) => weightText(size, "bytes"), "6rem"),
      number("create_ns", "Compiled", (moment) => (moment === null ? "" : momentText(moment, 1e4)), "8rem"),
      { key: "tier", label: "Tier", sort: true, width: "9rem", text: ({ tier }) => visible(tier ?? "code") },
      { key: "name", label: "Function", sort: true, text: ({ name }) => visible(name ?? "") },
    ];
    return { label: "Code by address", columns, rows: this.charts.space.ranges };
  }
}

// Charts of JIT code: compilations by tier over time, the size of live code, and code by address.

import { originOfTier } from "../data/tiers.js";
import { lengthText, momentText, tickStep } from "../data/times.js";
import { visible, weightText } from "../flame/format.js";
import { FONT } from "../widgets/font.js";
import { Hint } from "../widgets/hint.js";

const BUCKETS = 300;
const LEFT = 8;
const BOTTOM = 24;
const TOP = 18;
const PAGE = 4096;
/** The chart above the table of compiled functions. */
export class CodeCharts {
  constructor(app, palette) {
    Object.assign(this, { app, palette, form: "tiers", label: "", hint: new Hint() });
  }

  async show(form, at) {
    this.form = form;
    const { server } = this.app;
    if (form === "space") {
      if (this.at !== at) this.space = await server.json("code/space", { at: Math.floor(at) }, { latest: "space" });
      this.at = at;
      this.label = `${this.space.num.toLocaleString("en-US")} pieces of code by address at ${momentText(at, 1e6)}`;
      return;
    }
    this.series ??= await server.json("code/timeline", { buckets: BUCKETS });
    const { tiers, counts, live_bytes: live } = this.series;
    const sums = tiers.map((tier, nth) => `${tier ?? "code"} ${counts[nth].reduce((a, b) => a + b, 0)}`);
    this.label = form === "live" ? `Live code: at most ${weightText(Math.max(0, ...live), "bytes")}` : `Compilations: ${sums.join(", ")}`;
  }

  colourOf(tier) {
    return this.palette.ofOrigin(originOfTier(tier, this.app.overview.origins));
  }

  draw(context, width, height) {
    const { palette } = this;
    context.fillStyle = palette.page;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    if (this.form === "space") return this.space && this.drawSpace(context, width, height);
    if (this.series) this.drawSeries(context, width, height);
  }

  drawSeries(context, width, height) {
    const { palette, form, series: { tiers, counts, live_bytes: live } } = this;
    // Each tier has a strip and a scale of its own: beside thousands of stubs a few optimised functions would not be seen.
    const rows = form === "live" ? [["live code", live]] : tiers.map((tier, nth) => [tier ?? "code", counts[nth]]);
    const num = rows[0]?.[1].length;
    if (!num) return;
    const [wide, each] = [width - 2 * LEFT, (height - BOTTOM) / rows.length];
    const label = Math.min(TOP, each / 2);
    rows.forEach(([name, values], nth) => {
      const bottom = each * (nth + 1);
      const most = Math.max(1, ...values);
      const sum = values.reduce((total, value) => total + value, 0);
      context.fillStyle = form === "live" ? palette.accent : this.colourOf(name);
      context.fillRect(LEFT, bottom - each + label / 2 - 5, 10, 10);
      values.forEach((value, at) => {
        const high = Math.max(2, (value / most) * (each - label - 2));
        if (value) context.fillRect(LEFT + (at / num) * wide, bottom - high, Math.max(1, wide / num), high);
      });
      context.fillStyle = palette.edge;
      context.fillRect(LEFT, bottom - 1, wide, 1);
      context.fillStyle = palette.text;
      context.fillText(form === "live" ? name : `${visible(name)} ${sum.toLocaleString("en-US")}`, LEFT + 15, bottom - each + label / 2);
      context.fillStyle = palette.quiet;
      context.textAlign = "right";
      context.fillText(form === "live" ? `at most ${weightText(most, "bytes")}` : `at most ${most.toLocaleString("en-US")} per ${lengthText(this.app.span / num)}`, width - LEFT, bottom - each + label / 2);
      context.textAlign = "left";
    });
    this.axis(context, wide, height - BOTTOM);
  }

  axis(context, wide, top) {
    const { palette, app } = this;
    const step = tickStep((app.span / wide) * 110);
    for (let time = 0; time <= app.span; time += step) {
      const x = LEFT + (time / app.span) * wide;
      context.fillStyle = palette.quiet;
      context.fillRect(Math.round(x), top, 1, 5);
      context.fillText(momentText(time, step), x + 3, top + 13);
    }
  }

  /** Code as rows of addresses: memory that has no code between two pieces is left out where it is long. */
  drawSpace(context, width, height) {
    const { palette, space: { ranges } } = this;
    this.cells = [];
    const segments = segmentsOf(ranges);
    const bytes = segments.reduce((sum, { size }) => sum + size, 0);
    const high = height - BOTTOM;
    const numRows = Math.max(1, Math.floor(high / 9));
    const perRow = Math.max(1, Math.ceil(bytes / numRows));
    const scale = (width - 2 * LEFT) / perRow;
    context.fillStyle = palette.raised;
    context.fillRect(LEFT, 0, width - 2 * LEFT, numRows * 9);
    for (const { start, items, offset } of segments) {
      for (const { at, size, item } of items) {
        context.fillStyle = this.colourOf(item.tier);
        let from = offset + Number(at - start);
        let left = size;
        while (left > 0) {
          const row = Math.floor(from / perRow);
          const part = Math.min(left, (row + 1) * perRow - from);
          const box = { x: LEFT + (from % perRow) * scale, y: row * 9, width: Math.max(0.5, part * scale), height: 8, item };
          context.fillRect(box.x, box.y, box.width, box.height);
          this.cells.push(box);
          from += part;
          left -= part;
        }
      }
    }
    context.fillStyle = palette.quiet;
    const gaps = segments.length > 1 ? `, ${segments.length} regions` : "";
    context.fillText(`${this.space.num.toLocaleString("en-US")} pieces of code in ${weightText(bytes, "bytes")} of addresses${gaps}, ${weightText(perRow, "bytes")} a line, at ${momentText(this.at, 1e6)}`, LEFT, height - BOTTOM / 2);
  }

  bind(host) {
    host.addEventListener("pointermove", (event) => {
      if (this.form !== "space") return;
      const { left, top } = host.getBoundingClientRect();
      const [x, y] = [event.clientX - left, event.clientY - top];
      const cell = this.cells?.findLast((box) => x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y && y < box.y + 9);
      if (!cell) return this.hint.hide();
      const { item } = cell;
      this.hint.show(visible(item.name ?? ""), [["tier", item.tier], ["address", item.address], ["size", weightText(item.size_bytes, "bytes")], ["compiled", item.create_ns === null ? "" : momentText(item.create_ns, 1e4)]], event.clientX, event.clientY);
    });
    host.addEventListener("pointerleave", () => this.hint.hide());
  }
}

/** Ranges of code by address, cut where there is no code for long. */
function segmentsOf(ranges) {
  const sorted = ranges.map((item) => ({ item, at: BigInt(item.address), size: item.size_bytes })).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  const segments = [];
  let offset = 0;
  for (const each of sorted) {
    let segment = segments.at(-1);
    if (!segment || each.at > segment.start + BigInt(segment.size + 16 * PAGE)) {
      if (segment) offset += segment.size;
      segment = { start: each.at, size: 0, items: [], offset };
      segments.push(segment);
    }
    segment.items.push(each);
    segment.size = Math.max(segment.size, Number(each.at - segment.start) + each.size);
  }
  return segments;
}

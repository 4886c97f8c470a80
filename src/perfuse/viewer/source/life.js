// The life of a function: each of its compilations in time, and when it ran.

import { originOfTier } from "../data/tiers.js";
import { momentText, tickStep } from "../data/times.js";
import { FONT } from "../widgets/font.js";
import { PaneCanvas } from "../widgets/pane_canvas.js";
import { h } from "../widgets/dom.js";

const ROW = 18;
const AXIS = 20;
const MOST_ROWS = 40;
/** Origins from the first to the last tier: a function that runs in an earlier one again was deoptimised. */
const ORDER = ["interpreter", "ahead_of_time", "baseline", "mid_tier", "optimised"];

/** What is known of each compilation: how often it ran, and whether the function had been in its tier or a higher one before. */
export function lifeOf(compilations, { codes }, origins) {
  const ran = new Map(codes.map((each) => [each.code, each]));
  const rank = ({ tier }) => ORDER.indexOf(origins[originOfTier(tier, origins)].name);
  const seen = new Set();
  let highest = -1;
  const rows = compilations.map((each) => {
    const { samples = 0, first_ns: first, last_ns: last, buckets = [], counts = [] } = ran.get(each.code) ?? {};
    const row = { ...each, rank: rank(each), samples, first, last, buckets, counts, isAgain: seen.has(each.tier), isLower: rank(each) >= 0 && rank(each) < highest };
    seen.add(each.tier);
    highest = Math.max(highest, row.rank);
    return row;
  });
  // It ran in an earlier tier after it had run in a later one: the optimised code was left.
  for (const row of rows) row.ranLowerAgain = row.rank >= 0 && rows.some((other) => other.rank > row.rank && other.samples && row.samples && row.last > other.first);
  return rows;
}

/** What a row states in words. */
export function lifeText({ isAgain, isLower, ranLowerAgain, samples, last }) {
  return [
    samples ? `${samples.toLocaleString("en-US")} samples` : "", isAgain ? "compiled again" : "", isLower ? "in a lower tier than before" : "",
    ranLowerAgain ? `ran until ${momentText(last, 1e4)}, after higher tiers had run: deoptimised, or a call that began before` : "",
  ].filter(Boolean).join(" · ");
}

/** The chart: a bar for each compilation from its creation to its end, and marks where samples are in it. */
export class LifeChart {
  constructor(app, palette) {
    Object.assign(this, { app, palette, rows: [] });
    this.host = h("div.canvas.life");
    this.pane = new PaneCanvas(this.host, (context, width) => this.draw(context, width), { label: "Compilations of the function over time; the list has the same data" });
    palette.onChange(() => this.pane.request());
  }

  show(rows, life) {
    Object.assign(this, { rows: rows.slice(0, MOST_ROWS), life });
    this.host.style.height = `${this.rows.length * ROW + AXIS}px`;
    this.pane.request();
  }

  draw(context, width) {
    const { palette, app, rows, life } = this;
    const height = rows.length * ROW;
    context.fillStyle = palette.page;
    context.fillRect(0, 0, width, height + AXIS);
    if (!life) return;
    context.font = FONT;
    context.textBaseline = "middle";
    const x = (time) => (Math.min(Math.max(time, 0), app.span) / app.span) * width;
    const most = Math.max(1, ...rows.flatMap(({ counts }) => counts));
    rows.forEach((row, nth) => {
      const [left, right] = [x(row.create_ns ?? 0), x(row.retire_ns ?? app.span)];
      context.fillStyle = palette.ofOrigin(originOfTier(row.tier, app.overview.origins));
      context.globalAlpha = 0.3;
      context.fillRect(left, nth * ROW + 2, Math.max(2, right - left), ROW - 4);
      context.globalAlpha = 1;
      context.fillRect(left, nth * ROW + 1, 2, ROW - 2);
      row.buckets.forEach((bucket, at) => {
        const high = Math.max(3, (row.counts[at] / most) * (ROW - 4));
        context.fillRect(x(life.from + bucket * life.bucket_ns), (nth + 1) * ROW - 2 - high, Math.max(1.5, (life.bucket_ns / app.span) * width), high);
      });
      context.fillStyle = palette.text;
      const text = row.tier ?? "code";
      const wide = context.measureText(text).width;
      context.fillText(text, left + wide + 8 < width ? left + 5 : Math.max(0, left - wide - 4), nth * ROW + ROW / 2);
    });
    const step = tickStep((app.span / width) * 90);
    for (let time = 0; time <= app.span; time += step) {
      context.fillStyle = palette.quiet;
      context.fillRect(Math.round(x(time)), height, 1, 4);
      context.fillText(momentText(time, step), x(time) + 3, height + AXIS / 2 + 1);
    }
  }
}

// The difference of two selections, or of a selection and another recording: a flame graph of both, coloured by what changed, and the same as a table.

import { shareText, weightText, visible } from "../flame/format.js";
import { layout } from "../flame/layout.js";
import { Painter } from "../flame/painter.js";
import { Palette } from "../flame/palette.js";
import { Callees } from "../flame/view.js";
import { rangeText } from "../data/times.js";
import { h } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";
import { Hint } from "../widgets/hint.js";
import { SvgContext } from "../widgets/svg_context.js";

/** A change of this share of the whole has the strongest colour. */
const STRONGEST = 0.05;
const STEPS = 6;

/** The same path in two trees: shares of the whole in the selection (`a`) and in the base (`b`). */
class DifferenceNode {
  constructor(trees, parent, a, b) {
    Object.assign(this, { trees, parent, nodes: [a, b], depth: parent ? parent.depth + 1 : 0, symbol: parent ? 0 : -1 });
    const [shareA, shareB] = [a, b].map((node, at) => (node && trees[at].whole > 0 ? node.weight / trees[at].whole : 0));
    Object.assign(this, { a: shareA, b: shareB, larger: Math.max(shareA, shareB), grouped: null });
    this.width = this.larger;
  }

  /** Width: the larger share, scaled where the children of a node would have more than the node. */
  get value() {
    return this.width;
  }

  get weight() {
    return this.width;
  }

  /** Boxes that are drawn as one ask it for what widths mean. */
  get view() {
    return { bySamples: false };
  }

  get samples() {
    return 0;
  }

  /** Profile and symbol that describe the node. */
  get described() {
    const at = this.nodes[0] ? 0 : 1;
    return [this.trees[at].profile, this.nodes[at].symbol];
  }

  get path() {
    const path = [];
    for (let node = this; node; node = node.parent) path.unshift(node);
    return path;
  }

  /** Nodes below, the widest first; made on first access. */
  get children() {
    return (this.grouped ??= this.expand());
  }

  expand() {
    const children = pairsOf(this.trees, this.nodes).map(([a, b]) => new DifferenceNode(this.trees, this, a, b));
    children.sort((x, y) => y.larger - x.larger);
    const sum = children.reduce((total, child) => total + child.larger, 0);
    const scale = this.width / Math.max(sum, this.larger, Number.MIN_VALUE);
    for (const child of children) child.width = child.larger * scale;
    return children;
  }
}

/** Names of functions without a name. */
const NO_NAMES = new Set(["(anonymous)", "anonymous", "<lambda>", "operator()"]);

/** Number of the library's version, of the process: not of the same module in another recording. */
const fileOf = (path) => path.slice(path.lastIndexOf("/") + 1).replace(/(\.so)(\.\d+)+$/, "$1").replace(/^(perf|jit)-\d+\./, "$1.");

/** What the same function has in common in two recordings, the most certain first; null where it says nothing. */
const EVIDENCE = [
  ({ name, module, place }) => [name, module, place],
  ({ name, module, place, file }) => (place && NO_NAMES.has(name) ? null : [name, module && fileOf(module), file]),
  ({ name, module, place }) => (place && NO_NAMES.has(name) ? null : [name, module && fileOf(module)]),
  ({ name, file }) => (file && !NO_NAMES.has(name) ? [name, file] : null),
];

/** The children of a node of each tree, those of the same function together. */
function pairsOf(trees, nodes) {
  const left = nodes.map((node, at) => new Set((node?.children ?? []).map((child) => ({ child, ...trees[at].functionOf(child.symbol) }))));
  const pairs = [];
  for (const evidence of EVIDENCE) {
    const [of, others] = left.map((side) => {
      const found = new Map();
      for (const one of side) {
        const key = JSON.stringify(evidence(one));
        if (key !== "null") found.set(key, [...(found.get(key) ?? []), one]);
      }
      return found;
    });
    for (const [key, [one, ...more]] of of) {
      const [other, ...rest] = others.get(key) ?? [];
      // Of several nothing shows which is which.
      if (!other || more.length || rest.length) continue;
      pairs.push([one.child, other.child]);
      left[0].delete(one);
      left[1].delete(other);
    }
  }
  return [...pairs, ...[...left[0]].map(({ child }) => [child, null]), ...[...left[1]].map(({ child }) => [null, child])];
}

/** The tree of both profiles. The tiers of a function are one: that it was compiled again is no difference of the path. */
function differenceOf(profiles) {
  const trees = profiles.map((profile) => {
    const { root } = new Callees(profile, { thread: null, bySamples: false, mergeTiers: true, mergeRecursion: false });
    const functionOf = (symbol) => ({
      name: profile.names[symbol],
      module: profile.module[symbol] ?? null,
      place: profile.place(symbol) ?? null,
      file: profile.path[symbol] ? fileOf(profile.path[symbol]) : null,
    });
    return { profile, root, whole: root.weight, functionOf };
  });
  return new DifferenceNode(trees, null, ...trees.map(({ root }) => root));
}

/** Colours from orange (more in the selection) over grey to blue (less), distinct in colour-blind vision. */
class ChangePalette extends Palette {
  update() {
    super.update();
    const more = this.isDark ? [0.62, 0.13, 55] : [0.74, 0.16, 60];
    const less = this.isDark ? [0.55, 0.14, 255] : [0.7, 0.12, 250];
    const same = this.isDark ? 0.36 : 0.93;
    const ramp = ([lightness, chroma, hue]) => Array.from({ length: STEPS + 1 }, (_, step) => `oklch(${same + ((lightness - same) * step) / STEPS} ${(chroma * step) / STEPS} ${hue})`);
    [this.more, this.less] = [ramp(more), ramp(less)];
  }

  ofNode({ a, b }) {
    const step = Math.round(STEPS * Math.min(1, Math.abs(a - b) / STRONGEST) ** 0.6);
    return (a >= b ? this.more : this.less)[step];
  }
}

/** The graph and the table. */
export class DifferenceGraph {
  constructor(host, app) {
    Object.assign(this, { host, app });
    const pane = h("div.pane", { tabIndex: 0, role: "img", "aria-label": "Difference flame graph; the table has the same data" }, h("canvas"), h("div.spacer"));
    this.legend = h("p.legend");
    this.tableHost = h("div.grid-host");
    host.replaceChildren(this.legend, h("div.difference-panes", {}, pane, this.tableHost));
    this.pane = pane;
    this.hint = new Hint();
    new ResizeObserver(() => this.draw()).observe(pane);
    pane.addEventListener("pointermove", (event) => this.hover(event));
    pane.addEventListener("pointerleave", () => this.hint.hide());
    pane.addEventListener("click", (event) => this.zoom(this.nodeAt(event)));
  }

  async update() {
    const { app } = this;
    const compared = app.comparedWith;
    const other = app.selection(compared);
    const parameters = { ...app.selection() };
    for (const [name, value] of Object.entries(other)) parameters[`other.${name}`] = value;
    delete parameters["other.event"];
    delete parameters["other.filters"];
    const key = JSON.stringify(parameters);
    if (key === this.shown) return;
    const [selected, base, rows] = await Promise.all([app.trees.get(), app.trees.get(compared), app.server.json("diff", { ...parameters, limit: 500 }, { latest: "diff" })]);
    this.shown = key;
    this.command = rows.command;
    this.palette = new ChangePalette(selected);
    this.palette.onChange(() => this.draw());
    this.painter = new Painter(this.pane, this.palette);
    this.painter.styleOf = (node) => ({ fill: node instanceof DifferenceNode && node.parent ? this.palette.ofNode(node) : this.palette.dimmed, faint: false });
    this.zoomed = this.root = differenceOf([selected, base]);
    this.showLegend(selected, compared);
    this.showTable(rows);
    this.draw();
  }

  showLegend({ unit }, { recording, range: base }) {
    const [selected, other] = this.root.trees.map(({ whole }) => weightText(whole, unit));
    const { range } = this.app.state;
    const than = recording ? `the other recording, ${this.app.baseNames}` : `the base ${rangeText(base)}`;
    const swatch = (colour) => {
      const box = h("i", { "aria-hidden": "true" });
      box.style.background = colour;
      return box;
    };
    this.legend.replaceChildren(
      h("span", {}, swatch(this.palette.more[STEPS]), ` more in ${range ? rangeText(range) : "the whole recording"} (${selected})`),
      h("span", {}, swatch(this.palette.less[STEPS]), ` more in ${than} (${other})`),
      h("span", {}, "shares of each; a box is as wide as the larger of its two shares"),
    );
  }

  showTable({ rows }) {
    const share = (key, label, title) => ({ key, label, title, number: true, sort: true, width: "6.4rem", value: (row) => row[key], text: (row) => shareText(row[key], 1) });
    const change = ({ a_share: selected, b_share: base }) => selected - base;
    const signed = (row) => `${change(row) >= 0 ? "+" : "−"}${shareText(Math.abs(change(row)), 1)}`;
    this.grid = new Grid(this.tableHost, {
      label: "Changes by function", empty: "Nothing changed.",
      columns: [
        { key: "delta_share", label: "Change", title: "Share in the selection minus share in the base", number: true, sort: true, width: "6.4rem", value: change, text: signed },
        share("b_share", "Base"), share("a_share", "Selection"), { key: "name", label: "Function", text: ({ name }) => visible(name), hint: ({ module }) => visible(module ?? "") },
      ],
    });
    this.grid.show(rows);
  }

  draw() {
    if (!this.root) return;
    const names = (node) => {
      if (!(node instanceof DifferenceNode)) return [`${node.numNodes.toLocaleString("en-US")} narrower`];
      if (!node.parent) return ["all"];
      const [profile, symbol] = node.described;
      return profile.namesOf(symbol);
    };
    this.painter.show(layout(this.zoomed, this.painter.width), { names, zoomed: this.zoomed, hovered: null, selected: null });
  }

  nodeAt(event) {
    const { left, top } = this.pane.getBoundingClientRect();
    return this.painter?.at(event.clientX - left, event.clientY - top)?.node;
  }

  hover(event) {
    const node = this.nodeAt(event);
    if (!node || !(node instanceof DifferenceNode)) return this.hint.hide();
    const [profile, symbol] = node.described;
    const title = node.parent ? profile.names[symbol] : "all";
    this.hint.show(title, [["selection", shareText(node.a, 1)], ["base", shareText(node.b, 1)], ["change", `${node.a >= node.b ? "+" : "−"}${shareText(Math.abs(node.a - node.b), 1)}`], ["source", node.parent ? profile.place(symbol) : ""]], event.clientX, event.clientY);
  }

  zoom(node) {
    if (!node) return;
    this.zoomed = node instanceof DifferenceNode ? (node === this.zoomed && node.parent ? node.parent : node) : node.parent;
    this.draw();
  }

  save() {
    const svg = () => {
      const height = Math.max(1, this.painter.rows.length) * 20;
      const context = new SvgContext(this.painter.width, height);
      this.painter.paintAll(context, this.painter.width, height);
      return context.toString();
    };
    return { png: () => new Promise((resolve) => this.painter.canvas.toBlob(resolve)), svg, csv: () => this.grid.csv(), command: this.command };
  }
}

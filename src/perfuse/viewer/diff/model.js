// The common call tree of both sides: numbers of nodes, and widths.

import { visible } from "../flame/format.js";

/** Unpacks base64 of deflated JSON. */
export async function unpack(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Comparison(JSON.parse(await new Response(stream).text()));
}

/** A tree whose nodes have numbers of both sides; callers precede callees. */
class Comparison {
  constructor(data) {
    Object.assign(this, data);
    const { parent, function: of, base, new: after, baseTotal, newTotal, low, high } = data.nodes;
    Object.assign(this, { parent, functionOf: of, low, high, num: parent.length });
    this.self = { base, new: after };
    this.total = { base: baseTotal, new: newTotal };
    this.whole = { base: 0, new: 0 };
    for (const side of ["base", "new"]) for (const value of this.self[side]) this.whole[side] += value;
    this.children = Array.from({ length: this.num }, () => []);
    this.roots = [];
    for (let node = 0; node < this.num; node++) {
      (parent[node] < 0 ? this.roots : this.children[parent[node]]).push(node);
    }
    for (const one of this.functions) one.shown = visible(one.short ?? one.name);
    const byName = (a, b) => (this.name(a) < this.name(b) ? -1 : 1);
    this.roots.sort(byName);
    for (const children of this.children) children.sort(byName);
    this.widthsOf = new Map();
  }

  name(node) {
    return this.functions[this.functionOf[node]].shown;
  }

  /** The number of a side as it is shown: an amount, or a share of the side's whole. */
  shown(value, side, number) {
    return number === "share" ? value / (this.whole[side] || 1) : value;
  }

  /** Widths of all nodes: that of a node is its own and those of its callees. */
  widths(kind, number) {
    const key = `${kind} ${number}`;
    if (this.widthsOf.has(key)) return this.widthsOf.get(key);
    const own = (node) => {
      const base = this.shown(this.self.base[node], "base", number);
      const after = this.shown(this.self.new[node], "new", number);
      if (kind === "base") return base;
      if (kind === "new") return after;
      if (kind === "changes") return Math.abs(after - base);
      if (kind === "gone") return this.total.new[node] ? 0 : base;
      return Math.max(base, after);
    };
    const widths = new Float64Array(this.num);
    for (let node = this.num - 1; node >= 0; node--) {
      widths[node] += own(node);
      if (this.parent[node] >= 0) widths[this.parent[node]] += widths[node];
    }
    this.widthsOf.set(key, widths);
    return widths;
  }

  state(node) {
    if (!this.total.new[node]) return "gone";
    return this.total.base[node] ? "both" : "new";
  }

  /** The relative change of the total: the whole of it, or the part that its interval leaves. */
  change(node, colour, number) {
    const base = this.shown(this.total.base[node], "base", number);
    const after = this.shown(this.total.new[node], "new", number);
    const estimate = base ? after / base - 1 : after ? Infinity : 0;
    if (colour === "estimate") return estimate;
    // Intervals are of amounts: as shares they move with the whole.
    const scale = number === "share" ? (this.whole.base || 1) / (this.whole.new || 1) : 1;
    if (this.low[node] === null || this.high[node] === null) return 0;
    const low = (1 + this.low[node]) * scale - 1;
    const high = (1 + this.high[node]) * scale - 1;
    return low > 0 ? low : high < 0 ? high : 0;
  }

  path(node) {
    const path = [];
    for (let one = node; one >= 0; one = this.parent[one]) path.unshift(one);
    return path;
  }
}

// The tab "Call tree": the tree of the selection as a table, from callers to callees or the other way round.

import { amountText, amountsWidth, countText, shareText, weightText } from "../flame/format.js";
import { Palette } from "../flame/palette.js";
import { Callees, Callers } from "../flame/view.js";
import { h, note, toggles } from "../widgets/dom.js";
import { TreeGrid } from "../widgets/tree_grid.js";
import { tableOf } from "../widgets/table_picture.js";

const OPENED = 12;

/** Columns that show nodes of a tree: shares are of `whole`. */
export function nodeColumns(profile, palette, whole) {
  const part = (key, label, title) => ({
    key, label, title, number: true, width: amountsWidth(whole, profile.unit), share: (node) => node[key] / whole, value: (node) => node[key],
    text: (node) => (node[key] ? `${amountText(node[key], profile.unit)}  ${shareText(node[key], whole)}` : "–"),
  });
  const samples = { key: "samples", label: "Samples", number: true, width: "6rem", text: (node) => node.samples.toLocaleString("en-US"), value: (node) => node.samples };
  const name = {
    key: "name", label: "Function", text: (node) => (node.symbol < 0 ? "all" : profile.shortNames[node.symbol]), value: (node) => (node.symbol < 0 ? "all" : profile.names[node.symbol]),
    swatch: (node) => (node.symbol < 0 ? null : palette.of(node.symbol)),
    hint: (node) => (node.symbol < 0 ? "" : [profile.tier[node.symbol], profile.place(node.symbol) ?? profile.module[node.symbol]].filter(Boolean).join(" · ")),
    full: (node) => (node.symbol < 0 ? "all" : profile.names[node.symbol]),
  };
  return [part("weight", "Total", "What ran in it or below it, on this path"), part("selfWeight", "Self", "What ran in the function itself, on this path"), ...(profile.counted ? [samples] : []), name];
}

/** The call tree. */
export class CallTreeView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.keys = [["↑ ↓", "walk over the rows"], ["→ ←", "open and close"], ["*", "open the heaviest path"], ["i", "invert: callers or callees"], ["Enter", "callers and callees of the row"]];
    this.bar = h("div.bar");
    this.table = h("div.grid-host");
    host.replaceChildren(this.bar, this.table);
  }

  async update(state) {
    const profile = await this.app.trees.get();
    if (this.app.view !== this) return;
    const inverted = state.dir === "inverted";
    if (this.profile === profile && this.inverted === inverted) return;
    Object.assign(this, { profile, inverted });
    const palette = new Palette(profile);
    const Tree = inverted ? Callers : Callees;
    const { root } = new Tree(profile, { thread: null, bySamples: false, mergeTiers: false, mergeRecursion: false });
    this.bar.replaceChildren(
      toggles("Direction", [["flame", "Callees", "From callers down to what they call"], ["inverted", "Inverted", "From the functions that ran to their callers (i)"]], inverted ? "inverted" : "flame", (dir) => this.app.change({ dir: dir === "flame" ? null : dir })),
      h("output.where", {}, `${profile.counted ? `${countText(root.samples, "sample")} · ` : ""}${weightText(root.weight, profile.unit)} · ${profile.event}`),
    );
    if (!profile.numNodes) return this.table.replaceChildren(note("Nothing was recorded in this selection."));
    this.grid = new TreeGrid(this.table, {
      label: inverted ? "Callers of the functions that ran" : "Call tree", columns: nodeColumns(profile, palette, root.weight),
      children: (node) => node.children, hasChildren: (node) => node.children.length > 0,
      onOpen: (node) => node.symbol >= 0 && this.app.change({ tab: "callers", ...profile.functionState(node.symbol) }),
    });
    this.grid.showRoots(inverted ? root.children : [root], { openTo: inverted ? 0 : OPENED });
  }

  key(event) {
    if (event.key !== "i") return false;
    this.app.change({ dir: this.inverted ? null : "inverted" });
    return true;
  }

  /** The function that other views are asked for. */
  get chosenFunction() {
    const node = this.grid?.rows[this.grid.selected];
    return node && node.symbol >= 0 ? this.profile.functionState(node.symbol) : null;
  }

  save() {
    if (!this.grid) return {};
    return { table: tableOf(this.grid), csv: () => this.grid.csv(), command: this.profile?.command };
  }
}

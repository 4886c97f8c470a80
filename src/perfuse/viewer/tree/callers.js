// The tab "Callers": one function in the middle, who called it and what it called.

import { annotateButton, hasCode } from "../annotate/view.js";
import { placeTexts, shareText, weightText } from "../flame/format.js";
import { Palette } from "../flame/palette.js";
import { functionWeights } from "../flame/search.js";
import { Callees, Callers } from "../flame/view.js";
import { h, note } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";
import { TreeGrid } from "../widgets/tree_grid.js";
import { nodeColumns } from "./call_tree.js";
import { joined, tableOf } from "../widgets/table_picture.js";

const OPTIONS = { thread: null, bySamples: false, mergeTiers: true, mergeRecursion: true };

/** Callers and callees of the chosen function. */
export class CallersView {
  constructor(app, host) {
    Object.assign(this, { app, host });
    this.keys = [["↑ ↓", "walk over the rows"], ["→ ←", "open and close"], ["Enter", "make the row the function in the middle"]];
    this.list = h("div.pick");
    this.facts = h("div.bar");
    this.above = h("div.grid-host");
    this.below = h("div.grid-host");
    host.replaceChildren(this.list, h("div.butterfly", {}, this.facts, h("h2", {}, "Callers"), this.above, h("h2", {}, "Callees"), this.below));
  }

  async update(state) {
    const profile = await this.app.trees.get();
    if (this.app.view !== this) return;
    if (this.profile !== profile) this.showProfile(profile);
    if (!profile.numNodes) return this.facts.replaceChildren(note("Nothing was recorded in this selection."));
    const [heaviest] = this.rows;
    const asked = state.function === undefined ? null : this.rowOf(state);
    const row = asked ?? heaviest;
    if (state.function !== undefined && !asked) this.app.announce(`${state.function} is not in this selection.`);
    this.middle(row, state.function !== undefined && !asked ? state.function : null);
  }

  showProfile(profile) {
    this.profile = profile;
    this.palette = new Palette(profile);
    const whole = new Callees(profile, OPTIONS);
    this.whole = whole.root.weight;
    this.rows = [...functionWeights(profile, whole).values()].sort((a, b) => b.selfWeight - a.selfWeight || b.weight - a.weight);
    const places = placeTexts(this.rows.map(({ symbol }) => ({ name: profile.names[symbol], place: profile.place(symbol) ?? profile.module[symbol] })));
    const numAlike = Map.groupBy(this.rows, ({ symbol }) => profile.shortNames[symbol]);
    this.rows.forEach((row, at) => (row.where = numAlike.get(profile.shortNames[row.symbol]).length > 1 ? places[at] : null));
    const part = (key, label) => ({ key, label, number: true, sort: true, width: "5.6rem", share: (row) => row[key] / this.whole, value: (row) => row[key], text: (row) => (row[key] ? shareText(row[key], this.whole) : "–") });
    this.picker = new Grid(this.list, {
      label: "Functions of the selection",
      columns: [part("selfWeight", "Self"), part("weight", "Total"), { key: "name", label: "Function", sort: true, text: ({ symbol }) => profile.shortNames[symbol], swatch: ({ symbol }) => this.palette.of(symbol), hint: (row) => row.where, full: ({ symbol }) => [profile.names[symbol], profile.place(symbol), profile.module[symbol]].filter(Boolean).join("\n") }],
      onSelect: ({ symbol }) => this.choose(symbol),
    });
    this.picker.show(this.rows);
  }

  /** The row of the function that the state names; the heaviest of several of one name, unless a handle says which. */
  rowOf({ function: name, handle }) {
    const group = handle && this.profile.groupOf(handle);
    return this.rows.find(({ key }) => key === group) ?? this.rows.find(({ symbol }) => this.profile.names[symbol] === name);
  }

  choose(symbol) {
    if (symbol < 0 || this.profile.group[symbol] === this.profile.group[this.chosenSymbol]) return;
    this.app.change(this.profile.functionState(symbol));
  }

  middle(row, missing) {
    const { profile, palette, whole } = this;
    const name = profile.names[row.symbol];
    this.chosenSymbol = row.symbol;
    this.picker.selected = this.picker.rows.indexOf(row);
    this.picker.render();
    const tiers = [profile.tier[row.symbol], profile.place(row.symbol), profile.module[row.symbol]].filter(Boolean).join(" · ");
    const flame = () => this.app.change({ tab: "flame", dir: "sandwich", focus: String(profile.group[row.symbol]), tiersmerged: "1" });
    const amount = (weight) => `${weightText(weight, profile.unit)} (${shareText(weight, whole)})`;
    this.facts.replaceChildren(
      missing ? note(`${missing} did not run in this selection. The heaviest function is shown.`) : "",
      h("h2", { title: name }, profile.shortNames[row.symbol]), h("p", {}, `self ${amount(row.selfWeight)}, total ${amount(row.weight)}`, tiers ? ` · ${tiers}` : ""),
      h("button", { onclick: flame }, "Sandwich flame graph"), hasCode(this.app.overview) ? annotateButton(this.app, profile.functionState(row.symbol)) : "",
    );
    const trees = [[this.above, new Callers(profile, OPTIONS, row.key), "Callers"], [this.below, new Callees(profile, OPTIONS, row.key), "Callees"]];
    this.grids = trees.map(([host, view, label]) => {
      const grid = new TreeGrid(host, {
        label: `${label} of ${name}`, columns: nodeColumns(profile, palette, whole), empty: label === "Callers" ? "It has no callers: threads start in it." : "It calls nothing.",
        children: (node) => node.children, hasChildren: (node) => node.children.length > 0, onOpen: (node) => this.choose(node.symbol),
      });
      grid.showRoots(view.root.children);
      return grid;
    });
  }

  /** The function that other views are asked for. */
  get chosenFunction() {
    return this.chosenSymbol === undefined ? null : this.profile.functionState(this.chosenSymbol);
  }

  save() {
    if (!this.grids) return {};
    return { table: joined(this.grids.map(tableOf), ["Callers", "Callees"], this.chosenFunction.function), csv: () => this.grids.map((grid) => grid.csv()).join("\n"), command: this.profile?.command };
  }
}

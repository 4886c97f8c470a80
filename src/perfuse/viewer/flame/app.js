// The flame graph: its state, and the views that show it.

import { Controls } from "./controls.js";
import { shareText } from "./format.js";
import { bindKeys } from "./keys.js";
import { layout } from "./layout.js";
import { Painter } from "./painter.js";
import { Palette } from "./palette.js";
import { functionWeights, matchedTotals, matchingSymbols, originWeights } from "./search.js";
import { FunctionTable } from "./table.js";
import { Tooltip } from "./tooltip.js";
import { Callees, Callers, Remainder } from "./view.js";

const element = (id) => document.getElementById(id);
/** Parts of the state that change the trees themselves. */
const OF_TREES = ["view", "metric", "thread", "mergeTiers", "mergeRecursion"];

const NOTHING_CHOSEN = { search: "", thread: null, focus: null, origin: null, mergeTiers: false, mergeRecursion: false, zoom: [] };

/**
 * A flame graph in the elements of `mount`. `address` reads and writes its state, `onTotals` gets the line of totals,
 * and `key(event)` handles a key and returns whether it was one of its keys.
 */
export class FlameApp {
  constructor(profile, { address, onTotals = () => {} }) {
    Object.assign(this, { profile, address, onTotals });
    this.palette = new Palette(profile);
    this.usual = { view: profile.inverted ? "inverted" : "flame", metric: profile.metric };
    this.readState();
    this.selected = this.hovered = null;
    this.graph = new Painter(element("graph"), this.palette);
    this.callers = new Painter(element("callers"), this.palette, { upwards: true });
    this.tooltip = new Tooltip(element("tooltip"), profile, this.palette);
    this.controls = new Controls(profile, this.palette, (part) => this.change(part));
    this.table = new FunctionTable(element("functions"), {
      profile,
      palette: this.palette,
      onChoose: (key) => this.change({ focus: this.state.focus === key && this.state.view !== "sandwich" ? null : key }),
      onFocus: (key) => this.change({ view: "sandwich", focus: key }),
    });
    this.bind();
    this.rebuild();
  }

  /** Shows another profile, with the choices of the address or the same ones as before. */
  setProfile(profile, { readsAddress }) {
    const before = this.profile;
    for (const part of [this, this.palette, this.controls, this.table, this.tooltip]) part.profile = profile;
    if (readsAddress) this.readState();
    else this.keepChoices(before);
    this.controls.fill();
    this.searched = undefined;
    this.rebuild();
  }

  /** Finds what was chosen in another profile: its symbols are the same, unless the recording grew. */
  keepChoices(before) {
    const { mergeTiers } = this.state;
    const again = before.symbolsIn(this.profile);
    const zoom = this.state.zoom.map(again);
    // A function is the group of its symbols where tiers are merged, else one of them.
    const symbol = mergeTiers ? before.group.indexOf(this.state.focus) : (this.state.focus ?? -1);
    const found = symbol < 0 ? -1 : again(symbol);
    const focus = found >= 0 && mergeTiers ? this.profile.group[found] : found;
    const lost = zoom.indexOf(-1);
    Object.assign(this.state, { zoom: lost < 0 ? zoom : zoom.slice(0, lost), focus: focus < 0 ? null : focus });
    this.checkState();
  }

  readState() {
    this.state = { ...NOTHING_CHOSEN, ...this.usual, ...this.address.read() };
    this.checkState();
  }

  /** An address may be of another profile. */
  checkState() {
    const { state, profile } = this;
    if (!["flame", "inverted", "sandwich"].includes(state.view)) state.view = this.usual.view;
    const metrics = profile.counted ? ["weight", "samples"] : ["weight"];
    if (!metrics.includes(state.metric)) state.metric = profile.counted ? this.usual.metric : "weight";
    if (state.thread !== null && !profile.thread.includes(state.thread)) state.thread = null;
    if (state.focus !== null && state.focus >= profile.names.length) state.focus = null;
    if (state.origin !== null && state.origin >= profile.origins.length) state.origin = null;
  }

  /** Changes part of the state and shows the result. */
  change(part) {
    const before = this.state;
    this.state = { ...before, ...part };
    const trees = OF_TREES.some((name) => before[name] !== this.state[name]);
    const focused = this.state.view === "sandwich" && before.focus !== this.state.focus;
    if (trees || focused) {
      if (before.view !== this.state.view || focused) this.state.zoom = [];
      this.rebuild();
    } else this.refresh();
  }

  rebuild() {
    const { profile, state } = this;
    const options = { ...state, bySamples: state.metric === "samples" };
    const whole = new Callees(profile, options);
    this.whole = whole.root.value;
    this.weights = functionWeights(profile, whole);
    this.origins = originWeights(profile, whole);
    const sandwich = state.view === "sandwich";
    this.missing = null;
    if (sandwich && !this.weights.has(state.focus)) {
      const symbol = state.mergeTiers ? profile.group.indexOf(state.focus) : (state.focus ?? -1);
      if (symbol >= 0) this.missing = profile.shortNames[symbol];
      state.focus = this.heaviest();
    }
    const focus = sandwich ? state.focus : undefined;
    this.view = state.view === "inverted" ? new Callers(profile, options) : sandwich ? new Callees(profile, options, focus) : whole;
    this.above = sandwich ? new Callers(profile, options, focus) : null;
    this.zoomedAbove = this.above?.root;
    this.zoomed = this.find(state.zoom);
    this.selected = this.hovered = null;
    this.tooltip.hide();
    element("callers").hidden = !sandwich;
    const { root } = whole;
    const event = profile.event ? ` · ${profile.event}` : "";
    this.onTotals(`${profile.amount(root.weight, root.samples)}${event}`);
    this.refresh();
    // The boxes next to the function in the middle, or to the root, are scrolled into sight.
    element("callers").scrollTop = element("callers").scrollHeight;
    element("graph").scrollTop = 0;
  }

  heaviest() {
    const rows = [...this.weights.values()];
    return rows.reduce((most, row) => (row.selfWeight > most.selfWeight ? row : most), rows[0] ?? { key: null, selfWeight: 0 }).key;
  }

  /** The node that a path of symbols leads to, as far as there is one. */
  find(symbols) {
    let node = this.view.root;
    for (const symbol of symbols) {
      const next = node.children.find((child) => this.view.key(child.symbol) === this.view.key(symbol));
      if (!next) break;
      node = next;
    }
    return node;
  }

  refresh() {
    const { profile, state } = this;
    if (this.searched !== state.search) {
      this.searched = state.search;
      this.flags = matchingSymbols(profile, state.search);
    }
    const bySamples = state.metric === "samples";
    const totals = this.flags && matchedTotals(profile, this.flags, state.thread);
    const matched = totals && (bySamples ? totals.samples : totals.weight);
    state.zoom = this.zoomed.path.slice(1).map((node) => node.symbol);
    this.controls.show(state, { origins: this.origins, whole: this.whole, matched });
    this.controls.showPath(this.zoomed.path, (node) => this.label(node), (node) => this.zoomTo(node));
    this.table.show({ weights: this.weights, flags: this.flags, focus: state.focus, bySamples, whole: this.whole });
    this.draw();
    this.address.write(state, this.usual);
  }

  draw() {
    const { state, flags, profile, hovered } = this;
    const selected = this.selected ?? (this.above ? this.view.root : null);
    // In a sandwich view every box is related to the function in focus, so none is dimmed for it.
    const focus = state.view === "sandwich" ? null : state.focus;
    const look = { flags, focus, origin: state.origin, profile, hovered, selected, names: (node) => this.namesOf(node) };
    if (this.above) this.callers.show(layout(this.zoomedAbove, this.callers.width), { ...look, zoomed: this.zoomedAbove });
    this.graph.show(layout(this.zoomed, this.graph.width), { ...look, zoomed: this.zoomed });
    this.describe();
  }

  namesOf(node) {
    return node.symbol >= 0 ? this.profile.namesOf(node.symbol) : [this.label(node)];
  }

  label(node) {
    if (node.symbol >= 0) return this.profile.names[node.symbol];
    if (node instanceof Remainder) return `${node.numNodes.toLocaleString("en")} narrower`;
    return `all · ${this.profile.amount(node.weight, node.samples)}`;
  }

  /** The box that keys and buttons apply to, or else the highlighted function. */
  describe() {
    const symbol = this.chosenSymbol();
    element("copy").hidden = element("focus").hidden = symbol < 0;
    element("selected").replaceChildren();
    if (symbol < 0) return;
    const { profile, whole } = this;
    const name = document.createElement("b");
    name.textContent = profile.shortNames[symbol];
    element("selected").title = profile.names[symbol];
    const box = this.selected?.symbol === symbol ? this.selected : null;
    const row = this.weights.get(this.view.key(symbol));
    const bySamples = this.state.metric === "samples";
    const facts = box ? [`${shareText(box.value, whole)} here`] : [];
    if (row) {
      facts.push(`${shareText(bySamples ? row.selfSamples : row.selfWeight, whole)} self`);
      facts.push(`${shareText(bySamples ? row.samples : row.weight, whole)} total`);
    }
    const place = profile.place(symbol);
    if (this.missing) element("selected").append(`${this.missing} did not run here. The heaviest function is `);
    element("selected").append(name, ` ${[...facts, ...(place ? [place] : [])].join(" · ")}`);
  }

  chosenSymbol() {
    if (this.selected && this.selected.symbol >= 0) return this.selected.symbol;
    return this.weights.get(this.state.focus)?.symbol ?? -1;
  }

  /** Zooms to a node; from boxes that are drawn as one to their caller, where they are wider. */
  zoomTo(box) {
    const node = box instanceof Remainder ? box.parent : box;
    if (!node) return;
    this.selected = node;
    if (node.view === this.above) this.zoomedAbove = node;
    else this.zoomed = node;
    this.refresh();
    (node.view === this.above ? this.callers : this.graph).reveal(node.depth);
  }

  zoomOut() {
    if (this.zoomed.parent) this.zoomTo(this.zoomed.parent);
  }

  /** Undoes one thing: the search, the highlights, the zoom. */
  back() {
    if (this.state.search) this.change({ search: "" });
    else if (this.state.origin !== null) this.change({ origin: null });
    else if (this.state.focus !== null && !this.above) this.change({ focus: null });
    else if (this.zoomed.parent) this.zoomTo(this.view.root);
    else if (this.above) this.change({ view: "flame", focus: null });
    else this.select(null);
  }

  select(node) {
    this.selected = node;
    this.draw();
    if (node) this.graph.reveal(node.depth);
  }

  walk(way) {
    const from = this.selected?.view === this.view ? this.selected : null;
    if (!from) return this.select(this.zoomed);
    const row = (this.graph.rows[from.depth] ?? []).filter(({ node }) => !(node instanceof Remainder));
    const at = row.findIndex((box) => box.node === from);
    const next = { up: from.parent, down: from.children[0], left: row[at - 1]?.node, right: row[at + 1]?.node }[way];
    if (next) this.select(next);
  }

  focusSelected() {
    const symbol = this.chosenSymbol();
    if (symbol >= 0) this.change({ view: "sandwich", focus: this.view.key(symbol) });
    else this.change({ view: "sandwich" });
  }

  async copyName() {
    const symbol = this.chosenSymbol();
    if (symbol < 0) return;
    await copy(this.profile.names[symbol]);
    element("copy").textContent = "Copied";
    setTimeout(() => (element("copy").textContent = "Copy name"), 1200);
  }

  toggleTable() {
    document.body.classList.toggle("no-table");
    this.showTableState();
    this.draw();
  }

  showTableState() {
    element("toggle-table").ariaPressed = String(!document.body.classList.contains("no-table"));
  }

  bind() {
    for (const painter of [this.graph, this.callers]) this.bindPane(painter);
    new ResizeObserver(() => this.draw()).observe(element("graphs"));
    this.palette.onChange(() => this.refresh());
    element("copy").addEventListener("click", () => this.copyName());
    element("focus").addEventListener("click", () => this.focusSelected());
    element("toggle-table").addEventListener("click", () => this.toggleTable());
    this.showTableState();
    bindDivider(element("divider"), () => this.draw());
    this.key = bindKeys(this);
  }

  bindPane(painter) {
    const { pane } = painter;
    const at = (event) => {
      const { left, top } = pane.getBoundingClientRect();
      return painter.at(event.clientX - left, event.clientY - top)?.node ?? null;
    };
    const hover = (node, event) => {
      if (node !== this.hovered) {
        this.hovered = painter.look.hovered = node;
        painter.paint();
      }
      if (node instanceof Remainder) this.tooltip.showRemainder(node, this.whole, event.clientX, event.clientY);
      else if (node && node.symbol >= 0) {
        const row = this.weights.get(this.view.key(node.symbol));
        this.tooltip.show(node, row, this.whole, event.clientX, event.clientY);
      } else this.tooltip.hide();
    };
    pane.addEventListener("pointermove", (event) => hover(at(event), event));
    pane.addEventListener("pointerleave", (event) => hover(null, event));
    pane.addEventListener("click", (event) => {
      const node = at(event);
      if (node) this.zoomTo(node);
    });
  }
}

/** Drags the border between graph and table. */
function bindDivider(divider, redraw) {
  const most = () => innerWidth * 0.7;
  const state = (width) => Object.assign(divider, { ariaValueMin: "160", ariaValueMax: String(Math.round(most())), ariaValueNow: String(Math.round(width)) });
  const resize = (width) => {
    const clipped = Math.min(Math.max(width, 160), most());
    document.documentElement.style.setProperty("--table-width", `${clipped}px`);
    state(clipped);
    redraw();
  };
  state(element("functions").offsetWidth);
  divider.addEventListener("focus", () => state(element("functions").offsetWidth));
  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => divider.hasPointerCapture(event.pointerId) && resize(innerWidth - event.clientX - 2));
  divider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: 24, ArrowRight: -24 }[event.key];
    if (step) resize(element("functions").offsetWidth + step);
  });
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages opened from disk may not have the clipboard.
    const area = document.body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

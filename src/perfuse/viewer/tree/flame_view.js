// The tab "Flame graph": the graph of the selection, and its difference from another selection or recording.

import { hasCode } from "../annotate/view.js";
import { FlameApp } from "../flame/app.js";
import { mount } from "../flame/markup.js";
import { FLAME_KEYS } from "../flame/keys.js";
import { SvgContext } from "../widgets/svg_context.js";
import { h, note, toggles } from "../widgets/dom.js";
import { DifferenceGraph } from "./difference.js";

/** Parameters of the address that are the graph's own, by the name that the graph gives them. */
const PARTS = { view: "dir", metric: "metric", search: "q", thread: "ft", focus: "focus", origin: "origin", mergeTiers: "tiersmerged", mergeRecursion: "recursion", zoom: "zoom" };
const NUMBERS = new Set(["thread", "focus", "origin"]);

/** The flame graph of what is selected. */
export class FlameView {
  constructor(app, host) {
    Object.assign(this, { app, host, keys: FLAME_KEYS });
    this.way = h("div.bar");
    this.graphHost = h("div.flame-host", { id: "flame" });
    this.differenceHost = h("div.difference", { hidden: true });
    this.empty = note("Nothing was recorded in this selection.");
    this.empty.hidden = true;
    host.replaceChildren(this.way, this.empty, this.graphHost, this.differenceHost);
  }

  async update(state) {
    const other = this.app.comparedWith;
    const differs = other !== null;
    this.way.hidden = !differs;
    if (differs) {
      const shown = state.shown ?? "difference";
      this.way.replaceChildren(toggles("What is shown", [["difference", "Difference"], ["range", "Selection"], ["base", "Base"]], shown, (value) => this.app.change({ shown: value === "difference" ? null : value })));
      if (shown === "difference") return this.showDifference();
    }
    this.differenceHost.hidden = true;
    const profile = await this.app.trees.get(differs && state.shown === "base" ? other : {});
    if (this.app.view !== this) return;
    this.profile = profile;
    this.empty.hidden = profile.numNodes > 0;
    this.graphHost.hidden = profile.numNodes === 0;
    if (!profile.numNodes) return;
    if (!this.graph) {
      mount(this.graphHost);
      this.graph = new FlameApp(profile, {
        address: { read: () => this.read(), write: (graph, usual) => this.write(graph, usual) },
      });
      if (hasCode(this.app.overview)) this.addAnnotate();
      return;
    }
    const readsAddress = this.written !== this.keyOf(state);
    if (this.graph.profile !== profile) this.graph.setProfile(profile, { readsAddress });
    else if (readsAddress) {
      this.graph.readState();
      this.graph.rebuild();
    }
  }

  /** The button beside those of the chosen box. */
  addAnnotate() {
    const button = h("button", { title: "Source and machine code (l)", onclick: () => this.app.annotate(this.chosenFunction) }, "Machine code");
    const focus = document.getElementById("focus");
    focus.after(button);
    const follow = () => (button.hidden = focus.hidden);
    new MutationObserver(follow).observe(focus, { attributeFilter: ["hidden"] });
    follow();
  }

  keyOf(state) {
    return JSON.stringify(Object.values(PARTS).map((name) => state[name] ?? null));
  }

  read() {
    const { state } = this.app;
    const read = {};
    for (const [name, key] of Object.entries(PARTS)) {
      const value = state[key];
      if (value === undefined) continue;
      if (NUMBERS.has(name)) read[name] = /^\d+$/.test(value) ? Number(value) : null;
      else if (name === "zoom") read.zoom = String(value).split(".").filter(Boolean).map(Number);
      else if (name.startsWith("merge")) read[name] = true;
      else read[name] = value;
    }
    return read;
  }

  write(graph, usual) {
    const part = {};
    for (const [name, key] of Object.entries(PARTS)) {
      const value = graph[name];
      if (name === "zoom") part[key] = value.length ? value.join(".") : null;
      else if (value === null || value === false || value === "" || value === usual[name]) part[key] = null;
      else part[key] = value === true ? "1" : String(value);
    }
    const next = { ...this.app.state, ...part };
    for (const key of Object.keys(next)) if (next[key] === null) delete next[key];
    this.written = this.keyOf(next);
    if (this.keyOf(this.app.state) !== this.written) this.app.remember(part);
  }

  async showDifference() {
    this.graphHost.hidden = true;
    this.empty.hidden = true;
    this.differenceHost.hidden = false;
    this.difference ??= new DifferenceGraph(this.differenceHost, this.app);
    await this.difference.update();
  }

  key(event) {
    // The graph binds its own keys; those that it uses do not reach the application.
    if (this.graphHost.hidden || !this.graph) return false;
    const own = ["i", "s", "c", "t", "/", "Enter", "Backspace", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
    const { state } = this.graph;
    const escapes = event.key === "Escape" && (state.search || state.origin !== null || state.focus !== null || state.zoom.length || this.graph.selected);
    if (own.includes(event.key) || escapes) return this.graph.key(event);
    return false;
  }

  /** The function that other views are asked for. */
  get chosenFunction() {
    const symbol = this.graph?.chosenSymbol() ?? -1;
    return symbol >= 0 ? this.profile.functionState(symbol) : null;
  }

  save() {
    if (!this.differenceHost.hidden) return this.difference.save();
    const { graph, profile } = this;
    if (!graph) return {};
    return {
      png: () => new Promise((resolve) => graph.graph.canvas.toBlob(resolve)),
      svg: () => this.svg(),
      csv: () => functionsCsv(graph),
      command: profile.command,
    };
  }

  /** The whole graph as it is zoomed, also the rows that are scrolled out of sight. */
  svg() {
    const { graph: painter } = this.graph;
    const height = Math.max(1, painter.rows.length) * 20;
    const context = new SvgContext(painter.width, height);
    painter.paintAll(context, painter.width, height);
    return context.toString();
  }
}

function functionsCsv({ profile, weights }) {
  const quoted = (text) => `"${String(text ?? "").replaceAll('"', '""')}"`;
  const rows = [...weights.values()].sort((a, b) => b.selfWeight - a.selfWeight);
  const lines = rows.map(({ symbol, selfWeight, weight }) => [selfWeight, weight, quoted(profile.names[symbol]), quoted(profile.tier[symbol]), quoted(profile.place(symbol))].join(","));
  return `self,total,name,tier,place\n${lines.join("\n")}\n`;
}

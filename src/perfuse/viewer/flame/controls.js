// The controls above the graph: view, metric, filters, search, and the path to the zoomed node.

import { shareText, visible } from "./format.js";

const byId = (id) => document.getElementById(id);

/** Buttons, boxes and fields; each change goes to `change(part of the state)`. */
export class Controls {
  constructor(profile, palette, change) {
    Object.assign(this, { profile, palette, change });
    for (const name of ["view", "metric"]) {
      for (const button of document.querySelectorAll(`[data-${name}]`)) {
        button.addEventListener("click", () => change({ [name]: button.dataset[name] }));
      }
    }
    byId("thread").addEventListener("change", ({ target }) => change({ thread: target.value ? Number(target.value) : null }));
    byId("merge-tiers").addEventListener("change", ({ target }) => change({ mergeTiers: target.checked, focus: null }));
    byId("merge-recursion").addEventListener("change", ({ target }) => change({ mergeRecursion: target.checked }));
    byId("search").addEventListener("input", ({ target }) => change({ search: target.value }));
    this.fill();
  }

  /** Fills what depends on the profile. */
  fill() {
    const { profile } = this;
    byId("by-weight").textContent = profile.unit === "ns" ? "Time" : profile.unit[0].toUpperCase() + profile.unit.slice(1);
    byId("widths").hidden = !profile.counted;
    this.fillThreads();
    this.fillLegend();
  }

  fillThreads() {
    const weights = new Map();
    const { parent, thread, totalWeight } = this.profile;
    for (let node = 0; node < parent.length; node++) {
      if (parent[node] < 0) weights.set(thread[node], (weights.get(thread[node]) ?? 0) + totalWeight[node]);
    }
    const labels = new Map(this.profile.threads);
    const whole = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
    const option = (text, value) => new Option(text, value);
    const heaviestFirst = [...weights].sort((a, b) => b[1] - a[1]);
    const options = heaviestFirst.map(([id, weight]) => option(`${visible(labels.get(id) ?? `thread ${id}`)} · ${shareText(weight, whole)}`, id));
    byId("thread").replaceChildren(option(`all ${weights.size}`, ""), ...options);
    byId("thread-label").hidden = weights.size < 2;
  }

  fillLegend() {
    const { symbol, originOf } = this.profile;
    this.used = new Set(Uint8Array.from(symbol, (symbol) => originOf[symbol]));
    this.chips = this.profile.origins.map(({ label }, origin) => {
      const chip = document.createElement("button");
      chip.append(document.createElement("i"), label, document.createElement("span"));
      chip.title = `Highlight: ${label}`;
      chip.addEventListener("click", () => this.change({ origin: this.state.origin === origin ? null : origin }));
      return chip;
    });
    byId("legend").replaceChildren(...this.chips);
  }

  /** Puts the state into the controls; `origins` is the weight of each origin, `matched` that of the search. */
  show(state, { origins, whole, matched }) {
    this.state = state;
    for (const name of ["view", "metric"]) {
      for (const button of document.querySelectorAll(`[data-${name}]`)) {
        button.ariaPressed = String(button.dataset[name] === state[name]);
      }
    }
    byId("thread").value = state.thread ?? "";
    byId("merge-tiers").checked = state.mergeTiers;
    byId("merge-recursion").checked = state.mergeRecursion;
    if (byId("search").value !== state.search) byId("search").value = state.search;
    byId("matched").textContent = matched === null ? "" : `${shareText(matched, whole)} matched`;
    this.chips.forEach((chip, origin) => {
      chip.hidden = !this.used.has(origin);
      chip.ariaPressed = String(state.origin === origin);
      chip.children[0].style.background = this.palette.ofOrigin(origin);
      chip.children[1].textContent = shareText(origins[origin], whole);
    });
  }

  /** The path from the root to the zoomed node; a click on a part zooms to it. */
  showPath(path, label, zoomTo) {
    const crumbs = byId("crumbs");
    crumbs.replaceChildren();
    if (path.length < 2) {
      const hint = document.createElement("em");
      hint.textContent = "Click a box to zoom, press / to search, ? for all keys";
      crumbs.append(hint);
      return;
    }
    const shown = path.length > 9 ? [path[0], null, ...path.slice(-7)] : path;
    for (const node of shown) {
      if (crumbs.childElementCount) crumbs.append(Object.assign(document.createElement("span"), { textContent: "›" }));
      if (node === null) {
        crumbs.append(Object.assign(document.createElement("span"), { textContent: "…" }));
        continue;
      }
      const crumb = document.createElement("button");
      crumb.textContent = node.symbol < 0 ? "all" : this.profile.shortNames[node.symbol];
      crumb.title = label(node);
      crumb.addEventListener("click", () => zoomTo(node));
      crumbs.append(crumb);
    }
  }
}

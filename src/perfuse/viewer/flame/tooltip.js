// The tooltip: facts about the box under the pointer.

import { shareText, weightText } from "./format.js";

/** Fills and places the tooltip. */
export class Tooltip {
  constructor(element, profile, palette) {
    Object.assign(this, { element, profile, palette });
  }

  hide() {
    this.element.hidden = true;
  }

  /** Shows a node near a place of the window; `row` has the totals of its function in the whole graph. */
  show(node, row, whole, x, y) {
    const { element, profile } = this;
    const { symbol } = node;
    const title = document.createElement("strong");
    title.textContent = profile.names[symbol];
    const facts = document.createElement("dl");
    const add = (term, text, colour) => {
      if (!text) return;
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = term;
      dd.textContent = text;
      if (colour) {
        const swatch = document.createElement("i");
        swatch.style.background = colour;
        dd.prepend(swatch);
      }
      facts.append(dt, dd);
    };
    add("here", `${shareText(node.value, whole)} · ${profile.amount(node.weight, node.samples, { countLast: true })}`);
    if (row) {
      add("self", this.weights(row.selfWeight, row.selfSamples, node, whole));
      add("total", this.weights(row.weight, row.samples, node, whole));
    }
    const origin = profile.originOf[symbol];
    const tier = profile.tier[symbol];
    add("code", profile.origins[origin].label + (tier ? ` (${tier})` : ""), this.palette.of(symbol));
    add("source", profile.place(symbol));
    add("module", profile.module[symbol]);
    add("unnamed", profile.unnamed_because[symbol]);
    element.replaceChildren(title, facts);
    this.place(x, y);
  }

  /** Shows boxes that are drawn as one. */
  showRemainder(node, whole, x, y) {
    const title = document.createElement("strong");
    title.textContent = `${node.numNodes.toLocaleString("en")} boxes that are too narrow to be drawn one by one`;
    const amount = this.profile.amount(node.weight, node.samples, { countLast: true });
    this.element.replaceChildren(title, ` ${shareText(node.value, whole)} · ${amount} · zoom in to see them`);
    this.place(x, y);
  }

  place(x, y) {
    const { element } = this;
    element.hidden = false;
    const { width, height } = element.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - width - 12 : x + 16;
    const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
    element.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  weights(weight, samples, node, whole) {
    const value = node.view.bySamples ? samples : weight;
    return `${shareText(value, whole)} · ${weightText(weight, this.profile.unit)}`;
  }
}

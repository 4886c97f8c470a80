// Names of the rows, left of the timeline; a click folds or unfolds.

import { lengthText } from "../data/times.js";
import { h } from "../widgets/dom.js";
import { AXIS } from "./painter.js";

/** A thread without the id of its process, which the heading above has: what differs is seen where there is little room. */
function shortLabel(label) {
  return label.replace(/ \d+\/(\d+)$/, " $1");
}

/** One element per row, moved as the timeline scrolls. */
export class Headers {
  constructor(host, view) {
    Object.assign(this, { host, view });
    this.moving = h("div.moving");
    host.replaceChildren(h("div.corner"), this.moving);
    host.addEventListener("wheel", (event) => (view.scrollBy(event.deltaY), event.preventDefault()), { passive: false });
  }

  show(rows) {
    this.moving.replaceChildren(...rows.map((row) => this.header(row)));
  }

  header(row) {
    const twisty = row.open === null ? "" : row.open ? "▾" : "▸";
    const busy = row.track && !row.lane && row.track.busy_ns ? lengthText(row.track.busy_ns) : "";
    const max = row.counter ? Number(row.counter.max).toLocaleString("en-US") : "";
    const text = [h("span.twisty", { "aria-hidden": "true" }, twisty), h("b", {}, shortLabel(row.label)), h("small", {}, row.lane ? h("span.thread", {}, row.detail) : [row.detail, busy, max].filter(Boolean).join(" · "))];
    const title = [row.label, row.detail].filter(Boolean).join(" · ");
    const header = row.open === null ? h(`div.header.${row.kind}`, { title }, text) : h(`button.header.${row.kind}`, { title, "aria-expanded": String(row.open), onclick: () => this.view.toggle(row) }, text);
    if (row.lane) header.classList.add("lane");
    Object.assign(header.style, { top: `${row.top}px`, height: `${row.height}px` });
    return header;
  }

  place(scroll) {
    this.moving.style.transform = `translateY(${AXIS - scroll}px)`;
  }
}

// Names of the rows, left of the timeline; a click folds or unfolds.

import { lengthText } from "../data/times.js";
import { h } from "../widgets/dom.js";
import { AXIS } from "./painter.js";

/** A thread without the id of its process, which the heading above has: what differs is seen where there is little room. */
function shortLabel(label) {
  return label.replace(/ \d+\/(\d+)$/, " $1");
}

/** An element for each row in sight and near it, moved as the timeline scrolls. */
export class Headers {
  constructor(host, view) {
    Object.assign(this, { host, view, rows: [], elements: new Map() });
    this.moving = h("div.moving");
    host.replaceChildren(h("div.corner"), this.moving);
    host.addEventListener("wheel", (event) => (view.scrollBy(event.deltaY), event.preventDefault()), { passive: false });
    host.addEventListener("focusin", ({ target }) => {
      const [row] = [...this.elements].find(([, element]) => element === target) ?? [];
      if (row) view.revealRow(row);
    });
  }

  /** Shows other rows, of which that with the key of the focused one has the focus. */
  show(rows) {
    const [focused] = [...this.elements].find(([, element]) => element === document.activeElement) ?? [];
    Object.assign(this, { rows, elements: new Map() });
    this.moving.replaceChildren();
    this.place(this.view.scroll);
    const again = focused && [...this.elements].find(([row]) => row.key === focused.key);
    again?.[1].focus({ preventScroll: true });
  }

  /** Makes what is a height of the view or less away from it, so that Tab leads there, too. */
  place(scroll) {
    this.moving.style.transform = `translateY(${AXIS - scroll}px)`;
    const near = this.host.clientHeight;
    const isNear = ({ top, height }, element) => element === document.activeElement || (top < scroll + 2 * near && top + height > scroll - near);
    for (const [row, element] of this.elements) {
      if (isNear(row, element)) continue;
      element.remove();
      this.elements.delete(row);
    }
    let next = this.moving.firstChild;
    for (const row of this.rows) {
      const known = this.elements.get(row);
      if (known) next = known.nextSibling;
      else if (isNear(row)) this.moving.insertBefore(this.made(row), next);
    }
  }

  made(row) {
    const element = this.header(row);
    this.elements.set(row, element);
    return element;
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
}

// Where objects were allocated: types by the stack of their allocation.

import { visible, weightText } from "../flame/format.js";
import { h } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";

const SHOWN = 500;

/** Allocation sites of the objects of a snapshot. */
export class Sites {
  constructor(host, app) {
    Object.assign(this, { host, app });
  }

  /** Shows them; returns their grid. */
  async show(snapshot) {
    const answer = await this.app.server.json("heap/sites", { snapshot, limit: SHOWN }, { latest: "heap" });
    const [table, stack] = [h("div.grid-host"), h("ol.stack", { "aria-label": "Stack of the allocation, innermost first" })];
    this.host.replaceChildren(table, stack);
    const grid = new Grid(table, {
      label: "Allocation sites", empty: "No allocation of an object that is alive was recorded.",
      columns: [
        { key: "bytes", label: "Size", number: true, sort: true, width: "7rem", value: ({ bytes }) => bytes, text: ({ bytes }) => weightText(bytes, "bytes") },
        { key: "objects", label: "Objects", number: true, sort: true, width: "6rem", value: ({ objects }) => objects, text: ({ objects }) => objects.toLocaleString("en-US") },
        { key: "type", label: "Type", text: ({ type }) => visible(type ?? ""), hint: ({ stack }) => visible(stack?.[0] ?? "no stack") },
      ],
      onSelect: (row) => stack.replaceChildren(...(row.stack ?? []).map((frame) => h("li", {}, visible(frame)))),
    });
    grid.show(answer.rows, { foot: answer.rows.length === SHOWN ? `the ${SHOWN} largest` : "" });
    return grid;
  }
}

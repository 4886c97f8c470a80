// One object or type of a snapshot: its facts, who refers to it, what it refers to, and the path from a root.

import { visible, weightText } from "../flame/format.js";
import { facts, h, note } from "../widgets/dom.js";
import { PagedGrid } from "../widgets/paged_grid.js";
import { bytes } from "./columns.js";

const PAGE = 500;

/** The right side of the heap explorer. */
export class Inspector {
  constructor(host, app) {
    Object.assign(this, { host, app });
  }

  async show(snapshot, { object, type, typename }) {
    const key = JSON.stringify([snapshot, object, type]);
    if (key === this.shown) return;
    this.shown = key;
    if (object) return this.showObject(snapshot, object);
    if (type !== undefined) return this.showInstances(snapshot, type, typename);
    this.host.replaceChildren(note("Choose a type or an object.", "Here are then its objects, who refers to it, what it refers to, and the path that keeps it alive."));
  }

  async showInstances(snapshot, type, name) {
    const table = h("div.grid-host");
    const paths = h("div.paths");
    this.host.replaceChildren(h("h2", {}, visible(name ?? `type ${type}`)), paths, table);
    const grid = new PagedGrid(table, {
      label: "Objects of the type", empty: "No objects.",
      columns: [bytes("retained_bytes", "Retained"), bytes("bytes", "Size"), { key: "address", label: "Address", text: ({ address }) => address }],
      ask: ({ offset, limit }) => this.app.server.json("heap/instances", { snapshot, type_id: type, offset, limit }, { latest: offset ? undefined : "instances" }),
      run: (act) => this.app.run(this.app.view, act),
      onOpen: ({ address }) => this.app.change({ object: address }),
    });
    await grid.reload();
    await this.showPaths(snapshot, type, paths);
  }

  /** Why objects of the type are alive: paths from roots, merged by type. */
  async showPaths(snapshot, type, host) {
    const { rows, num } = await this.app.server.json("heap/paths", { snapshot, type_id: type }, { latest: "paths" });
    const items = rows.map(({ root, is_reachable: isReachable, types, objects, retained_bytes: retained, address }) => {
      const start = root ? visible(root.text) : isReachable ? "" : "no root: garbage that was not collected yet";
      const example = h("button.link", { title: `One of them: ${address}`, onclick: () => this.app.change({ object: address }) }, visible(types.at(-1)));
      return h("li", {}, h("b", {}, `${weightText(objects, "objects")}, retained ${weightText(retained, "bytes")} `), start ? h("em", {}, `${start} → `) : "", types.slice(0, -1).map((type) => `${visible(type)} → `).join(""), example);
    });
    if (items.length) host.replaceChildren(h("h3", {}, `Paths from roots (${num.toLocaleString("en-US")})`), h("ol", { "aria-label": "Paths from roots, merged by type" }, items));
  }

  async page(snapshot, address, name, offset) {
    return (await this.app.server.json("heap/object", { snapshot, address, offset, limit: PAGE }))[name];
  }

  /** A button that appends the next page to a list, until all is there. */
  moreButton(list, num, ask, item) {
    const left = () => `${(num - list.children.length).toLocaleString("en-US")} more`;
    const button = h("button", { onclick: () => this.app.run(this.app.view, async () => {
      const rows = await ask(list.children.length);
      list.append(...rows.map(item));
      button.textContent = left();
      if (!rows.length || list.children.length >= num) button.remove();
    }) }, left());
    return button;
  }

  async showObject(snapshot, address) {
    const answer = await this.app.server.json("heap/object", { snapshot, address }, { latest: "object" });
    const { object, root, path } = answer;
    const link = (each) => h("button.link", { title: each.address, onclick: () => this.app.change({ object: each.address }) }, visible(each.type ?? each.address));
    const item = (each) => h("li", {}, link(each), h("small", {}, ` ${each.address}${each.field_offset === null || each.field_offset === undefined ? "" : ` at offset ${each.field_offset}`}`));
    const references = (title, name, num) => {
      const list = h("ul.references", { "aria-label": title }, answer[name].map(item));
      return [h("h3", {}, `${title} (${num.toLocaleString("en-US")})`), num ? list : h("p.note", {}, "none"), num > answer[name].length ? this.moreButton(list, num, (offset) => this.page(snapshot, address, name, offset), item) : ""];
    };
    const rootText = root ? visible(root.text ?? root.kind ?? "") : "";
    const step = (each) => h("li", {}, link(each), h("small", {}, ` ${weightText(each.retained_bytes ?? each.bytes ?? 0, "bytes")}`));
    const leftOut = answer.num_left_out ? [h("li.left-out", {}, `… ${answer.num_left_out.toLocaleString("en-US")} objects …`), ...answer.path_end.map(step)] : [];
    this.host.replaceChildren(
      h("h2", {}, visible(object.type ?? "object")),
      facts([["address", object.address], ["size", weightText(object.bytes, "bytes")], ["retained", object.retained_bytes === null || object.retained_bytes === undefined ? "" : weightText(object.retained_bytes, "bytes")], ["generation", object.generation === undefined ? "" : String(object.generation ?? "")], ["root", rootText]]),
      h("h3", {}, "Path from a root"),
      path?.length ? h("ol.path", { "aria-label": "Path from a root" }, rootText ? h("li", {}, h("em", {}, rootText)) : "", path.map(step), leftOut) : h("p.note", {}, "No root reaches it: it is garbage that was not collected yet."),
      ...references("Refers to", "refers_to", answer.num_refers_to), ...references("Referred to by", "referred_by", answer.num_referred_by),
    );
    this.app.announce(`${object.type} ${object.address}`);
  }
}

// The dominator tree of a snapshot: a treemap or an icicle, and the same as a table that opens level by level.

import { shareText, visible, weightText } from "../flame/format.js";
import { Palette } from "../flame/palette.js";
import { Colours } from "../timeline/colours.js";
import { h, toggles } from "../widgets/dom.js";
import { FONT } from "../widgets/font.js";
import { Hint } from "../widgets/hint.js";
import { PaneCanvas } from "../widgets/pane_canvas.js";
import { TreeGrid } from "../widgets/tree_grid.js";
import { squarify } from "./treemap.js";

const SHOWN = 100;
const ROW = 22;
const LEVELS = 12;
const NARROWEST = 3;

/** Objects by what they keep alive. */
export class Dominators {
  constructor(host, app) {
    Object.assign(this, { host, app, path: [], form: "treemap" });
    host.className = "dominators";
    this.names = { names: [], shortNames: [], originOf: [], shadeOf: [], origins: app.overview.origins };
    this.palette = new Palette({ origins: app.overview.origins, shades: app.overview.shades });
    this.colours = new Colours(this.palette, this.names);
    this.types = new Map();
    this.crumbs = h("nav.crumbs", { "aria-label": "Inside of" });
    this.picture = h("div.canvas.map", { tabIndex: -1 });
    this.table = h("div.grid-host");
    host.replaceChildren(this.crumbs, this.picture, this.table);
    this.pane = new PaneCanvas(this.picture, (context, width, height) => this.draw(context, width, height), { label: "Treemap of the dominator tree; the table has the same data" });
    this.hint = new Hint();
    this.palette.onChange(() => (this.colours.update(), this.pane.request()));
    this.picture.addEventListener("pointermove", (event) => this.hover(event));
    this.picture.addEventListener("pointerleave", () => this.hint.hide());
    this.picture.addEventListener("click", (event) => this.clicked(event));
  }

  async show(snapshot) {
    Object.assign(this, { snapshot, path: [] });
    this.root = { type: "all", address: null, bytes: 0, has_children: true };
    await this.load(this.root);
    this.root.retained_bytes = this.root.children.reduce((sum, { retained_bytes }) => sum + retained_bytes, 0);
    this.grid = new TreeGrid(this.table, {
      label: "Dominator tree", empty: "The snapshot has no objects.",
      columns: [
        { key: "retained", label: "Retained", number: true, width: "10.5rem", share: (node) => node.retained_bytes / this.root.retained_bytes, value: (node) => node.retained_bytes, text: (node) => `${weightText(node.retained_bytes, "bytes")}  ${shareText(node.retained_bytes, this.root.retained_bytes)}` },
        { key: "size", label: "Size", number: true, width: "6rem", value: (node) => node.bytes, text: (node) => (node.isRest ? "" : weightText(node.bytes, "bytes")) },
        { key: "objects", label: "Objects", number: true, width: "7.5rem", value: (node) => node.retained_objects, text: (node) => (node.retained_objects ?? "").toLocaleString("en-US") },
        { key: "name", label: "Object", text: (node) => visible(node.type), hint: (node) => node.address ?? "" },
      ],
      children: (node) => this.load(node), hasChildren: (node) => node.has_children,
      onSelect: (node) => node.address && this.app.change({ object: node.address }, { push: false }),
      onOpen: (node) => node.has_children && this.enter(this.ancestors(node)),
    });
    this.grid.showRoots(this.root.children);
    await this.enter([]);
  }

  /** Children of a node, with one row for all that are not in the answer. */
  async load(node) {
    if (node.children) return node.children;
    const answer = await this.app.server.json("heap/dominated", { snapshot: this.snapshot, address: node.address ?? undefined, limit: SHOWN });
    this.command ??= answer.command;
    node.children = answer.rows.map((row) => ({ ...row, parent: node }));
    const { rest } = answer;
    if (rest?.objects) node.children.push({ type: `${rest.objects.toLocaleString("en-US")} more`, address: null, bytes: rest.bytes, retained_bytes: rest.bytes, retained_objects: rest.objects, has_children: false, isRest: true, parent: node });
    return node.children;
  }

  ancestors(node) {
    const path = [];
    for (let at = node; at && at !== this.root; at = at.parent) path.unshift(at);
    return path;
  }

  /** Makes a node the whole picture, and loads what the picture shows of it. */
  async enter(path) {
    this.path = path;
    const top = path.at(-1) ?? this.root;
    const children = await this.load(top);
    const large = children.filter(({ retained_bytes, has_children }) => has_children && retained_bytes > top.retained_bytes / 60).slice(0, 12);
    await Promise.all(large.map((child) => this.load(child)));
    this.showPath();
    this.pane.request();
    this.host.dataset.inside = top.address ?? "all";
  }

  showPath() {
    const link = (text, path) => h("button.link", { onclick: () => this.app.run(this.app.view, () => this.enter(path)) }, text);
    const parts = [link("all", [])];
    this.path.forEach((node, at) => parts.push(" › ", link(visible(node.type), this.path.slice(0, at + 1))));
    const forms = toggles("Picture", [["treemap", "Treemap"], ["icicle", "Icicle"]], this.form, (form) => {
      this.form = form;
      this.showPath();
      this.pane.request();
    });
    this.crumbs.replaceChildren(forms, ...parts);
  }

  draw(context, width, height) {
    const { palette } = this;
    context.fillStyle = palette.page;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    this.boxes = [];
    const top = this.path.at(-1) ?? this.root;
    if (!top?.children) return;
    if (this.form === "treemap") this.drawMap(context, top, { x: 0, y: 0, width, height }, 0);
    else this.drawIcicle(context, top, 0, width, 0);
  }

  drawMap(context, node, area, level) {
    const own = node.bytes > 0 && level ? [{ value: node.bytes, own: true }] : [];
    const items = [...node.children.map((child) => ({ value: child.retained_bytes, node: child })), ...own];
    for (const { item, x, y, width, height } of squarify(items, area)) {
      if (!item.node || width < NARROWEST || height < NARROWEST) continue;
      this.box(context, item.node, x, y, width - 1, height - 1);
      if (item.node.children?.length && level < 2 && width > 60 && height > 50) {
        this.drawMap(context, item.node, { x: x + 3, y: y + ROW - 2, width: width - 7, height: height - ROW - 2 }, level + 1);
      }
    }
  }

  drawIcicle(context, node, left, width, level) {
    const wide = (bytes) => (node.retained_bytes > 0 ? (bytes / node.retained_bytes) * width : 0);
    this.box(context, node, left, level * ROW, width - 1, ROW - 1);
    if (level >= LEVELS) return;
    let at = left;
    for (const child of node.children ?? []) {
      const size = wide(child.retained_bytes);
      if (size >= NARROWEST) this.drawIcicle(context, child, at, size, level + 1);
      at += size;
    }
  }

  box(context, node, x, y, width, height) {
    const { palette, colours } = this;
    context.fillStyle = node.isRest || node === this.root ? palette.dimmed : colours.ofName(node.type);
    context.fillRect(x, y, width, height);
    context.strokeStyle = palette.page;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), Math.max(1, height - 1));
    this.boxes.push({ node, x, y, width, height });
    if (width < 40 || height < 14) return;
    context.fillStyle = palette.text;
    const text = node === this.root ? `all · ${weightText(node.retained_bytes, "bytes")}` : `${shortType(node.type)} · ${weightText(node.retained_bytes, "bytes")}`;
    const fits = Math.floor((text.length * (width - 8)) / context.measureText(text).width);
    if (fits >= 4) context.fillText(fits >= text.length ? text : `${text.slice(0, fits - 1)}…`, x + 4, y + Math.min(height / 2, ROW / 2));
  }

  nodeAt(event) {
    const { left, top } = this.picture.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    return this.boxes?.findLast((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height)?.node;
  }

  hover(event) {
    const node = this.nodeAt(event);
    if (!node) return this.hint.hide();
    this.hint.show(visible(node.type), [["address", node.address], ["retained", weightText(node.retained_bytes, "bytes")], ["size", node.bytes ? weightText(node.bytes, "bytes") : ""], ["objects", node.retained_objects?.toLocaleString("en-US")]], event.clientX, event.clientY);
  }

  clicked(event) {
    const node = this.nodeAt(event);
    if (!node) return;
    const { app } = this;
    if (node.address) app.change({ object: node.address });
    const inside = this.path.at(-1) === node ? this.path.slice(0, -1) : this.ancestors(node);
    if (node.has_children) app.run(app.view, () => this.enter(inside));
  }

  pictures() {
    return { png: () => new Promise((resolve) => this.pane.canvas.toBlob(resolve)), svg: () => this.pane.svg() };
  }
}

/** A type without its namespace. */
function shortType(type) {
  const name = visible(type);
  const generic = name.indexOf("<");
  const end = generic < 0 ? name.length : generic;
  return name.slice(name.lastIndexOf(".", end) + 1);
}

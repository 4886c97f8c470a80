// Saving a view: a picture, its rows, and the command that prints the same.

import { h } from "./dom.js";
import { tablePictures } from "./table_picture.js";

/** Offers bytes or text to the browser as a file. */
function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Copies text; pages without permission for the clipboard select it instead. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/**
 * The menu "Save". `view()` returns what the view in sight can save: `{ name, png(): Promise<Blob>, svg(): string,
 * csv(): string, command: string }`, each where it has one.
 */
export class SaveMenu {
  constructor(host, view) {
    this.view = view;
    this.items = h("div.menu", { role: "menu", id: "save-items", hidden: true });
    this.button = h("button", { id: "save", "aria-haspopup": "menu", "aria-expanded": "false", "aria-controls": "save-items", title: "Save this view (x)", onclick: () => this.toggle() }, "Save");
    host.append(h("div.menu-box", {}, this.button, this.items));
    addEventListener("pointerdown", (event) => !host.contains(event.target) && this.close());
    this.items.addEventListener("keydown", (event) => this.key(event));
  }

  toggle() {
    if (!this.items.hidden) return this.close();
    const saved = this.view();
    // Views that are not drawn are saved as pictures of their tables.
    if (saved.table && !saved.png) Object.assign(saved, tablePictures(saved.table));
    const item = (text, act) => h("button", { role: "menuitem", onclick: async () => { this.close(); await act(); } }, text);
    const items = [];
    if (saved.png) items.push(item("Picture (PNG)", async () => download(`${saved.name}.png`, await saved.png())));
    if (saved.svg) items.push(item("Picture (SVG)", () => download(`${saved.name}.svg`, saved.svg(), "image/svg+xml")));
    if (saved.csv) items.push(item("Rows (CSV)", () => download(`${saved.name}.csv`, saved.csv(), "text/csv")));
    items.push(item("Copy the link to this view", () => copyText(location.href)));
    if (saved.command) {
      items.push(item("Copy the command", () => copyText(saved.command)));
      items.push(h("code", { id: "command", title: "The same on the command line" }, saved.command));
    }
    this.items.replaceChildren(...items);
    this.items.hidden = false;
    this.button.ariaExpanded = "true";
    items[0].focus();
  }

  close() {
    if (this.items.hidden) return;
    const hadFocus = this.items.contains(document.activeElement);
    this.items.hidden = true;
    this.button.ariaExpanded = "false";
    if (hadFocus) this.button.focus();
  }

  key(event) {
    const all = [...this.items.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement);
    const next = { ArrowDown: all[(at + 1) % all.length], ArrowUp: all.at(at - 1), Home: all[0], End: all.at(-1) }[event.key];
    if (next) next.focus();
    else if (event.key === "Escape" || event.key === "Tab") this.close();
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  }
}

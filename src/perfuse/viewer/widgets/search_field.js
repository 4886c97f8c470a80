// The search field of a tab: what is typed becomes a part of the address, `/` is its key.

import { h } from "./dom.js";

const WAIT_MS = 150;

export class SearchField {
  /** `part` is the part of the address; the placeholder ends with the key. */
  constructor(app, part, placeholder, label) {
    Object.assign(this, { app, part });
    this.input = h("input", { type: "search", placeholder: `${placeholder} ( / )`, "aria-label": label, spellcheck: false, autocomplete: "off", oninput: () => this.changeSoon() });
  }

  changeSoon() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.app.change({ [this.part]: this.input.value }), WAIT_MS);
  }

  /** Shows the text of an address, unless the user is typing another. */
  show(state) {
    if (document.activeElement !== this.input) this.input.value = state[this.part] ?? "";
  }

  /** Handles a key; returns whether it was that of the field. */
  key(event) {
    if (event.key !== "/") return false;
    this.input.focus();
    this.input.select();
    return true;
  }
}

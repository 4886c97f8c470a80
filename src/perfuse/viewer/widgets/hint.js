// The box of facts near the pointer.

import { facts, h } from "./dom.js";

/** Facts about what is under the pointer. */
export class Hint {
  constructor() {
    this.element = document.getElementById("hint");
  }

  show(title, lines, x, y) {
    const { element } = this;
    element.replaceChildren(h("strong", {}, title), facts(lines));
    element.hidden = false;
    const { width, height } = element.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - width - 12 : x + 16;
    const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
    element.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}

// Call trees of selections, asked for once although several views show them.

import { Profile } from "../flame/profile.js";

const KEPT = 4;

/** Call trees by what is selected. */
export class Trees {
  constructor(app) {
    this.app = app;
    this.kept = new Map();
  }

  /** The tree of a selection, as the flame graph's profile; `of` may replace parts of the page's state. */
  get(of = {}) {
    const key = this.app.selectionKey(of);
    let tree = this.kept.get(key);
    if (!tree) {
      tree = this.app.server.bytes("tree", this.app.selection(of)).then((bytes) => new Profile(bytes));
      tree.catch(() => this.kept.delete(key));
      this.kept.set(key, tree);
      if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    return tree;
  }
}

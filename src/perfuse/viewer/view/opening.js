// Progress while the server reads the files, and news of it afterwards.

import { ENDED } from "../data/server.js";
import { h } from "../widgets/dom.js";

const PAUSE_MS = 30_000;

/** Follows the server's state. */
export class Opening {
  constructor(host, server) {
    Object.assign(this, { host, server });
    this.bar = h("progress", { max: 1, "aria-label": "Opening" });
    this.stage = h("p", { role: "status" }, "Opening the files");
    this.section = h("section.message", {}, h("h2", {}, "Opening"), this.bar, this.stage, h("button", { onclick: () => this.cancel() }, "Cancel"));
  }

  /** Waits until the profile is open, or cannot be. */
  async finished() {
    let state = await this.server.json("state");
    while (state.state === "opening") {
      if (!this.section.isConnected) this.host.replaceChildren(this.section);
      this.show(state);
      state = await this.server.json("state", { after: state.generation });
    }
    return state;
  }

  show({ stage, share }) {
    this.stage.textContent = stage ?? "";
    if (share === null || share === undefined) this.bar.removeAttribute("value");
    else this.bar.value = share;
  }

  async cancel() {
    await this.server.post("cancel", {});
  }

  remove() {
    this.section.remove();
  }

  /** Reports later changes: the timeline's index, a file that grew, the end of the server. */
  async watch(app, state) {
    let { generation } = state;
    app.news(state);
    for (;;) {
      try {
        const next = await this.server.json("state", { after: generation });
        if (next.generation !== generation) await app.news(next);
        ({ generation } = next);
        if (next.watched) continue;
        if (next.timeline === "ready" || next.timeline === "none" || next.timeline === "failed") await this.pause();
      } catch (error) {
        if (error.code === ENDED) app.ended();
        return;
      }
    }
  }

  /** A pause between questions; the server counts each as a sign that the page is open. */
  pause() {
    return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

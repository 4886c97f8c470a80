// The keyboard: keys of the viewer, then those of the view in sight.

import { keysList } from "../flame/keys.js";
import { h } from "../widgets/dom.js";
import { askTime } from "./ask_time.js";
import { askFilter } from "./filters.js";
import { compareRecordings } from "./selection_bar.js";

const KEYS = [
  ["1 … 9", "the views, from left to right"],
  ["[ ]", "back and forward over selections"],
  ["g", "go to a time, or select one"],
  ["m", "mark the selection as the base that others are compared with"],
  ["b", "compare with the other recording of --base"],
  ["F", "filter stacks, by the chosen function"],
  ["l", "source lines and machine code of the chosen function"],
  ["x", "save: PNG, SVG, CSV, link, command"],
  ["Esc", "close what is open, then remove the selection"],
  ["?", "this list"],
];

/** Binds the keys of the application; views have `keys`, a list of `[names, text]`, and `key(event)`. */
export function bindKeys(app) {
  const dialog = document.getElementById("keys");
  const showKeys = () => {
    const { view, current } = app;
    const own = view.keys?.length ? [h("h3", {}, current.label), keysList(view.keys)] : [];
    dialog.replaceChildren(h("h2", {}, "Keys"), ...own, h("h3", {}, "Everywhere"), keysList(KEYS), h("form", { method: "dialog" }, h("button", {}, "Close")));
    dialog.showModal();
  };
  document.getElementById("help").addEventListener("click", showKeys);
  const actions = {
    "?": showKeys,
    "[": () => history.back(),
    "]": () => history.forward(),
    // Without waiting: what is typed next is the time.
    g: () => askTime(app),
    F: () => app.bar.filter.hidden || askFilter(app, app.view.chosenFunction?.function ?? ""),
    l: () => app.view.chosenFunction && app.annotate(app.view.chosenFunction),
    b: () => compareRecordings(app),
    x: () => app.save.toggle(),
    m: () => app.state.range && app.change({ base: app.state.range, range: null }),
    Escape: () => leave(app),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || event.defaultPrevented) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isButton = event.target.closest("button, [role=tab], [role=menuitem]") && ["Enter", " ", "ArrowLeft", "ArrowRight"].includes(event.key);
    if (isButton) return;
    if (app.view.key?.(event)) return event.preventDefault();
    const nth = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    const act = app.available[nth] ? () => app.change({ tab: app.available[nth].id }) : actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function leave(app) {
  if (app.state.versus) app.change({ versus: null });
  else if (app.state.base) app.change({ base: null });
  else if (app.state.range) app.change({ range: null });
}

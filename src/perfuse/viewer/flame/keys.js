// The keyboard.

/** Keys of the flame graph and what they do. */
export const FLAME_KEYS = [
  ["/", "search names, a regular expression works"],
  ["Esc", "clear the search, the highlight, then the zoom"],
  ["← → ↑ ↓", "walk over the boxes"],
  ["Enter", "zoom into the box"],
  ["Backspace", "zoom out one step"],
  ["i", "invert: callers or callees"],
  ["s", "callers and callees of the box"],
  ["c", "copy the name of the box"],
  ["t", "show or hide the table"],
];

/** The keys and what they do, as a list of terms. */
export function keysList(keys = FLAME_KEYS) {
  const list = document.createElement("dl");
  for (const [names, does] of keys) {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    for (const name of names.split(" ")) term.append(Object.assign(document.createElement("kbd"), { textContent: name }), " ");
    text.textContent = does;
    list.append(term, text);
  }
  return list;
}

/** Fills a dialog with the keys. */
export function fillKeys(dialog) {
  const title = Object.assign(document.createElement("h2"), { textContent: "Keys" });
  const form = Object.assign(document.createElement("form"), { method: "dialog" });
  form.append(Object.assign(document.createElement("button"), { textContent: "Close" }));
  dialog.replaceChildren(title, keysList(), form);
}

/** Binds keys to what the application does; returns a function that handles one event. */
export function bindKeys(app) {
  const search = document.getElementById("search");
  const actions = {
    "/": () => (search.focus(), search.select()),
    i: () => app.change({ view: app.state.view === "inverted" ? "flame" : "inverted" }),
    s: () => app.focusSelected(),
    c: () => app.copyName(),
    t: () => app.toggleTable(),
    Escape: () => app.back(),
    Enter: () => app.zoomTo(app.selected),
    Backspace: () => app.zoomOut(),
    ArrowUp: () => app.walk("up"),
    ArrowDown: () => app.walk("down"),
    ArrowLeft: () => app.walk("left"),
    ArrowRight: () => app.walk("right"),
  };
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") app.change({ search: "" });
    if (event.key !== "Escape" && event.key !== "Enter") return;
    app.graph.pane.focus();
    event.stopPropagation();
  });
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input[type=search], select")) return false;
    // Buttons keep the keys that press them.
    if (event.target.closest("button, [role=tab], #divider") && ["Enter", "ArrowLeft", "ArrowRight"].includes(event.key)) return false;
    const action = actions[event.key];
    if (!action) return false;
    event.preventDefault();
    action();
    return true;
  };
}

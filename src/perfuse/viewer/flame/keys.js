// The keyboard.

/** Binds keys to what the application does. */
export function bindKeys(app) {
  const search = document.getElementById("search");
  const dialog = document.getElementById("keys");
  const actions = {
    "/": () => (search.focus(), search.select()),
    "?": () => dialog.showModal(),
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
  document.getElementById("show-keys").addEventListener("click", actions["?"]);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    const field = event.target.closest("input[type=search], select");
    if (field) {
      if (event.key === "Escape") app.change({ search: "" });
      if (event.key === "Escape" || (event.key === "Enter" && field === search)) app.graph.pane.focus();
      return;
    }
    // Buttons keep the keys that press them.
    if (event.target.closest("button, #divider") && ["Enter", "ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

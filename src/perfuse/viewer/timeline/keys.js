// The keyboard of the timeline.

/** Keys and what they do. */
export const TIMELINE_KEYS = [
  ["w s", "zoom in and out (also + and −; Ctrl and the wheel)"],
  ["a d", "move left and right (also Shift and the wheel)"],
  ["← → ↑ ↓", "walk over the calls: earlier, later, caller, callee"],
  [". ,", "next and previous call of the same function"],
  ["r", "select the time of the chosen call"],
  ["f", "zoom to the chosen call, or else to the selection"],
  ["0", "the whole recording"],
  ["Enter", "flame graph of the selection"],
  ["/", "highlight names"],
  ["drag", "select a time; with Shift, what to compare it with"],
];

const STEP = 0.15;

/** Handles a key; returns whether it was one of the timeline's. */
export function timelineKey(view, event) {
  const { app, chosen } = view;
  const length = view.window[1] - view.window[0];
  const move = (share) => view.setWindow(view.window[0] + share * length, view.window[1] + share * length);
  const walk = (direction) => () => view.panel.walk(direction);
  const actions = {
    w: () => view.zoom(0.7), "+": () => view.zoom(0.7), "=": () => view.zoom(0.7),
    s: () => view.zoom(1 / 0.7), "-": () => view.zoom(1 / 0.7),
    a: () => move(-STEP), d: () => move(STEP),
    0: () => view.setWindow(0, app.span),
    f: () => (chosen ? view.showSlice(chosen.slice.start_ns, chosen.slice.duration_ns) : view.fitSelection()),
    r: () => chosen && app.change({ range: [Math.floor(chosen.slice.start_ns), Math.ceil(chosen.slice.start_ns + Math.max(1, chosen.slice.duration_ns))] }),
    "/": () => (view.search.focus(), view.search.select()),
    ".": walk("next-same"), ",": walk("previous-same"),
  };
  if (event.target.closest(".canvas")) {
    Object.assign(actions, {
      ArrowLeft: walk("previous"), ArrowRight: walk("next"), ArrowUp: walk("parent"), ArrowDown: walk("child"),
      PageDown: () => view.scrollBy(300), PageUp: () => view.scrollBy(-300),
      Enter: () => app.change({ tab: "flame" }),
    });
    if (chosen) actions.Escape = () => view.deselect();
  }
  const act = actions[event.key];
  if (!act) return false;
  act();
  return true;
}

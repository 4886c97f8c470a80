// The dialog that asks for a time: `1.2s` goes there, `1.2s - 1.5s` selects.

import { momentText, readMoment } from "../data/times.js";
import { h } from "../widgets/dom.js";

/** Asks, then changes what is selected or in sight. */
export function askTime(app) {
  const field = h("input", { type: "text", id: "time", placeholder: "1.2 s  or  350 ms - 1.2 s", autocomplete: "off", "aria-describedby": "time-problem" });
  const problem = h("p.problem", { id: "time-problem", role: "alert" });
  const end = momentText(app.span, app.span / 1000);
  const form = h("form", { method: "dialog" }, h("label", { for: "time" }, `A time, or two to select (0 to ${end})`), field, problem, h("button", { value: "go" }, "Go"), h("button", { value: "no", formNoValidate: true, type: "button", onclick: () => dialog.close() }, "Cancel"));
  const dialog = h("dialog", { "aria-label": "Go to a time" }, h("h2", {}, "Go to"), form);
  form.addEventListener("submit", (event) => {
    const times = field.value.split(/\s*(?:-|–|to)\s*/).map(readMoment);
    const [from, to] = times;
    const wrong = times.some((time) => time === null) || times.length > 2 || (to !== undefined && to <= from);
    if (wrong || from > app.span) {
      event.preventDefault();
      problem.textContent = "Not a time of this recording.";
      return;
    }
    const around = app.span / 200;
    if (to === undefined) app.change({ tab: "timeline", window: [Math.max(0, from - around), from + around] });
    else app.change({ range: [from, Math.min(to, app.span)] });
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

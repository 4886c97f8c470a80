// Filters of stacks: the options of the command line, with the same names, in the order in which they apply.

import { visible } from "../flame/format.js";
import { choice, h } from "../widgets/dom.js";

/** Names, what they do, and whether they take a pattern. */
const FILTERS = [
  ["only", "only samples with the function on their stack"],
  ["drop", "no samples with the function on their stack"],
  ["hide", "leave the function out of stacks: its callers get its samples"],
  ["root", "begin stacks at the function"],
  ["leaf", "end stacks at the function: what it called is its own"],
  ["tier", "only samples taken in code of the tier"],
  ["collapse-recursion", "each function once on a stack", false],
  ["collapse-module", "one frame for consecutive ones of the module"],
  ["jit-only", "only JIT-compiled frames", false],
  ["during-slice", "only samples taken during the call, collection or wait"],
  ["during-marker", "the same, of time ranges that are not calls"],
];

export const FILTER_NAMES = FILTERS.map(([name]) => name);
const PLAIN = new Set(FILTERS.filter(([, , takes]) => takes === false).map(([name]) => name));

/** The filters as the parameter of requests; nothing where there are none. */
export function filterParameter(filters) {
  return filters?.length ? JSON.stringify(filters.map(([name, pattern]) => [name, PLAIN.has(name) ? null : pattern])) : undefined;
}

/** A filter as it is on the command line. */
export function filterText([name, pattern]) {
  return PLAIN.has(name) ? name : `${name.replace("-", " ")} ${visible(pattern)}`;
}

/** Asks for a filter, and adds it where it matches something. `pattern` is what the field starts with. */
export async function askFilter(app, pattern = "") {
  const names = h("datalist", { id: "filter-names" });
  const field = h("input", { type: "text", id: "filter-pattern", value: pattern, autocomplete: "off", spellcheck: false, "aria-describedby": "filter-problem", placeholder: "render   render*   /regex/   module:libc*   tier:turbofan" });
  field.setAttribute("list", "filter-names");
  const problem = h("p.problem", { id: "filter-problem", role: "alert" });
  let name = "only";
  const what = h("p.where");
  const show = () => {
    what.textContent = FILTERS.find(([each]) => each === name)[1];
    field.hidden = label.hidden = PLAIN.has(name);
  };
  const label = h("label", { for: "filter-pattern" }, "A name, a part of it, a glob, /regex/, module:, path:, tier:, or a handle such as f12");
  const kind = choice("Filter", FILTERS.map(([each]) => [each, `--${each.replace("during-", "during ")}`]), name, (value) => {
    name = value;
    show();
  });
  const form = h("form", { method: "dialog" }, kind, what, label, field, names, problem, h("button", { value: "add" }, "Add"), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"));
  const dialog = h("dialog", { "aria-label": "Filter stacks" }, h("h2", {}, "Filter stacks"), form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const filters = [...(app.state.filters ?? []), [name, PLAIN.has(name) ? "1" : field.value]];
    const answer = await app.server.json("filters", { filters: filterParameter(filters) });
    problem.textContent = [answer.message, answer.hint].filter(Boolean).map(visible).join("\n");
    if (!answer.valid) return;
    dialog.close();
    app.change({ filters });
  });
  dialog.addEventListener("close", () => dialog.remove());
  show();
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  const { rows } = await app.server.json("functions", { ...app.selection(), limit: 200 });
  names.append(...rows.map((row) => new Option(row.name)));
}

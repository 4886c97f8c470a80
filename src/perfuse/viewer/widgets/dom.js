// Elements, made from names, properties and children. Text is always text, never markup.

/**
 * Makes an element: `h("button.primary", { onclick }, "Zoom")`.
 *
 * Properties that start with `on` are listeners, those with a hyphen or `role` are attributes, the rest are properties.
 */
export function h(selector, properties = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A definition list of [term, text] pairs; pairs without text are left out. */
export function facts(pairs) {
  const list = h("dl.facts");
  for (const [term, text] of pairs) {
    if (text === null || text === undefined || text === "") continue;
    list.append(h("dt", {}, term), h("dd", {}, text));
  }
  return list;
}

/** A labelled choice: `choice("Sort", [["time", "Time"]], value, change)`. */
export function choice(label, options, value, change) {
  const select = h("select", { onchange: ({ target }) => change(target.value) });
  select.append(...options.map(([key, text]) => new Option(text, key)));
  select.value = value;
  return h("label.choice", {}, `${label} `, select);
}

/** Buttons of which one is pressed. */
export function toggles(label, options, value, change) {
  const group = h("div.group", { role: "group", "aria-label": label });
  for (const [key, text, title] of options) {
    group.append(h("button", { "aria-pressed": String(key === value), title: title ?? "", onclick: () => change(key) }, text));
  }
  return group;
}

/** A line that states that something is empty, waits or failed. */
export function note(text, hint = "") {
  return h("p.note", { role: "status" }, text, hint && h("small", {}, hint));
}

// The page: controls, zoom, search, tooltip, table.

import { countText, shareText, weightText } from "../flame/format.js";
import { unpack } from "./model.js";
import { ROW, boxes, colourOf, paint } from "./painter.js";

const one = (selector) => document.querySelector(selector);
const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

const tree = await unpack(one("#difference").textContent);
const view = { width: "both", number: "amount", colour: tree.hasIntervals ? "proven" : "estimate", zoom: -1, pattern: null };
const darkTheme = matchMedia("(prefers-color-scheme: dark)");
const [graph, canvas, tooltip] = [one("#graph"), one("#graph canvas"), one("#tooltip")];
let shown = [];

function signed(value, text) {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${text}`;
}

function percent(value) {
  if (value === null || value === undefined) return "";
  return value >= 9 ? `×${(value + 1).toFixed(1)}` : `${signed(value, (100 * Math.abs(value)).toFixed(1))}%`;
}

/** A number of one side with its unit: `1.42 s`, `12.3%`, `10.67 samples`. */
function amount(value, side) {
  if (view.number === "share") return shareText(value, tree.whole[side]);
  return isCount() ? `${plainText(value)} ${tree.unit}` : plainText(value);
}

function difference(base, after) {
  if (view.number === "share" || tree.unit === "share") {
    const [before, now] = view.number === "share" ? [base / (tree.whole.base || 1), after / (tree.whole.new || 1)] : [base, after];
    const points = 100 * (now - before);
    return `${signed(points, Math.abs(points).toFixed(2))} points`;
  }
  return signed(after - base, plainText(Math.abs(after - base)));
}

/** Whether numbers are counts, whose unit the summary has. */
function isCount() {
  return !["ns", "bytes", "share"].includes(tree.unit);
}

/** A number; counts without their unit. Means of a few samples a run are not whole. */
function plainText(value) {
  if (tree.unit === "share") return shareText(value, 1);
  if (!isCount()) return weightText(value, tree.unit);
  return value < 100 && !Number.isInteger(value) ? value.toFixed(2) : weightText(value, "").trim();
}

function changeText(base, after) {
  if (!base && !after) return "none";
  const [before, now] = [tree.shown(base, "base", view.number), tree.shown(after, "new", view.number)];
  const ratio = base ? percent(now / before - 1) : "new";
  return `${difference(base, after)} (${after || !base ? ratio : "gone"})`;
}

function draw() {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [graph.clientWidth, graph.clientHeight];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  shown = boxes(tree, view, width);
  const depth = shown.reduce((most, box) => Math.max(most, box.depth + 1), 1);
  one("#graph .spacer").style.height = `${Math.max(0, depth * ROW - height)}px`;
  const style = getComputedStyle(document.body);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  paint(context, tree, view, shown, {
    top: graph.scrollTop,
    height,
    dark: darkTheme.matches,
    text: style.getPropertyValue("color"),
    quiet: getComputedStyle(one("#legend")).color,
    isMatch: view.pattern && ((node) => view.pattern.test(tree.functions[tree.functionOf[node]].name)),
  });
  drawCrumbs();
  for (const button of document.querySelectorAll("[data-width]")) {
    button.setAttribute("aria-pressed", button.dataset.width === view.width);
  }
  for (const button of document.querySelectorAll("[data-number]")) {
    button.setAttribute("aria-pressed", button.dataset.number === view.number);
  }
}

function drawCrumbs() {
  const crumbs = one("#crumbs");
  crumbs.replaceChildren();
  const add = (text, node) => {
    const button = element("button", text);
    button.onclick = () => zoom(node);
    crumbs.append(button);
  };
  if (view.zoom < 0) {
    if (!shown.length) crumbs.append(view.width === "gone" ? "no stack was removed" : "nothing differs");
    return;
  }
  add("all", -1);
  for (const node of tree.path(view.zoom)) {
    crumbs.append(" › ");
    add(tree.name(node), node);
  }
}

function zoom(node) {
  view.zoom = node;
  draw();
}

function boxAt(event) {
  const area = graph.getBoundingClientRect();
  const [x, depth] = [event.clientX - area.left, Math.floor((event.clientY - area.top + graph.scrollTop) / ROW)];
  return shown.find((box) => box.depth === depth && x >= box.x && x < box.x + box.w);
}

function facts(node) {
  const of = tree.functions[tree.functionOf[node]];
  const list = element("dl");
  const add = (name, text) => {
    if (text) list.append(element("dt", name), element("dd", text));
  };
  const [base, after] = [tree.total.base[node], tree.total.new[node]];
  add("total", `${amount(base, "base")} > ${amount(after, "new")}`);
  add("change", changeText(base, after));
  if (tree.low[node] !== null && tree.high[node] !== null) {
    add("interval", `${percent(tree.low[node])} … ${percent(tree.high[node])} (${tree.intervalText})`);
  }
  add("self", `${amount(tree.self.base[node], "base")} > ${amount(tree.self.new[node], "new")}`);
  add("stack", { gone: "removed: only in base", new: "added: only in new", both: "" }[tree.state(node)]);
  add("function", `self ${of.verdict}${of.evidence ? `, matched by ${of.evidence.replace("_", " ")}` : ""}`);
  add("where", of.where);
  return list;
}

function showTooltip(event) {
  const box = boxAt(event);
  tooltip.hidden = !box;
  graph.style.cursor = box ? "pointer" : "default";
  if (!box) return;
  tooltip.replaceChildren(element("strong", tree.functions[tree.functionOf[box.node]].name), facts(box.node));
  const { offsetWidth, offsetHeight } = tooltip;
  const x = Math.min(event.clientX + 14, innerWidth - offsetWidth - 8);
  const below = event.clientY + 18;
  const y = below + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : below;
  tooltip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}

function search(text) {
  let pattern = null;
  try {
    pattern = text ? new RegExp(text, "i") : null;
  } catch {
    pattern = { test: (name) => name.toLowerCase().includes(text.toLowerCase()) };
  }
  view.pattern = pattern;
  const sums = { base: 0, new: 0 };
  if (pattern) {
    const inside = new Uint8Array(tree.num);
    for (let node = 0; node < tree.num; node++) {
      const parent = tree.parent[node];
      inside[node] = (parent >= 0 && inside[parent]) || pattern.test(tree.functions[tree.functionOf[node]].name) ? 1 : 0;
      if (inside[node]) for (const side of ["base", "new"]) sums[side] += tree.self[side][node];
    }
  }
  const found = `${amount(sums.base, "base")} > ${amount(sums.new, "new")}`;
  one("#matched").textContent = pattern ? found : "";
  draw();
}

const MOST_ROWS = 300;

function fillTable() {
  const body = one("#functions tbody");
  body.replaceChildren();
  const rows = tree.order.slice(0, MOST_ROWS);
  for (const number of rows) {
    const of = tree.functions[number];
    const row = element("tr", undefined, { title: of.where ? `${of.name}\n${of.where}` : of.name });
    if (["changed", "new", "gone"].includes(of.verdict)) row.className = "proven";
    const cell = element("td", changeText(of.base, of.new), { class: "number" });
    row.append(cell, element("td", of.verdict), element("td", of.shown));
    row.onclick = () => {
      const escaped = of.name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
      one("#search").value = `^${escaped}$`;
      search(one("#search").value);
    };
    body.append(row);
  }
  const more = tree.order.length - rows.length;
  one("#functions .more").textContent = more > 0 ? `${countText(more, "more function")}` : tree.order.length ? "" : "all functions are the same";
}

function fillLegend() {
  const legend = one("#legend");
  legend.replaceChildren();
  const dark = darkTheme.matches;
  const swatch = (change) => {
    const made = element("i");
    made.style.background = colourOf(change, dark);
    return made;
  };
  const add = (text, ...swatches) => {
    const made = element("span");
    made.append(...swatches, text);
    legend.append(made);
  };
  const steps = [0.02, 0.05, 0.1, 0.2, 0.5];
  add("less: 50, 20, 10, 5, 2 %", ...[...steps].reverse().map((size) => swatch(-size)));
  add(view.colour === "proven" ? "not proven, or below 2 %" : "below 2 %", swatch(0));
  add("more: 2, 5, 10, 20, 50 %", ...steps.map(swatch));
  add("removed", element("i", undefined, { class: "gone" }));
  add("added", element("i", undefined, { class: "new" }));
  add("outlined part: what base had more", element("i", undefined, { class: "less" }));
  add(`colours are of totals${view.colour === "proven" ? `: ${tree.intervalText}` : ""}`);
}

function fillSummary() {
  for (const [name, text] of tree.summary) {
    one("#summary").append(element("dt", name), element("dd", text, name === "warning" ? { class: "warning" } : {}));
  }
  one("#amount").textContent = tree.unit === "ns" ? "Time" : tree.unit === "bytes" ? "Bytes" : "Amount";
  one("#colour").value = view.colour;
}

one("#widths").onclick = ({ target }) => {
  if (target.dataset.width) Object.assign(view, { width: target.dataset.width, zoom: -1 });
  draw();
};
one("#numbers").onclick = ({ target }) => {
  if (target.dataset.number) view.number = target.dataset.number;
  fillTable();
  search(one("#search").value);
};
one("#colour").onchange = ({ target }) => {
  view.colour = target.value;
  fillLegend();
  draw();
};
one("#search").oninput = ({ target }) => search(target.value);
graph.onclick = (event) => {
  const box = boxAt(event);
  if (box) zoom(box.node);
};
graph.onmousemove = showTooltip;
graph.onmouseleave = () => (tooltip.hidden = true);
graph.onscroll = draw;
document.onkeydown = (event) => {
  if (event.key === "/" && event.target.tagName !== "INPUT") {
    event.preventDefault();
    one("#search").focus();
  } else if (event.key === "Escape") {
    if (view.pattern) {
      one("#search").value = "";
      search("");
    } else zoom(-1);
  } else if (event.key === "Backspace" && event.target.tagName !== "INPUT" && view.zoom >= 0) {
    zoom(tree.parent[view.zoom]);
  }
};
darkTheme.onchange = () => {
  fillLegend();
  draw();
};
new ResizeObserver(draw).observe(graph);
fillSummary();
fillLegend();
fillTable();
draw();
document.documentElement.dataset.ready = "";

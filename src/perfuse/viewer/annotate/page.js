"use strict";
// The page of annotated machine code: a table of compilations, and one or two listings.

import { element, lifeText, numberText, Pane, sizeText } from "./listing.js";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const listings = new Map(data.listings.map((one) => [one.number, one]));
const compilations = new Map(data.compilations.map((one) => [one.number, one]));

const paneOptions = {
  data,
  showsSource: () => byId("source").checked,
  showsNames: () => byId("names").checked,
  onSelect() {
    byId("where").textContent = this.whereText;
  },
};
const first = new Pane(byId("first-pane"), paneOptions);
const second = new Pane(byId("second-pane"), paneOptions);
let active = first;
for (const pane of [first, second]) pane.root.addEventListener("focus", () => { active = pane; });

function drawCompilations() {
  const sampled = data.event !== null;
  const titles = [["#"], ["code", "text"], ["tier", "text"], ["from"], ["until"], ["size"], ["address"]];
  if (sampled) titles.push(["self"], ["total"]);
  const head = element("tr", "", null, ...titles.map(([title, name]) => element("th", name, title)));
  const table = element("table", "", null, element("thead", "", null, head));
  const body = element("tbody");
  for (const one of data.compilations) {
    const row = element("tr");
    row.dataset.number = one.number;
    const cells = [[one.number], [one.handle || "", "text"], [one.tier || one.kind, "text"]];
    cells.push([lifeText(one.create_ns, data.zero_ns)], [lifeText(one.retire_ns, data.zero_ns)], [sizeText(one.size_bytes)], [one.address]);
    if (sampled) cells.push([numberText(one.self_samples)], [numberText(one.total_samples)]);
    row.append(...cells.map(([text, name]) => element("td", name, text)));
    row.addEventListener("click", () => choose(one.number));
    body.append(row);
  }
  table.append(body);
  byId("compilations").append(table);
}

function choose(number) {
  for (const row of document.querySelectorAll("#compilations tr[data-number]")) {
    const isShown = Number(row.dataset.number) === number;
    row.setAttribute("aria-selected", isShown);
    if (isShown) row.scrollIntoView({ block: "nearest" });
  }
  first.show(number);
}

function neighbour(by) {
  const numbers = [...listings.keys()];
  const at = numbers.indexOf(first.number) + by;
  if (numbers[at] !== undefined) choose(numbers[at]);
}

function start() {
  const { event, selection } = data;
  const skid = event ? `${event.name}: ${event.skid}` : "no samples: machine code only";
  const selected = selection && `selected: ${numberText(selection.num_samples)} of ${numberText(selection.num_recorded)} samples, by ${selection.filter}`;
  byId("facts").textContent = [data.where, selected, skid].filter(Boolean).join(" · ");
  drawCompilations();
  const none = element("option", "", "nothing");
  none.value = "";
  byId("second").append(none);
  for (const number of listings.keys()) {
    const one = compilations.get(number);
    const option = element("option", "", `${number} ${one.tier || one.kind}`);
    option.value = number;
    byId("second").append(option);
  }
  byId("second").addEventListener("change", (change) => {
    const number = Number(change.target.value);
    second.root.hidden = !number;
    if (number) second.show(number);
  });
  for (const id of ["source", "names"]) {
    byId(id).addEventListener("change", () => {
      for (const pane of [first, second]) {
        if (!pane.listing) continue;
        const kept = pane.current;
        pane.render();
        pane.current = -1;
        pane.select(kept);
      }
    });
  }
  byId("hottest").addEventListener("click", () => active.hottest());
  byId("next").addEventListener("click", () => active.step(1));
  byId("previous").addEventListener("click", () => active.step(-1));
  byId("show-keys").addEventListener("click", () => byId("keys").showModal());
  choose(data.opened);
  first.root.focus({ preventScroll: true });
}

const KEYS = {
  h: () => active.hottest(),
  n: () => active.step(1),
  N: () => active.step(-1),
  j: () => active.select(active.current + 1),
  ArrowDown: () => active.select(active.current + 1),
  k: () => active.select(active.current - 1),
  ArrowUp: () => active.select(active.current - 1),
  Enter: () => active.follow(),
  Backspace: () => active.back(),
  "[": () => neighbour(-1),
  "]": () => neighbour(1),
  s: () => byId("source").click(),
  "?": () => byId("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  const isControl = event.target.closest("select, button, input");
  if (event.ctrlKey || event.altKey || event.metaKey || byId("keys").open) return;
  if (isControl && ["Enter", "ArrowDown", "ArrowUp"].includes(event.key)) return;
  const act = KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

start();

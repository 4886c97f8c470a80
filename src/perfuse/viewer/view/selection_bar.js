// What is selected: a chip for each part, which removes it, and the menus that add one.

import { lengthText, rangeText } from "../data/times.js";
import { visible } from "../flame/format.js";
import { askFilter, filterText } from "./filters.js";
import { h } from "../widgets/dom.js";

/** Shows the difference from the other recording, or no longer. */
export function compareRecordings(app) {
  if (app.hasBase) app.change(app.state.versus ? { versus: null } : { versus: "1", tab: "flame" });
}

/** The line below the tabs. */
export class SelectionBar {
  constructor(element, app) {
    Object.assign(this, { element, app });
    const { overview } = app;
    this.chips = h("span.chips", { role: "list" });
    const threads = overview.threads.map(({ thread, label, name, tid }) => [thread, visible(label ?? `${name} ${tid}`)]);
    this.thread = this.menu("Thread", "all threads", threads, "threads", Number);
    const processes = overview.processes.map(({ process, name, pid }) => [process, visible(`${name ?? "process"} ${pid}`)]);
    this.process = this.menu("Process", "all processes", processes, "processes", Number);
    this.tier = this.menu("Tier", "all tiers", (overview.tiers ?? []).map(({ name }) => [name, name]), "tier", String);
    this.event = this.menu("Event", null, overview.events.map(({ name }) => [name, name]), "event", String);
    this.filter = h("button", { id: "filter", title: "Filter stacks (F)", onclick: () => askFilter(app, app.view.chosenFunction?.function ?? "") }, "Filter…");
    this.filter.hidden = !app.available.some(({ filtered }) => filtered);
    if (overview.embedded) this.tier.hidden = true;
    const back = h("button.icon", { title: "Back ( [ )", "aria-label": "Back", onclick: () => history.back() }, "‹");
    const forward = h("button.icon", { title: "Forward ( ] )", "aria-label": "Forward", onclick: () => history.forward() }, "›");
    element.replaceChildren(back, forward, this.chips, h("span.room"), this.filter, this.process, this.thread, this.tier, this.event);
    element.hidden = false;
  }

  menu(label, all, entries, name, read) {
    const select = h("select", {
      "aria-label": label,
      onchange: ({ target }) => {
        const value = target.value === "" ? null : read(target.value);
        if (name === "tier") this.filterTier(value);
        else this.app.change({ [name]: value !== null && read === Number ? [value] : value });
      },
    });
    if (all) select.append(new Option(all, ""));
    select.append(...entries.map(([key, text]) => new Option(text, key)));
    select.hidden = entries.length < 2;
    return select;
  }

  show(state) {
    const { app } = this;
    const chips = [];
    const chip = (text, title, part, kind = "") => {
      const remove = h("button", { "aria-label": `Remove: ${text}`, title: "Remove", onclick: () => app.change(part) }, "✕");
      chips.push(h(`span.chip${kind}`, { role: "listitem", title }, text, remove));
    };
    if (state.range) chip(`${rangeText(state.range)} (${lengthText(state.range[1] - state.range[0])})`, "The selected time", { range: null });
    else if (!app.overview.selection) chips.push(h("span.chip.all", { role: "listitem" }, app.overview.span_ns ? `whole recording, ${lengthText(app.span)}` : "whole recording"));
    if (app.overview.selection) chips.unshift(h("span.chip.all", { role: "listitem", title: "The part that the page was opened for" }, `opened with ${app.overview.selection}`));
    const other = app.hasBase;
    if (other && state.versus) chip(`compared with ${app.baseNames}`, "The recording that differences are relative to", { versus: null }, ".base");
    else if (state.base) chip(`compared with ${rangeText(state.base)}`, "The time that differences are relative to", { base: null }, ".base");
    for (const key of state.threads ?? []) chip(`thread ${this.labelOf(key)}`, "", { threads: state.threads.filter((each) => each !== key) });
    for (const key of state.processes ?? []) chip(`process ${key}`, "", { processes: state.processes.filter((each) => each !== key) });
    const applies = app.current.filtered === true;
    for (const filter of state.filters ?? []) {
      const title = applies ? "A filter of stacks" : "Filters of stacks do not apply to this view";
      chip(filterText(filter), title, { filters: state.filters.filter((each) => each !== filter) }, applies ? ".filter" : ".filter.idle");
    }
    if (state.filters?.length && !applies) chips.push(h("span.chip.all", { role: "listitem" }, "filters do not apply here"));
    if (other && !state.versus) chips.push(h("button.compare", { title: `Compare with ${app.baseNames} (b)`, onclick: () => compareRecordings(app) }, "Compare with the other recording"));
    if (state.range && !state.base && !state.versus && !app.server.snap) {
      const compare = () => {
        app.change({ base: state.range, range: null });
        app.announce("Marked as the base of comparisons. Select another time.");
      };
      chips.push(h("button.compare", { title: "Compare another time with this one (m)", onclick: compare }, "Compare with it"));
    }
    this.chips.replaceChildren(...chips);
    this.thread.value = state.threads?.length === 1 ? state.threads[0] : "";
    this.process.value = state.processes?.length === 1 ? state.processes[0] : "";
    this.tier.value = (state.filters ?? []).findLast(([name]) => name === "tier")?.[1] ?? "";
    this.event.value = state.event ?? app.overview.events[0]?.name ?? "";
  }

  /** Replaces the filter of tiers. */
  filterTier(tier) {
    const others = (this.app.state.filters ?? []).filter(([name]) => name !== "tier");
    this.app.change({ filters: tier === null ? others : [...others, ["tier", tier]] });
  }

  labelOf(key) {
    const thread = this.app.overview.threads.find(({ thread }) => thread === key);
    return visible(thread?.label ?? String(key));
  }
}

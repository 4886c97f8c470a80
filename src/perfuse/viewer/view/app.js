// The viewer: its state, what is selected, and which view is in sight.

import { ENDED, isAbort } from "../data/server.js";
import { Trees } from "../data/trees.js";
import { fileName, visible } from "../flame/format.js";
import { h, note } from "../widgets/dom.js";
import { SaveMenu } from "../widgets/save.js";
import { readState, writeState } from "./address.js";
import { filterParameter } from "./filters.js";
import { SelectionBar } from "./selection_bar.js";

/** Changes of these are steps to go back over; others replace the last entry of the history. */
const STEPS = ["tab", "range", "base", "versus", "threads", "processes", "filters", "event", "snapshot", "object", "function", "handle", "compilation", "beside"];

/** How often the page asks whether the timeline is computed. */
const COMPUTING_MS = 140;

/** The application. Views get it, read `app.state`, and call `app.change`. */
export class App {
  constructor(server, overview, views) {
    Object.assign(this, { server, overview, views: new Map() });
    this.state = this.readable(readState());
    this.trees = new Trees(this);
    this.host = document.getElementById("view");
    this.known = views;
    this.data = 1;
    this.available = views.filter((view) => view.available?.(overview) ?? true);
    this.makeTabs();
    this.bar = new SelectionBar(document.getElementById("selection"), this);
    this.save = new SaveMenu(document.getElementById("save-box"), () => this.saved());
    addEventListener("popstate", () => this.adopt(this.readable(readState())));
    addEventListener("hashchange", () => this.adopt(this.readable(readState())));
    const title = visible(/^\/\S+$/.test(overview.title) ? fileName(overview.title) : overview.title);
    document.title = `${title} · perfuse`;
    document.getElementById("title").textContent = title;
    document.getElementById("title").title = overview.title;
    this.refresh();
  }

  get span() {
    return Math.max(1, this.overview.span_ns ?? 0);
  }

  /** The state as this page can show it: one without a server selects time in steps, and compares and filters nothing. */
  readable(state) {
    const { snap } = this.server;
    if (!snap) return state;
    const { base, versus, filters, event, ...rest } = state;
    return rest.range ? { ...rest, range: this.server.snap(rest.range) } : rest;
  }

  /** What is selected, as parameters of requests. `of` may replace parts of the state. */
  selection(of = {}) {
    const { range, threads, processes, filters, event, recording } = { ...this.state, ...of };
    // Another recording has other times and threads.
    if (recording) return { recording, event, filters: filterParameter(filters) };
    return {
      from: range ? Math.floor(range[0]) : undefined,
      // What ends with the recording contains its last moment.
      to: range && Math.ceil(range[1]) < this.span ? Math.ceil(range[1]) : undefined,
      threads: threads?.join(","),
      processes: processes?.join(","),
      event,
      filters: filterParameter(filters),
    };
  }

  /** Whether there is another recording to compare with. */
  get hasBase() {
    return Boolean(this.overview.base?.length);
  }

  /** Names of the files of the other recording. */
  get baseNames() {
    return this.overview.base.map((path) => visible(fileName(path))).join(", ");
  }

  /** What the selection is compared with, as a part of `selection`: another recording, or another time; else null. */
  get comparedWith() {
    const { versus, base } = this.state;
    if (versus && this.hasBase) return { recording: "base" };
    return base ? { range: base } : null;
  }

  /** What is selected, for answers about more than stacks: filters do not apply to them. */
  unfiltered(of = {}) {
    return this.selection({ ...of, filters: null });
  }

  /** A text that differs when the selection does. */
  selectionKey(of = {}) {
    return JSON.stringify(this.selection(of));
  }

  /** Changes part of the state and shows the result. */
  change(part, { push } = {}) {
    const before = this.state;
    // Another function has other code; a handle is more precise than a name.
    const isOther = "function" in part && !("handle" in part) && part.function !== before.function;
    this.state = { ...before, ...(isOther ? { handle: null, compilation: null, beside: null } : {}), ...part };
    for (const [name, value] of Object.entries(this.state)) if (value === null || value === undefined || value === "" || (name === "filters" && !value.length)) delete this.state[name];
    const step = STEPS.some((name) => JSON.stringify(before[name]) !== JSON.stringify(this.state[name]));
    this.state = this.readable(this.state);
    writeState(this.state, { push: push ?? step });
    this.refresh();
  }

  /** Changes parts of the state that a view already shows: only the address is written. */
  remember(part) {
    const state = { ...this.state, ...part };
    for (const [name, value] of Object.entries(state)) if (value === null || value === undefined || value === "") delete state[name];
    this.state = state;
    writeState(state, { push: false });
  }

  adopt(state) {
    if (JSON.stringify(state) === JSON.stringify(this.state)) return;
    this.state = state;
    this.refresh();
  }

  makeTabs() {
    const tabs = document.getElementById("tabs");
    this.tabs = this.available.map(({ id, label }, nth) => {
      const tab = h("button", { role: "tab", id: `tab-${id}`, "aria-controls": `view-${id}`, onclick: () => this.change({ tab: id }) }, label);
      tab.title = nth < 9 ? `${label} (${nth + 1})` : label;
      return tab;
    });
    tabs.replaceChildren(...this.tabs);
    tabs.onkeydown = (event) => {
      const at = this.tabs.indexOf(document.activeElement);
      const next = { ArrowRight: this.tabs[(at + 1) % this.tabs.length], ArrowLeft: this.tabs.at(at - 1), Home: this.tabs[0], End: this.tabs.at(-1) }[event.key];
      if (at < 0 || !next) return;
      event.preventDefault();
      event.stopPropagation();
      next.focus();
      next.click();
    };
  }

  get current() {
    return this.available.find(({ id }) => id === this.state.tab) ?? this.available[0];
  }

  /** The view in sight; made when it is first shown. */
  get view() {
    const { current } = this;
    let view = this.views.get(current.id);
    if (!view) {
      const host = h(`section.view.${current.id}`, { id: `view-${current.id}`, role: "tabpanel", "aria-labelledby": `tab-${current.id}` });
      this.host.append(host);
      view = current.make(this, host);
      view.host ??= host;
      this.views.set(current.id, view);
    }
    return view;
  }

  refresh() {
    const { view, current } = this;
    for (const [id, { host }] of this.views) host.hidden = id !== current.id;
    this.available.forEach(({ id }, nth) => {
      this.tabs[nth].ariaSelected = String(id === current.id);
      this.tabs[nth].tabIndex = id === current.id ? 0 : -1;
    });
    this.tabs[this.available.indexOf(current)].scrollIntoView({ block: "nearest", inline: "nearest" });
    this.bar.show(this.state);
    this.run(view, () => view.update(this.state));
  }

  /** Runs what a view does; a failure is shown in the view, and `busy` while it runs. */
  async run(view, act) {
    view.runs = (view.runs ?? 0) + 1;
    view.host.ariaBusy = "true";
    try {
      await act();
      view.failure?.remove();
    } catch (error) {
      if (error.code === ENDED) this.ended();
      if (!isAbort(error)) this.fail(view, error);
    }
    view.runs -= 1;
    if (!view.runs) view.host.ariaBusy = "false";
  }

  fail(view, error) {
    view.failure?.remove();
    view.failure = note(error.message, error.hint ?? "");
    view.failure.classList.add("failure");
    view.failure.role = "alert";
    view.host.prepend(view.failure);
    if (!error.code) console.error(error);
  }

  /** The tracks of the timeline, once its index is computed; `onWait` is called where that takes a while. */
  async timeline(onWait) {
    for (;;) {
      if (this.computed) return this.computed;
      const answer = await this.server.json("timeline");
      if (answer.state !== "computing" && answer.state !== "waiting") return (this.computed = answer);
      onWait?.();
      await new Promise((resolve) => setTimeout(resolve, COMPUTING_MS));
    }
  }

  /** Shows source and machine code of a function: its name, and its handle where that is known. */
  annotate(chosen) {
    if (this.available.some(({ id }) => id === "annotate")) this.change({ tab: "annotate", handle: null, ...chosen, compilation: null, beside: null });
  }

  /** A sentence for screen readers. */
  announce(text) {
    document.getElementById("announce").textContent = text;
  }

  /** News of the server: a file grew, and all answers are new; or the timeline's index is there. */
  async news(state) {
    this.showWatched(state);
    if (state.data === this.data) return;
    this.data = state.data;
    this.computed = null;
    const chosen = document.activeElement?.id;
    this.overview = await this.server.json("overview");
    for (const { host } of this.views.values()) host.remove();
    this.views.clear();
    this.trees = new Trees(this);
    this.available = this.known.filter((view) => view.available?.(this.overview) ?? true);
    this.makeTabs();
    this.bar = new SelectionBar(document.getElementById("selection"), this);
    this.refresh();
    document.getElementById(chosen)?.focus();
    this.announce("The files have changed: what is shown is new.");
  }

  /** States whether the files are watched, and whether what is shown is what they contain. */
  showWatched({ watched, stale, data }) {
    if (!watched) return;
    const text = stale ? `watched · not readable at the moment: ${visible(stale)}` : `watched · ${data === 1 ? "no change yet" : `${data - 1} ${data === 2 ? "change" : "changes"}`}`;
    document.getElementById("summary").textContent = text;
    document.documentElement.dataset.data = data;
  }

  /** The server ended. */
  ended() {
    if (document.querySelector(".ended")) return;
    document.getElementById("selection").before(h("p.ended", { role: "alert" }, "The server has ended. What is in sight stays; start `perfuse view` again for more."));
  }

  saved() {
    const { view, current } = this;
    const name = `${this.overview.title} ${current.label}`.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();
    return { name: name || "perfuse", ...(view.save?.() ?? {}) };
  }
}

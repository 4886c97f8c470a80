// The tab "Annotate": source lines and machine code of a function, with the samples of the selection.

import { fileName, visible } from "../flame/format.js";
import { functionState } from "../flame/symbols.js";
import { choice, h, note, toggles } from "../widgets/dom.js";
import { Grid } from "../widgets/grid.js";
import { lifeText, numberText, Pane, partText, sizeText } from "./listing.js";
import { listingCsv, listingTable } from "./listing_csv.js";
import { SourcePane } from "./source_pane.js";

const NUM_PICKED = 300;
const KEYS = [
  ["h", "the hottest instruction"], ["n N", "the next, the previous by samples"], ["j k", "the next, the previous instruction"],
  ["Enter", "follow a jump"], ["Backspace", "back to where it was followed from"], ["< >", "the previous, the next compilation"],
  ["s", "source lines between instructions"], ["/", "another function"],
];

/** Source and machine code of the chosen function. */
export class AnnotateView {
  constructor(app, host) {
    Object.assign(this, { app, host, keys: KEYS });
    this.search = h("input", {
      type: "search", placeholder: "Function ( / )", "aria-label": "Function: a name, a part of it, f12, c34 or an address", spellcheck: false, autocomplete: "off",
      onchange: ({ target }) => target.value && app.change({ function: null, handle: target.value, compilation: null, beside: null }),
    });
    this.picked = h("div.pick");
    this.title = h("div.bar.annotated");
    this.compilations = h("div.compilations-host");
    this.tools = h("div.bar");
    this.where = h("output.where");
    this.panes = h("div.annotated-panes");
    const pane = (label) => h("section.listing-pane", { tabIndex: 0, "aria-label": label });
    this.elements = { source: pane("Source"), first: pane("Machine code"), second: pane("Machine code of another compilation") };
    this.panes.append(...Object.values(this.elements));
    this.body = h("div.annotate-body", {}, this.title, this.compilations, this.tools, this.panes);
    host.replaceChildren(this.picked, this.body);
    const options = { showsSource: () => this.showsLines, showsNames: () => true };
    this.first = new Pane(this.elements.first, { ...options, onSelect: () => this.selected(this.first) });
    this.second = new Pane(this.elements.second, { ...options, onSelect: () => this.selected(this.second) });
    this.active = this.first;
    for (const each of [this.first, this.second]) each.root.addEventListener("focus", () => (this.active = each));
    this.source = new SourcePane(this.elements.source, (index) => this.first.select(index));
    this.list = new Grid(this.picked, {
      label: "Heaviest functions", empty: "No samples in this selection.",
      columns: [
        { key: "self", label: "Self", number: true, width: "4.6rem", share: (row) => row.self / this.whole, value: (row) => row.self, text: (row) => partText(row.self, this.whole) || "–" },
        { key: "name", label: "Function", text: (row) => visible(row.name ?? ""), full: (row) => visible([row.name, row.module].filter(Boolean).join("\n")) },
      ],
      onSelect: (row) => {
        const chosen = functionState(row);
        if (chosen.handle !== this.app.state.handle) app.change({ ...chosen, compilation: null, beside: null });
      },
    });
  }

  get showsLines() {
    const { between } = this.app.state;
    // Beside the whole source text the lines need not be repeated.
    return between === undefined ? this.shown !== "both" : between === "1";
  }

  get shown() {
    const { lines } = this.app.state;
    if (!this.data || !Object.keys(this.data.texts).length) return "code";
    // Two compilations side by side leave no room for the source text beside them.
    const usual = this.app.state.beside ? "code" : "both";
    return ["code", "source", "both"].includes(lines) ? lines : usual;
  }

  async update(state) {
    await this.fillList();
    const [data, other] = await Promise.all([this.ask(state.compilation, "annotate"), state.beside ? this.ask(state.beside, "beside") : null]);
    if (this.app.view !== this) return;
    if (data === this.data && other === this.other) return this.arrange();
    Object.assign(this, { data, other, command: data.command });
    if (data.choices) return this.choose(data);
    this.body.hidden = false;
    this.showHead();
    this.showCompilations();
    this.arrange();
    this.first.data = data;
    this.first.show(data.opened);
    this.second.data = other;
    if (other) this.second.show(other.opened);
  }

  async fillList() {
    const { app } = this;
    const key = JSON.stringify(app.unfiltered());
    if (key === this.listed || !app.overview.has.weights) return;
    const answer = await app.server.json("functions", { ...app.unfiltered(), limit: NUM_PICKED });
    Object.assign(this, { listed: key, whole: answer.whole });
    this.list.show(answer.rows, { total: answer.num });
  }

  /** The answer for a compilation; the same object where nothing changed. */
  async ask(compilation, name) {
    const { app } = this;
    const { handle, syntax } = app.state;
    const parameters = { ...app.unfiltered(), function: handle ?? app.state.function, compilation, syntax };
    const key = JSON.stringify(parameters);
    this.answers ??= {};
    if (this.answers[name]?.key !== key) {
      const answer = await app.server.json("annotate", parameters, { latest: name });
      this.answers[name] = { key, answer };
    }
    return this.answers[name].answer;
  }

  /** Shows that several functions are meant, or none that has code. */
  choose({ choices, message, hint }) {
    const item = ({ handle, name, where, kind }) => h("li", {}, h("button.link", { onclick: () => this.app.change({ handle, compilation: null, beside: null }) }, visible(name)), " ", h("small", {}, visible([handle, where, kind].filter(Boolean).join(" · "))));
    const what = choices.length ? h("ul.plain", { "aria-label": "Functions of that name" }, choices.map(item)) : note(visible(message), visible(hint ?? ""));
    this.title.replaceChildren(h("h2", {}, choices.length ? visible(message) : "No machine code"), h("span.room"), this.search, what);
    this.where.textContent = "";
    this.compilations.hidden = true;
    this.tools.replaceChildren();
    for (const element of Object.values(this.elements)) element.hidden = true;
  }

  showHead() {
    const { function: named, event, where } = this.data;
    const own = this.data.compilations.reduce((sum, one) => sum + one.self_samples, 0);
    const samples = event ? `${numberText(own)} of ${numberText(event.num_samples)} samples of ${event.name} in it (${partText(own, event.num_samples)})` : "no samples in this selection: machine code only";
    const callers = h("button", { title: "Callers and callees of the function", onclick: () => this.app.change({ tab: "callers", function: named.name, handle: named.handle }) }, "Callers");
    this.title.replaceChildren(h("h2", { title: named.name }, visible(named.name)), h("span.where", { title: named.path ?? named.module ?? "" }, visible([where, samples].filter(Boolean).join(" · "))), h("span.room"), callers, this.search);
    if (event) this.title.append(h("p.where.skid", {}, event.skid));
    const at = this.list.rows.findIndex((row) => row.name === named.name);
    if (at >= 0 && this.list.selected !== at) {
      this.list.selected = at;
      this.list.render();
    }
  }

  showCompilations() {
    const { data } = this;
    const sampled = data.event !== null;
    const number = (key, label, text, width = "5.5rem") => ({ key, label, number: true, sort: true, width, value: (one) => one[key], text });
    const columns = [
      number("number", "#", (one) => String(one.number), "3rem"),
      { key: "handle", label: "Code", width: "6rem", text: (one) => one.handle ?? "" },
      { key: "tier", label: "Tier", width: "9rem", text: (one) => one.tier ?? one.kind },
      number("create_ns", "From", (one) => lifeText(one.create_ns, data.zero_ns)), number("retire_ns", "Until", (one) => lifeText(one.retire_ns, data.zero_ns)),
      number("size_bytes", "Size", (one) => sizeText(one.size_bytes)), { key: "address", label: "Address", number: true, width: "9rem", text: (one) => one.address },
      ...(sampled ? [number("self_samples", "Self", (one) => numberText(one.self_samples)), number("total_samples", "Total", (one) => numberText(one.total_samples))] : []),
    ];
    const show = (one) => one.number !== data.opened && this.app.change({ compilation: String(one.number), handle: data.function.handle });
    this.compilations.hidden = data.compilations.length < 2;
    this.grid = new Grid(this.compilations, { label: "Compilations", columns, onSelect: show });
    const left = data.num_compilations - data.compilations.length;
    this.grid.show(data.compilations, { total: data.num_compilations, foot: left ? `the ${numberText(data.compilations.length)} with most samples of ${numberText(data.num_compilations)}` : "" });
    this.grid.selected = this.grid.rows.findIndex((one) => one.number === data.opened);
    this.grid.render();
    this.compilations.style.height = `${Math.min(7, data.compilations.length + 1) * 24 + 10}px`;
  }

  /** Shows the panes that are wanted, and the controls. */
  arrange() {
    const { app, data, shown } = this;
    if (data.choices) return;
    const change = (part) => app.change(part, { push: false });
    const hasTexts = Object.keys(data.texts).length > 0;
    const parts = [["both", "Source and code"], ["source", "Source"], ["code", "Machine code"]];
    const others = data.compilations.filter((one) => one.number !== data.opened).slice(0, 50);
    const beside = [["", "nothing"], ...others.map((one) => [String(one.number), `${one.number} ${one.tier ?? one.kind}`])];
    const isX86 = data.compilations.some((one) => one.instruction_set.startsWith("x86"));
    this.tools.replaceChildren(
      hasTexts ? toggles("What is shown", parts, shown, (lines) => change({ lines: lines === "both" && !app.state.beside ? null : lines })) : h("span.where", { title: "--source-dir DIR names the directory with the source files" }, this.sourceNote()),
      h("label", {}, h("input", { type: "checkbox", id: "between", checked: this.showsLines, onchange: ({ target }) => change({ between: target.checked ? "1" : "0" }) }), " lines between instructions"),
      others.length ? choice("Beside it", beside, app.state.beside ?? "", (value) => app.change({ beside: value || null, handle: data.function.handle })) : "",
      isX86 ? choice("Syntax", [["att", "AT&T"], ["intel", "Intel"]], app.state.syntax ?? "att", (syntax) => change({ syntax: syntax === "att" ? null : syntax })) : "",
      h("button", { title: "The hottest instruction (h)", onclick: () => this.active.hottest() }, "Hottest"), this.where,
    );
    const key = JSON.stringify([shown, this.showsLines]);
    this.elements.source.hidden = shown === "code";
    this.elements.first.hidden = shown === "source";
    this.elements.second.hidden = !this.other || shown === "source";
    this.source.show(data);
    if (this.arranged !== key && this.first.listing && this.first.data === data) {
      for (const pane of [this.first, this.second]) {
        if (!pane.listing) continue;
        const { current } = pane;
        pane.render();
        pane.select(current);
      }
    }
    this.arranged = key;
  }

  sourceNote() {
    const paths = new Set(this.data.listings.flatMap(({ instructions }) => instructions.map(({ path }) => path)).filter(Boolean));
    const [first] = paths;
    return first ? `source text of ${visible(fileName(first))} was not found` : "the code has no source lines";
  }

  selected(pane) {
    this.where.textContent = pane.whereText;
    if (pane === this.first) this.source.mark(pane.listing.instructions[pane.current]);
  }

  neighbour(by) {
    const rows = this.data.compilations;
    const next = rows[rows.findIndex((one) => one.number === this.data.opened) + by];
    if (next) this.app.change({ compilation: String(next.number), handle: this.data.function.handle });
  }

  key(event) {
    const pane = this.active;
    if (event.key === "/") {
      this.search.focus();
      return true;
    }
    if (!this.data || this.data.choices || event.target.closest("button, .pick, .compilations-host")) return false;
    const isListed = event.target.closest(".listing-pane");
    const actions = {
      h: () => pane.hottest(), n: () => pane.step(1), N: () => pane.step(-1), j: () => pane.select(pane.current + 1), k: () => pane.select(pane.current - 1),
      Enter: () => pane.follow(), Backspace: () => pane.back(), "<": () => this.neighbour(-1), ">": () => this.neighbour(1),
      s: () => document.getElementById("between").click(),
      ...(isListed ? { ArrowDown: () => pane.select(pane.current + 1), ArrowUp: () => pane.select(pane.current - 1) } : {}),
    };
    const act = actions[event.key];
    if (!act) return false;
    act();
    return true;
  }

  save() {
    if (!this.first.listing || this.data.choices) return {};
    return { table: listingTable(this.data, this.first.listing), csv: () => listingCsv(this.data, this.first.listing), command: this.command, note: this.data?.command_note };
  }
}

/** A button that shows the machine code of a function, for other views. */
export function annotateButton(app, chosen) {
  return h("button", { title: "Source and machine code (l)", onclick: () => app.annotate(chosen) }, "Machine code");
}

/** Whether the recording has code that can be shown. */
export function hasCode({ has }) {
  return has.machine_code;
}

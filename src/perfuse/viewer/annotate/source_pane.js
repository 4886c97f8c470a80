// The source text of a function with the samples of each line.

import { fileName, visible } from "../flame/format.js";
import { h } from "../widgets/dom.js";
import { element, numberText, partText } from "./listing.js";

/** Source lines beside the machine code: `choose(index)` gets the instruction of a line that was clicked. */
export class SourcePane {
  constructor(root, choose) {
    Object.assign(this, { root, choose });
    root.addEventListener("click", ({ target }) => this.clicked(target.closest(".one")));
    root.addEventListener("keydown", (event) => this.key(event));
  }

  /** Shows the source of a listing: the file with most of its samples first. */
  show(data) {
    if (this.data === data) return;
    this.data = data;
    const [listing] = data.listings;
    this.byLine = new Map();
    const ofFile = new Map();
    listing.instructions.forEach((one, index) => {
      if (!one.path || !one.line) return;
      const key = `${one.path}\0${one.line}`;
      const line = this.byLine.get(key) ?? { weight: 0, samples: 0, instructions: [] };
      line.weight += one.self_weight;
      line.samples += one.self_samples;
      line.instructions.push(index);
      this.byLine.set(key, line);
      ofFile.set(one.path, (ofFile.get(one.path) ?? 0) + one.self_weight);
    });
    const paths = Object.keys(data.texts).sort((a, b) => (ofFile.get(b) ?? 0) - (ofFile.get(a) ?? 0));
    this.paths = paths;
    this.showFile(paths.includes(data.function.path) && !ofFile.get(paths[0]) ? data.function.path : paths[0]);
  }

  showFile(path) {
    this.path = path;
    this.rows = new Map();
    if (!path) return this.root.replaceChildren();
    const { data, byLine } = this;
    const { first, lines, origin, is_cut: isCut } = data.texts[path];
    const whole = data.compilations.find(({ number }) => number === data.opened).self_weight;
    const sampled = data.event !== null;
    const most = Math.max(1, ...[...byLine.values()].map(({ weight }) => weight));
    const table = element("div", "listing");
    table.setAttribute("role", "table");
    table.ariaLabel = "Source lines";
    const files = this.paths.length > 1 ? this.fileChoice() : visible(fileName(path));
    const head = h("div.head", { role: "row" }, sampled ? [h("span.share", { role: "columnheader" }, "share"), h("span.count", { role: "columnheader" }, "self")] : [], h("span.offset", { role: "columnheader" }, "line"), h("span.code", { role: "columnheader", title: visible(origin === "recording" ? `${path}, text in the recording` : origin) }, files));
    table.append(head);
    lines.forEach((text, nth) => {
      const number = first + nth;
      const line = byLine.get(`${path}\0${number}`);
      const row = h(`div.${line ? "one" : "from"}${line?.samples ? ".hot" : ""}`, { role: "row" });
      if (sampled) {
        const share = h("span.share", { role: "cell" });
        if (line?.samples) {
          const bar = element("i");
          bar.style.width = `${(100 * line.weight) / most}%`;
          share.append(bar, h("span", {}, partText(line.weight, whole)));
        }
        row.append(share, h("span.count", { role: "cell" }, line?.samples ? numberText(line.samples) : ""));
      }
      row.append(h("span.offset", { role: "cell" }, String(number)), h("span.code", { role: "cell" }, visible(text.replaceAll("\t", "    "))));
      row.dataset.line = number;
      this.rows.set(number, row);
      table.append(row);
    });
    if (isCut) table.append(h("div.from", { role: "row" }, h("span.note", { role: "cell" }, "… the file has more lines of this code")));
    this.root.replaceChildren(table);
  }

  fileChoice() {
    const select = h("select", { "aria-label": "Source file", onchange: ({ target }) => this.showFile(target.value) });
    select.append(...this.paths.map((path) => new Option(visible(fileName(path)), path)));
    select.value = this.path;
    return select;
  }

  /** Marks the line of an instruction, and brings it into sight. */
  mark(instruction) {
    this.marked?.removeAttribute("aria-current");
    if (!instruction?.path || !this.data) return;
    if (instruction.path !== this.path && this.data.texts[instruction.path]) this.showFile(instruction.path);
    this.marked = instruction.path === this.path ? this.rows.get(instruction.line) : null;
    this.marked?.setAttribute("aria-current", "true");
    if (!this.marked) return;
    const { offsetTop: top } = this.marked;
    const { scrollTop, clientHeight } = this.root;
    if (top < scrollTop + 40 || top + 40 > scrollTop + clientHeight) this.root.scrollTop = top - clientHeight / 2;
  }

  /** Selects the heaviest instruction of a line. */
  clicked(row) {
    const line = row && this.byLine.get(`${this.path}\0${row.dataset.line}`);
    if (!line) return;
    const [{ instructions }] = this.data.listings;
    this.choose(line.instructions.reduce((best, index) => (instructions[index].self_weight > instructions[best].self_weight ? index : best)));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.closest("select")) return;
    event.preventDefault();
    event.stopPropagation();
    const lines = [...this.rows.values()].filter((row) => row.classList.contains("one"));
    const at = lines.indexOf(this.marked);
    this.clicked(lines[at < 0 ? 0 : Math.min(Math.max(at + step, 0), lines.length - 1)]);
  }
}

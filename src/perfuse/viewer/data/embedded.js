// The data of a page without a server, with the functions of the server: answers are computed here.

import { readContainer } from "./container.js";
import { boxesOfTiles, Slices } from "./embedded_slices.js";
import { functionRows, prunedTree, selectedWeights, threadRows } from "./embedded_trees.js";
import { commandOfTime } from "./times.js";

/** An answer that a page of one file does not have. */
class Absent extends Error {
  constructor(path) {
    super(`This page does not have ${path}.`);
    Object.assign(this, { code: "not_recorded", hint: "perfuse view shows it." });
  }
}

/** Answers from the data in the page. */
export class Embedded {
  constructor(tree, answers, slices, steps) {
    Object.assign(this, { tree, answers });
    this.slices = new Slices(readContainer(slices).columns, answers);
    this.steps = readContainer(steps).columns;
    const length = new DataView(tree).getUint32(0, true);
    this.head = JSON.parse(new TextDecoder().decode(new Uint8Array(tree, 4, length)));
    this.nodesAt = 4 + length + ((8 - ((4 + length) % 8)) % 8);
  }

  get span() {
    return Math.max(1, this.answers.overview.span_ns ?? 0);
  }

  get numSteps() {
    return this.answers.overview.embedded.steps;
  }

  /** The start of a step. */
  edge(step) {
    return Math.floor(((this.span + 1) * step) / this.numSteps);
  }

  /** Steps of a time: the first, and the one after the last. */
  stepsOf([from, to]) {
    const { numSteps } = this;
    let first = Math.min(numSteps - 1, Math.floor((from / (this.span + 1)) * numSteps));
    while (first > 0 && this.edge(first) > from) first -= 1;
    while (first + 1 < numSteps && this.edge(first + 1) <= from) first += 1;
    let end = Math.max(first + 1, Math.ceil((to / (this.span + 1)) * numSteps));
    while (end < numSteps && this.edge(end) < to) end += 1;
    return [first, Math.min(end, numSteps)];
  }

  /** A time as this page can select it: whole steps. */
  snap(range) {
    if (!range) return range;
    const [first, end] = this.stepsOf(range);
    return [this.edge(first), Math.min(this.edge(end), this.span)];
  }

  async json(path, parameters = {}) {
    const asked = parameters ?? {};
    if (path === "functions") return this.functions(asked);
    if (path === "slice") return this.slices.slice(asked);
    if (path === "neighbour") return this.slices.neighbour(asked);
    const found = this.answers[path];
    if (!found) throw new Absent(path);
    return found;
  }

  async columns(path, parameters) {
    if (path === "tiles") return boxesOfTiles(this.slices, parameters);
    if (path === "activity") return this.activity();
    throw new Absent(path);
  }

  async bytes(path, parameters = {}) {
    if (path !== "tree") throw new Absent(path);
    const { from, to, threads, processes } = parameters;
    const weights = this.weights(parameters);
    const isOfAll = threads === undefined && processes === undefined;
    const command = isOfAll && this.head.command ? commandOfTime(this.head.command, [from, to], this.answers.overview) : null;
    return prunedTree(this.tree, this.nodesAt, { ...this.head, command }, weights);
  }

  weights({ from, to, threads, processes }) {
    const whole = from === undefined && to === undefined;
    const steps = whole ? null : this.stepsOf([from ?? 0, to ?? this.span]);
    return selectedWeights(this.tree, this.nodesAt, this.steps, { steps, threads: this.threadKeys(threads, processes) });
  }

  threadKeys(threads, processes) {
    if (threads === undefined && processes === undefined) return null;
    const given = threads === undefined ? null : new Set(threads.split(",").map(Number));
    const of = processes === undefined ? null : new Set(processes.split(",").map(Number));
    const rows = this.answers.overview.threads.filter(({ thread, process }) => (!given || given.has(thread)) && (!of || of.has(process)));
    return new Set(rows.map(({ thread }) => thread));
  }

  functions({ q, sort = "self", order = "desc", offset = 0, limit = 100, ...selection }) {
    const weights = this.weights(selection);
    const { rows, whole, samples } = functionRows(this.tree, this.nodesAt, this.head, weights);
    const text = q?.toLowerCase();
    const matching = text ? rows.filter(({ name }) => name.toLowerCase().includes(text)) : rows;
    const sign = order === "asc" ? 1 : -1;
    const value = (row) => row[sort] ?? 0;
    matching.sort((a, b) => (sort === "name" ? sign * a.name.localeCompare(b.name, "en") : sign * (value(a) - value(b))));
    const { event, unit } = this.head;
    return { num: matching.length, rows: matching.slice(offset, offset + limit), whole, unit, event, samples, empty: !whole, threads: threadRows(this.tree, this.nodesAt, weights), command: null };
  }

  /** Weight by origin of the code, in the steps of the time. */
  activity() {
    const { numSteps, head: { symbols }, steps } = this;
    const { texts, ids } = symbols.origin;
    const num = Math.floor((this.tree.byteLength - this.nodesAt) / 24);
    const symbol = new Uint32Array(this.tree, this.nodesAt + 4 * num, num);
    const cells = new Float64Array(texts.length * numSteps);
    steps.node.forEach((node, at) => {
      const origin = ids[symbol[node]];
      if (origin >= 0) cells[origin * numSteps + steps.step[at]] += steps.weight[at];
    });
    return { labels: texts, buckets: numSteps, columns: { cells } };
  }
}

// The data of the page: what the exporter packed, as typed arrays.

import { countText, weightText } from "./format.js";
import { formsOf, functionState, readSymbols } from "./symbols.js";

/** Unpacks base64 of deflated bytes. */
export async function unpack(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Profile(await new Response(stream).arrayBuffer());
}

/** A call tree in preorder, each thread with roots of its own, and what its nodes are called. */
export class Profile {
  constructor(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
    Object.assign(this, JSON.parse(text));
    this.readNodes(buffer, 4 + length + ((8 - ((4 + length) % 8)) % 8));
    this.readSymbols();
  }

  /** A weight as text, with the number of samples before or after it; sums over calls have no samples. */
  amount(weight, samples, { countLast = false } = {}) {
    const parts = [weightText(weight, this.unit)];
    if (this.counted) parts[countLast ? "push" : "unshift"](countText(samples, "sample"));
    return parts.join(" · ");
  }

  readNodes(buffer, start) {
    const num = Math.floor((buffer.byteLength - start) / 24);
    const column = (nth) => new Uint32Array(buffer, start + 4 * num * nth, num);
    const distance = column(0);
    this.numNodes = num;
    this.parent = new Int32Array(num);
    for (let node = 0; node < num; node++) this.parent[node] = distance[node] ? node - distance[node] : -1;
    this.symbol = column(1);
    this.thread = column(2);
    this.selfSamples = column(3);
    this.selfWeight = new Float64Array(buffer, start + 16 * num + ((16 * num) % 8), num);
    // What lies below a node follows it: a node's last descendant ends its range.
    this.end = new Uint32Array(num);
    this.totalWeight = Float64Array.from(this.selfWeight);
    this.totalSamples = Float64Array.from(this.selfSamples);
    for (let node = num - 1; node >= 0; node--) {
      this.end[node] = Math.max(this.end[node], node + 1);
      const parent = this.parent[node];
      if (parent < 0) continue;
      this.totalWeight[parent] += this.totalWeight[node];
      this.totalSamples[parent] += this.totalSamples[node];
      this.end[parent] = Math.max(this.end[parent], this.end[node]);
    }
  }

  readSymbols() {
    Object.assign(this, readSymbols(this.symbols, this.origins));
    delete this.symbols;
  }

  /** A symbol's name and its shorter forms, the longest first: without arguments, then without qualifiers. */
  namesOf(symbol) {
    return formsOf(this.names[symbol], this.shortNames[symbol]);
  }

  /** Path and line of a symbol's source; undefined where unknown. */
  place(symbol) {
    const path = this.path[symbol];
    return path && (this.line[symbol] ? `${path}:${this.line[symbol]}` : path);
  }

  /** The function of a symbol for the state of a page. */
  functionState(symbol) {
    return functionState({ name: this.names[symbol], function: this.functionOf[symbol] });
  }

  /** The group of symbols of a function that a handle means; undefined where the profile has none. */
  groupOf(handle) {
    const symbol = this.functionOf.findIndex((key) => key !== null && `f${key}` === handle);
    return symbol < 0 ? undefined : this.group[symbol];
  }

  /** A function of its symbols that returns those of another profile of the same files, which may have grown; -1 for none. */
  symbolsIn(other) {
    const identity = (profile, symbol) => JSON.stringify([profile.names[symbol], profile.module[symbol], profile.place(symbol), profile.tier[symbol]]);
    const isSame = (name, symbol) => name === other.names[symbol] && this.group[symbol] === other.group[symbol];
    if (this.names.length === other.names.length && this.names.every(isSame)) return (symbol) => symbol;
    const found = new Map(other.names.map((_, symbol) => [identity(other, symbol), symbol]));
    return (symbol) => found.get(identity(this, symbol)) ?? -1;
  }

  /** Whether a node belongs to the selected thread; null selects all threads. */
  inThread(node, thread) {
    return thread === null || this.thread[node] === thread;
  }
}

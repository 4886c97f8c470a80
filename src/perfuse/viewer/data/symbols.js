// Names of the boxes of the timeline, loaded once.

import { formsOf, readSymbols } from "../flame/symbols.js";

const PAGE = 50_000;

/** Functions by the numbers that tiles have. */
export class Symbols {
  constructor(server, overview) {
    Object.assign(this, { server, overview, origins: overview.origins, shades: overview.shades });
    Object.assign(this, { names: [], shortNames: [], tier: [], path: [], line: [], module: [], originOf: [], shadeOf: [] });
  }

  /** Loads all symbols; a second call loads those that were added since. */
  async load() {
    let { length } = this.names;
    let num = Infinity;
    while (length < num) {
      const answer = await this.server.json("symbols", { first: length, limit: PAGE });
      num = answer.num_symbols;
      const read = readSymbols(answer.symbols, this.origins);
      for (const column of ["names", "shortNames", "tier", "path", "line", "module", "originOf", "shadeOf"]) {
        for (const value of read[column]) this[column].push(value);
      }
      if (this.names.length === length) break;
      ({ length } = this.names);
    }
  }

  forms(symbol) {
    return symbol < this.names.length ? formsOf(this.names[symbol], this.shortNames[symbol]) : ["…"];
  }

  name(symbol) {
    return this.names[symbol] ?? "…";
  }

  place(symbol) {
    const path = this.path[symbol];
    return path && (this.line[symbol] ? `${path}:${this.line[symbol]}` : path);
  }
}

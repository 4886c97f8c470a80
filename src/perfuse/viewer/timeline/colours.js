// Colours of the timeline as pixels: the fill of each symbol over the page, at any opacity.

import { commonOrigin, nameHash } from "../flame/symbols.js";

const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const LEVELS = 16;
/** Origins whose colours say that something is not known, or is no code. */
const NOT_FOR_NAMES = new Set(["unknown", "type"]);

/** Red, green and blue of a CSS colour. */
export function rgb(colour) {
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

/** The fills of symbols: by origin, or by name where all calls are of one origin. */
export class Colours {
  constructor(palette, symbols) {
    Object.assign(this, { palette, symbols });
    this.update();
  }

  update() {
    const { originOf, overview } = this.symbols;
    this.byName = Boolean(overview?.has.calls) && commonOrigin(originOf) !== null;
    this.named = this.symbols.origins.flatMap(({ name }, origin) => (NOT_FOR_NAMES.has(name) ? [] : [this.palette.ofOrigin(origin)]));
    this.mixed = new Map();
    this.pageRgb = rgb(this.palette.page);
  }

  of(symbol) {
    if (symbol >= this.symbols.names.length) return this.palette.dimmed;
    return this.byName ? this.ofName(this.symbols.names[symbol]) : this.palette.of(symbol);
  }

  /** A colour that depends on a name alone. */
  ofName(name) {
    return this.named[nameHash(name ?? "") % this.named.length];
  }

  /** The colour of a thread on a processor, or of the state of a thread: one that sleeps is not conspicuous. */
  ofLabel(name) {
    return name === "sleeping" ? this.palette.dimmed : this.ofName(name);
  }

  /** The pixel of a colour at an opacity between 0 and 1, in the order of an ImageData. */
  pixel(colour, opacity = 1) {
    let levels = this.mixed.get(colour);
    if (!levels) {
      const full = rgb(colour);
      levels = Uint32Array.from({ length: LEVELS + 1 }, (_, level) => {
        // A box that is hardly there is still seen.
        const share = 0.22 + (0.78 * level) / LEVELS;
        const [r, g, b] = full.map((part, at) => Math.round(this.pageRgb[at] + (part - this.pageRgb[at]) * share));
        return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
      });
      this.mixed.set(colour, levels);
    }
    return levels[Math.round(Math.min(1, Math.max(0, opacity)) * LEVELS)];
  }
}

// Colours: an origin has one in each theme, a name a shade of it.

import { commonOrigin, nameHash } from "./symbols.js";

/** What is added to lightness and hue where names alone differ; text stays readable, as lightness only goes away from it. */
const VARIANTS = [[0, 0], [0.06, 14], [0.12, -18], [0.02, 34], [0.09, -40], [0.14, 6], [0.05, -24], [0.11, 44]];

const dark = matchMedia("(prefers-color-scheme: dark)");

/** The colours of boxes and what is drawn on them, in the theme of the page. */
export class Palette {
  constructor(profile) {
    this.profile = profile;
    this.printing = false;
    this.update();
  }

  /** Calls back when the theme changes. */
  onChange(callback) {
    dark.addEventListener("change", () => (this.update(), callback()));
    for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
      addEventListener(event, () => ((this.printing = printing), this.update(), callback()));
    }
  }

  update() {
    const isDark = dark.matches && !this.printing;
    this.isDark = isDark;
    this.uniformOf = undefined;
    const { origins, shades } = this.profile;
    this.fills = origins.map(({ light, dark: onDark }) => {
      const [l, chroma, hue] = isDark ? onDark : light;
      return shades.map((shade) => `oklch(${l + shade} ${chroma} ${hue})`);
    });
    this.quiet = isDark ? "oklch(0.7 0.01 260)" : "oklch(0.5 0.015 260)";
    this.edge = isDark ? "oklch(0.32 0.01 260)" : "oklch(0.9 0.005 260)";
    this.accent = isDark ? "oklch(0.76 0.11 250)" : "oklch(0.52 0.15 255)";
    this.base = isDark ? "oklch(0.76 0.13 60)" : "oklch(0.6 0.15 50)";
    this.raised = isDark ? "oklch(0.235 0.008 260)" : "oklch(0.975 0.003 260)";
    this.dimmed = isDark ? "oklch(0.3 0.005 260)" : "oklch(0.935 0.004 260)";
    this.text = isDark ? "oklch(0.97 0 0)" : "oklch(0.2 0.01 260)";
    this.faint = isDark ? "oklch(0.68 0 0)" : "oklch(0.55 0.01 260)";
    this.match = isDark ? "oklch(0.55 0.19 330)" : "oklch(0.76 0.17 330)";
    this.line = isDark ? "oklch(0.98 0 0)" : "oklch(0.15 0 0)";
    this.page = isDark ? "oklch(0.19 0.006 260)" : "oklch(1 0 0)";
  }

  /** The fill of a symbol. */
  of(symbol) {
    const { originOf, shadeOf, names } = this.profile;
    if (this.isUniform) return this.variants[nameHash(names[symbol]) % this.variants.length];
    return this.fills[originOf[symbol]][shadeOf[symbol]];
  }

  /** Whether nearly all symbols have one origin: names then have shades that differ more. */
  get isUniform() {
    const { originOf } = this.profile;
    if (this.uniformOf === originOf) return this.variants !== null;
    this.uniformOf = originOf;
    this.variants = null;
    const origin = commonOrigin(originOf);
    if (origin === null) return false;
    const { light, dark: onDark } = this.profile.origins[origin];
    const [l, chroma, hue] = this.isDark ? onDark : light;
    this.variants = VARIANTS.map(([lighter, turn]) => `oklch(${l + (this.isDark ? -lighter : lighter)} ${chroma} ${hue + turn})`);
    return true;
  }

  /** The colour of an origin in legends. */
  ofOrigin(origin) {
    return this.fills[origin][1];
  }
}

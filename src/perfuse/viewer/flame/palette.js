// Colours: an origin has a hue, a name a shade of it, the theme the lightness.

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
    const { origins, lightness } = this.profile;
    const shades = isDark ? lightness.dark : lightness.light;
    this.fills = origins.map(({ chroma, hue }) => shades.map((l) => `oklch(${l} ${chroma} ${hue})`));
    this.dimmed = isDark ? "oklch(0.3 0.005 260)" : "oklch(0.935 0.004 260)";
    this.text = isDark ? "oklch(0.97 0 0)" : "oklch(0.2 0.01 260)";
    this.faint = isDark ? "oklch(0.68 0 0)" : "oklch(0.55 0.01 260)";
    this.match = isDark ? "oklch(0.55 0.19 330)" : "oklch(0.76 0.17 330)";
    this.line = isDark ? "oklch(0.98 0 0)" : "oklch(0.15 0 0)";
    this.page = isDark ? "oklch(0.19 0.006 260)" : "oklch(1 0 0)";
  }

  /** The fill of a symbol. */
  of(symbol) {
    const { originOf, shadeOf } = this.profile;
    return this.fills[originOf[symbol]][shadeOf[symbol]];
  }

  /** The colour of an origin in legends. */
  ofOrigin(origin) {
    return this.fills[origin][1];
  }
}

// The part of a canvas's context that the views draw with, as SVG: one drawing gives both pictures.

const measure = document.createElement("canvas").getContext("2d");
const NAMES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
// Controls that XML 1.0 does not allow.
const REFUSED = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/** Collects shapes; `toString()` is the document. */
export class SvgContext {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], state: [], path: "", dash: [] });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
    this.clips = 0;
    this.open = 0;
  }

  save() {
    this.state.push([this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.font, this.textAlign, this.textBaseline, this.open]);
    this.open = 0;
  }

  restore() {
    this.parts.push("</g>".repeat(this.open));
    [this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.font, this.textAlign, this.textBaseline, this.open] = this.state.pop();
  }

  setTransform() {}

  setLineDash(dash) {
    this.dash = dash;
  }

  measureText(text) {
    measure.font = this.font;
    return measure.measureText(text);
  }

  fillRect(x, y, width, height) {
    this.shape(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${this.fillStyle}"`);
  }

  strokeRect(x, y, width, height) {
    this.shape(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="none" ${this.stroked}`);
  }

  fillText(text, x, y) {
    if (!text) return;
    const anchor = { center: "middle", right: "end" }[this.textAlign];
    const base = { middle: "central", top: "hanging" }[this.textBaseline];
    const style = `style="font:${this.font.replaceAll('"', "'")}"`;
    const place = `x="${round(x)}" y="${round(y)}" fill="${this.fillStyle}"`;
    const words = text.replace(REFUSED, "\ufffd").replace(/[&<>"]/g, (letter) => NAMES[letter]);
    this.parts.push(`<text ${place} ${style}${anchor ? ` text-anchor="${anchor}"` : ""}${base ? ` dominant-baseline="${base}"` : ""}${this.faded}>${words}</text>`);
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${round(x)} ${round(y)}`;
  }

  lineTo(x, y) {
    this.path += `L${round(x)} ${round(y)}`;
  }

  closePath() {
    this.path += "Z";
  }

  rect(x, y, width, height) {
    this.path += `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}Z`;
  }

  clip() {
    this.clips += 1;
    this.open += 1;
    this.parts.push(`<clipPath id="clip${this.clips}"><path d="${this.path}"/></clipPath><g clip-path="url(#clip${this.clips})">`);
  }

  fill() {
    this.shape(`<path d="${this.path}" fill="${this.fillStyle}"`);
  }

  stroke() {
    this.shape(`<path d="${this.path}" fill="none" ${this.stroked}`);
  }

  get stroked() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}`;
  }

  get faded() {
    return this.globalAlpha < 1 ? ` opacity="${round(this.globalAlpha)}"` : "";
  }

  shape(start) {
    this.parts.push(`${start}${this.faded}/>`);
  }

  toString() {
    const { width, height } = this;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${this.parts.join("")}</svg>\n`;
  }
}

function round(value) {
  return Number(value.toFixed(2));
}

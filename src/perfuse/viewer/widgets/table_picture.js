// A table as a picture: what is saved of views that are not drawn.

import { SvgContext } from "./svg_context.js";

const ROW = 24;
const PAD = 8;
const INDENT = 14;
const MOST_ROWS = 100;
const SCALE = 2;
const FONT = "13px system-ui, sans-serif";

/** The rows of a grid as a table: `{ columns: [{ label, number, width }], rows: [[texts]], shares, swatches, total }`. */
export function tableOf(grid) {
  const cells = [...grid.head.cells];
  const columns = grid.columns.map(({ label, number }, nth) => ({ label, number, width: cells[nth]?.offsetWidth || 100 }));
  const items = grid.rows.slice(0, MOST_ROWS);
  const indent = (item) => INDENT * ((grid.levels?.get(item)?.level ?? 1) - 1);
  return {
    columns,
    rows: items.map((item) => grid.columns.map((column) => String(column.text(item) ?? ""))),
    shares: items.map((item) => grid.columns.map((column) => column.share?.(item) || 0)),
    swatches: items.map((item) => grid.columns.map((column) => column.swatch?.(item) ?? null)),
    indents: items.map(indent),
    total: grid.total ?? grid.rows.length,
  };
}

/** Tables with the same columns as one, each below a line with its title. */
export function joined(tables, titles, name) {
  const found = { ...tables[0], rows: [], shares: [], swatches: [], indents: [], total: 0 };
  const nameColumn = found.columns.length - 1;
  tables.forEach((table, nth) => {
    const title = found.columns.map((_, at) => (at === nameColumn ? `${titles[nth]} of ${name}` : ""));
    found.rows.push(title, ...table.rows);
    found.shares.push([], ...table.shares);
    found.swatches.push([], ...table.swatches);
    found.indents.push(0, ...table.indents);
    found.total += table.total + 1;
  });
  return found;
}

function draw(context, table, width, height) {
  const colours = themeColours();
  context.fillStyle = colours.page;
  context.fillRect(0, 0, width, height);
  context.fillStyle = colours.raised;
  context.fillRect(0, 0, width, ROW);
  context.textBaseline = "middle";
  let left = 0;
  const columns = table.columns.map((column) => {
    const placed = { ...column, left };
    left += column.width;
    return placed;
  });
  context.font = `600 ${FONT}`;
  context.fillStyle = colours.quiet;
  for (const column of columns) drawCell(context, column, column.label, column.left, ROW / 2);
  context.font = FONT;
  table.rows.forEach((_, nth) => drawRow(context, table, columns, nth, colours));
  const more = table.total - table.rows.length;
  if (more > 0) {
    context.fillStyle = colours.quiet;
    context.textAlign = "left";
    context.fillText(`and ${more.toLocaleString("en-US")} more`, PAD, ROW * (table.rows.length + 1.5));
  }
}

function drawRow(context, { rows, shares, swatches, indents }, columns, nth, colours) {
  const y = ROW * (nth + 1.5);
  columns.forEach((column, at) => {
    const share = Math.min(1, shares?.[nth]?.[at] ?? 0);
    if (share > 0) {
      context.fillStyle = colours.fill;
      context.fillRect(column.left + column.width * (1 - share), y - ROW / 2 + 1, column.width * share, ROW - 2);
    }
    let from = column.left + (column.number ? 0 : (indents?.[nth] ?? 0));
    const swatch = swatches?.[nth]?.[at];
    if (swatch) {
      context.fillStyle = swatch;
      context.fillRect(from + PAD, y - 5, 10, 10);
      from += 14;
    }
    context.fillStyle = colours.text;
    drawCell(context, column, rows[nth][at], from, y);
  });
}

/** Draws a text in a column: numbers at its right edge, other texts from `left` on. */
function drawCell(context, column, text, left, y) {
  const room = column.width - 2 * PAD - (left - column.left);
  context.textAlign = column.number ? "right" : "left";
  context.fillText(fitted(context, text, room), column.number ? column.left + column.width - PAD : left + PAD, y);
}

/** As much of a text as has room, with `…` where it is cut. */
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

/** The page's colours as canvases and SVG take them, without `light-dark()`. */
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const resolved = (name) => {
    const probe = document.createElement("i");
    probe.style.color = style.getPropertyValue(name).trim();
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const names = { page: "--page", raised: "--raised", text: "--text", quiet: "--quiet", fill: "--accent-fill" };
  return Object.fromEntries(Object.entries(names).map(([key, name]) => [key, resolved(name)]));
}

/** Functions that make pictures of a table, for the menu "Save". */
export function tablePictures(table) {
  const width = Math.ceil(table.columns.reduce((sum, column) => sum + column.width, 0));
  const height = ROW * (table.rows.length + 1 + (table.total > table.rows.length ? 1 : 0));
  return {
    svg() {
      const context = new SvgContext(width, height);
      draw(context, table, width, height);
      return context.toString();
    },
    png() {
      const canvas = Object.assign(document.createElement("canvas"), { width: width * SCALE, height: height * SCALE });
      const context = canvas.getContext("2d", { alpha: false });
      context.scale(SCALE, SCALE);
      draw(context, table, width, height);
      return new Promise((resolve) => canvas.toBlob(resolve));
    },
  };
}

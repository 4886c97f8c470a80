// A listing of machine code as comma-separated values, and as a table for pictures.

import { quoted } from "../widgets/grid.js";
import { numberText, partText } from "./listing.js";

/** The instructions of a listing, with a line of labels. */
export function listingCsv({ function: named }, { instructions }) {
  const labels = ["function", "offset", "instruction", "self_samples", "self_weight", "total_samples", "target_offset", "path", "line"];
  const rows = instructions.map((one) => [named.name, `0x${one.offset.toString(16)}`, one.shown, one.self_samples, one.self_weight, one.total_samples, one.target_offset === null ? "" : `0x${one.target_offset.toString(16)}`, one.path, one.line]);
  return `${[labels, ...rows].map((row) => row.map(quoted).join(",")).join("\n")}\n`;
}

const MOST_PICTURED = 200;
const AROUND = 100;

/** The instructions around the hottest one, as the picture of a table has them. */
export function listingTable({ compilations, opened }, { instructions }) {
  const { self_weight: whole } = compilations.find(({ number }) => number === opened);
  const hottest = instructions.reduce((best, one, index) => (one.self_weight > (instructions[best]?.self_weight ?? -1) ? index : best), 0);
  const first = Math.max(0, Math.min(hottest - AROUND, instructions.length - MOST_PICTURED));
  const shown = instructions.slice(first, first + MOST_PICTURED);
  const number = (label, width) => ({ label, width, number: true });
  return {
    columns: [number("Share", 80), number("Self", 70), number("Offset", 80), { label: "Instruction", width: 620 }, { label: "Line", width: 220 }],
    rows: shown.map((one) => [one.self_samples ? partText(one.self_weight, whole) : "", one.self_samples ? numberText(one.self_samples) : "", one.offset.toString(16), one.shown, one.path && one.line ? `${one.path.split("/").pop()}:${one.line}` : ""]),
    shares: shown.map(({ self_weight: weight }) => [whole ? weight / whole : 0, 0, 0, 0, 0]),
    total: instructions.length,
  };
}

// Columns of the tables of heap snapshots.

import { visible, weightText } from "../flame/format.js";

export const bytes = (key, label, title) => ({ key, label, title, number: true, width: "7rem", value: (row) => row[key], text: (row) => (row[key] === null || row[key] === undefined ? "" : weightText(row[key], "bytes")) });
export const count = (key, label, title) => ({ key, label, title, number: true, width: "7.5rem", value: (row) => row[key], text: (row) => (row[key] === null || row[key] === undefined ? "" : row[key].toLocaleString("en-US")) });
export const signed = (column) => ({ ...column, text: (row) => (row[column.key] ? `${row[column.key] > 0 ? "+" : "−"}${column.text({ [column.key]: Math.abs(row[column.key]) })}` : "") });
export const typeColumn = (extra = {}) => ({ key: "name", label: "Type", text: (row) => visible(row.type ?? ""), value: (row) => row.type, ...extra });

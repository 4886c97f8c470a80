// Functions: names and what the tables state about each, read from an answer's columns.

import { visible } from "./format.js";

const UNIFORM = 0.95;

/** Columns of symbols as arrays with one entry per symbol; absent texts are null. */
export function readSymbols(columns, origins) {
  const { group_id, function_id, name, short_name, line, ...texts } = columns;
  const originNames = origins.map((origin) => origin.name);
  const text = (column) => column.ids.map((id) => (id < 0 ? null : visible(column.texts[id])));
  const names = name.map(visible);
  const originOfText = texts.origin.texts.map((origin) => Math.max(0, originNames.indexOf(origin)));
  return {
    names,
    shortNames: short_name.map((short, symbol) => (short === null ? names[symbol] : visible(short))),
    group: Uint32Array.from(group_id),
    functionOf: function_id,
    line,
    module: text(texts.module),
    tier: text(texts.tier),
    path: text(texts.path),
    unnamed_because: text(texts.unnamed_because),
    originOf: Uint8Array.from(texts.origin.ids, (id) => originOfText[id]),
    shadeOf: Uint8Array.from(names, shade),
  };
}

/** The function of a row for the state of a page: its name, and the handle that distinguishes it from others of the name. */
export function functionState(row) {
  if (!row) return null;
  return { function: row.name, handle: row.function === undefined || row.function === null ? null : `f${row.function}` };
}

/** What follows the qualifiers of a name; constructors of .NET begin with a dot. */
const UNQUALIFIED = /\.c?ctor$|[^.:]*$/;

/** A name and its shorter forms, the longest first: without arguments, then without qualifiers. */
export function formsOf(full, short) {
  if (short === full) return [full];
  const [last] = UNQUALIFIED.exec(short);
  return last && last !== short ? [full, short, last] : [full, short];
}

/** Whether nearly all symbols have one origin, which then says little. */
export function commonOrigin(originOf) {
  const counts = new Map();
  for (const origin of originOf) counts.set(origin, (counts.get(origin) ?? 0) + 1);
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most && most[1] >= UNIFORM * originOf.length ? most[0] : null;
}

/** A number that depends on a name alone. */
export function nameHash(name) {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = (Math.imul(hash, 31) + name.charCodeAt(at)) | 0;
  return (hash ^ (hash >>> 15)) >>> 0;
}

function shade(name) {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  return (hash >>> 7) % 3;
}

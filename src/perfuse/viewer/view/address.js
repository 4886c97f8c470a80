// The page's state in its address: a link, a reload and the browser's "back" show the same.

import { FILTER_NAMES } from "./filters.js";

/** Names whose value is a pair of times, `a-b` in nanoseconds since the first moment. */
const RANGES = ["range", "base", "window"];
/** Names whose value is a list of numbers. */
const LISTS = ["threads", "processes"];

/** Reads the state from the address. */
export function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = {};
  for (const [name, value] of given) {
    if (FILTER_NAMES.includes(name)) (state.filters ??= []).push([name, value]);
    else if (RANGES.includes(name)) state[name] = range(value);
    else if (LISTS.includes(name)) state[name] = value.split(",").filter((part) => /^\d+$/.test(part)).map(Number);
    else if (name !== "t") state[name] = value;
  }
  for (const name of LISTS) if (state[name]?.length === 0) delete state[name];
  return state;
}

/** Writes the state to the address, with an entry of its own in the history or in place of the last. */
export function writeState(state, { push }) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    if (name === "filters") for (const [step, pattern] of value) given.append(step, pattern);
    else if (RANGES.includes(name)) given.set(name, value.map((time) => Math.round(time)).join("-"));
    else given.set(name, Array.isArray(value) ? value.join(",") : value);
  }
  const hash = `#${given}`.replaceAll("%2C", ",");
  if (hash === location.hash) return;
  try {
    history[push ? "pushState" : "replaceState"](null, "", hash);
  } catch {
    // A frame without an address of its own, as in a notebook.
  }
}

function range(text) {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  return from !== undefined && Number(from) < Number(to) ? [Number(from), Number(to)] : null;
}

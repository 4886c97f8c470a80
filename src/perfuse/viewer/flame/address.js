// The state in the page's address, so that a link or a reload shows the same.

const WORDS = ["view", "metric", "search"];
const NUMBERS = ["thread", "focus", "origin"];
const FLAGS = ["mergeTiers", "mergeRecursion"];

/** Reads the state from the address; absent parameters are absent from the result. */
export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = {};
  for (const name of WORDS) if (given.has(name)) state[name] = given.get(name);
  for (const name of NUMBERS) if (/^\d+$/.test(given.get(name) ?? "")) state[name] = Number(given.get(name));
  for (const name of FLAGS) state[name] = given.has(name);
  state.zoom = (given.get("zoom") ?? "").split(".").filter(Boolean).map(Number);
  return state;
}

/** Puts state into the address without a new entry in the history. */
export function writeAddress(state, usual) {
  const parameters = new URLSearchParams();
  for (const name of WORDS) if (state[name] && state[name] !== usual[name]) parameters.set(name, state[name]);
  for (const name of NUMBERS) if (state[name] !== null) parameters.set(name, state[name]);
  for (const name of FLAGS) if (state[name]) parameters.set(name, 1);
  if (state.zoom.length) parameters.set("zoom", state.zoom.join("."));
  try {
    history.replaceState(null, "", `#${parameters}`);
  } catch {
    // A frame without an address of its own, as in a notebook.
  }
}

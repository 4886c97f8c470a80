// Which names match, how much of the profile that is, and how heavy each function is.

/** A test for names: a regular expression, or the text itself where it is not one. Capitals count if there are any. */
export function matcher(text) {
  const flags = /\p{Lu}/u.test(text) ? "u" : "iu";
  try {
    return new RegExp(text, flags);
  } catch {
    return new RegExp(text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), flags);
  }
}

/** Symbols that match a search, as one flag each; null for no search. */
export function matchingSymbols(profile, text) {
  if (!text) return null;
  const test = matcher(text);
  return Uint8Array.from(profile.names, (name) => (test.test(name) ? 1 : 0));
}

/** Weight and samples of the stacks that contain a flagged symbol, each counted once. */
export function matchedTotals(profile, flags, thread) {
  const { symbol, end, totalWeight, totalSamples } = profile;
  const matched = { weight: 0, samples: 0 };
  for (let node = 0; node < profile.numNodes; ) {
    const counts = flags[symbol[node]] && profile.inThread(node, thread);
    if (counts) {
      matched.weight += totalWeight[node];
      matched.samples += totalSamples[node];
    }
    node = counts ? end[node] : node + 1;
  }
  return matched;
}

/** Self and total of each function; the total counts a stack once however often the function is in it. */
export function functionWeights(profile, view) {
  const { symbol, end, totalWeight, totalSamples, selfWeight, selfSamples } = profile;
  const rows = new Map();
  const openUntil = new Map();
  for (let node = 0; node < profile.numNodes; node++) {
    if (!profile.inThread(node, view.thread)) continue;
    const key = view.key(symbol[node]);
    let row = rows.get(key);
    if (!row) {
      row = { key, symbol: symbol[node], selfWeight: 0, selfSamples: 0, weight: 0, samples: 0, heaviest: -1 };
      rows.set(key, row);
    }
    row.selfWeight += selfWeight[node];
    row.selfSamples += selfSamples[node];
    // The tier a merged function shows is that of its heaviest node.
    if (selfWeight[node] > row.heaviest) [row.heaviest, row.symbol] = [selfWeight[node], symbol[node]];
    if (node < (openUntil.get(key) ?? 0)) continue;
    openUntil.set(key, end[node]);
    row.weight += totalWeight[node];
    row.samples += totalSamples[node];
  }
  return rows;
}

/** Weight of the samples taken in code of each origin. */
export function originWeights(profile, view) {
  const sums = profile.origins.map(() => 0);
  const own = view.bySamples ? profile.selfSamples : profile.selfWeight;
  for (let node = 0; node < profile.numNodes; node++) {
    if (profile.inThread(node, view.thread)) sums[profile.originOf[profile.symbol[node]]] += own[node];
  }
  return sums;
}

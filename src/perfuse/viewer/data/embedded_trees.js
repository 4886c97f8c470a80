// Call trees of a part of the time, from what each node of the whole tree has in each step.

/** Own samples and weight of each node in a selection. `steps` is the first and the end, `threads` a set of keys. */
export function selectedWeights(tree, start, columns, { steps, threads }) {
  const num = Math.floor((tree.byteLength - start) / 24);
  const thread = new Uint32Array(tree, start + 8 * num, num);
  const samples = new Uint32Array(num);
  const weight = new Float64Array(num);
  if (steps) {
    const { node, step } = columns;
    for (let at = 0; at < node.length; at++) {
      if (step[at] < steps[0] || step[at] >= steps[1]) continue;
      samples[node[at]] += columns.samples[at];
      weight[node[at]] += columns.weight[at];
    }
  } else {
    samples.set(new Uint32Array(tree, start + 12 * num, num));
    weight.set(new Float64Array(tree, start + 16 * num + ((16 * num) % 8), num));
  }
  if (threads) {
    for (let node = 0; node < num; node++) if (!threads.has(thread[node])) samples[node] = weight[node] = 0;
  }
  return { samples, weight };
}

/** Parents of the nodes, -1 for none. */
function parentsOf(tree, start, num) {
  const distance = new Uint32Array(tree, start, num);
  return Int32Array.from(distance, (by, node) => (by ? node - by : -1));
}

/** The tree of a selection in the form of the whole one, without nodes that have nothing. */
export function prunedTree(tree, start, head, { samples, weight }) {
  const num = samples.length;
  const parent = parentsOf(tree, start, num);
  const has = new Uint8Array(num);
  for (let node = num - 1; node >= 0; node--) {
    if (samples[node] || weight[node]) has[node] = 1;
    if (has[node] && parent[node] >= 0) has[parent[node]] = 1;
  }
  const numbers = new Int32Array(num).fill(-1);
  const nodes = [];
  for (let node = 0; node < num; node++) if (has[node]) numbers[node] = nodes.push(node) - 1;
  const text = new TextEncoder().encode(JSON.stringify({ ...head, empty: !nodes.length }));
  const padded = 4 + text.length + ((8 - ((4 + text.length) % 8)) % 8);
  const found = new ArrayBuffer(padded + 24 * nodes.length);
  new DataView(found).setUint32(0, text.length, true);
  new Uint8Array(found, 4).set(text);
  const [symbol, thread] = [1, 2].map((nth) => new Uint32Array(tree, start + 4 * num * nth, num));
  const columns = [0, 1, 2, 3].map((nth) => new Uint32Array(found, padded + 4 * nodes.length * nth, nodes.length));
  const weights = new Float64Array(found, padded + 16 * nodes.length, nodes.length);
  nodes.forEach((node, number) => {
    columns[0][number] = parent[node] < 0 ? 0 : number - numbers[parent[node]];
    columns[1][number] = symbol[node];
    columns[2][number] = thread[node];
    columns[3][number] = samples[node];
    weights[number] = weight[node];
  });
  return found;
}

/** Thread, weight and number of samples of the threads of a selection. */
export function threadRows(tree, start, { samples, weight }) {
  const thread = new Uint32Array(tree, start + 8 * samples.length, samples.length);
  const rows = new Map();
  for (let node = 0; node < samples.length; node++) {
    if (!samples[node] && !weight[node]) continue;
    const row = rows.get(thread[node]) ?? [thread[node], 0, 0];
    row[1] += weight[node];
    row[2] += samples[node];
    rows.set(thread[node], row);
  }
  return [...rows.values()];
}

/** Functions with their own and total weight: a function that calls itself counts once. */
export function functionRows(tree, start, { symbols }, { samples, weight }) {
  const num = samples.length;
  const parent = parentsOf(tree, start, num);
  const symbol = new Uint32Array(tree, start + 4 * num, num);
  const total = Float64Array.from(weight);
  const totalSamples = Float64Array.from(samples);
  for (let node = num - 1; node > 0; node--) {
    if (parent[node] < 0) continue;
    total[parent[node]] += total[node];
    totalSamples[parent[node]] += totalSamples[node];
  }
  const text = ({ texts, ids }, at) => (ids[at] < 0 ? null : texts[ids[at]]);
  const rows = new Map();
  let whole = 0;
  let all = 0;
  for (let node = 0; node < num; node++) {
    if (!total[node] && !totalSamples[node]) continue;
    whole += weight[node];
    all += samples[node];
    const at = symbol[node];
    const group = symbols.group_id[at];
    let row = rows.get(group);
    if (!row) {
      row = { function: symbols.function_id[at], name: symbols.name[at], module: text(symbols.module, at), path: text(symbols.path, at), line: symbols.line[at], tiers: new Set(), origin: text(symbols.origin, at), self: 0, total: 0, samples: 0 };
      rows.set(group, row);
    }
    row.self += weight[node];
    row.samples += samples[node];
    const tier = text(symbols.tier, at);
    if (tier) row.tiers.add(tier);
    let above = parent[node];
    while (above >= 0 && symbols.group_id[symbol[above]] !== group) above = parent[above];
    if (above < 0) row.total += total[node];
  }
  return { rows: [...rows.values()].map((row) => ({ ...row, tiers: [...row.tiers] })), whole, samples: all };
}

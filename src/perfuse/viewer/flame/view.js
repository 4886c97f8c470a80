// The displayed trees, of callees or of callers; children are grouped on demand.

/**
 * A node of a displayed tree: all nodes of the call tree that have the same path of names.
 *
 * Children are grouped on first access. Nodes too narrow to be drawn are never built, so the callers of 300,000 nodes
 * take milliseconds.
 */
class ViewNode {
  constructor(view, parent, symbol) {
    this.view = view;
    this.parent = parent;
    this.symbol = symbol;
    this.depth = parent ? parent.depth + 1 : 0;
    this.members = [];
    this.weight = this.samples = this.selfWeight = this.selfSamples = 0;
    this.grouped = null;
  }

  /** Nodes below, the heaviest first. */
  get children() {
    return (this.grouped ??= this.view.expand(this));
  }

  get value() {
    return this.view.bySamples ? this.samples : this.weight;
  }

  /** From the root down to this. */
  get path() {
    const path = [];
    for (let node = this; node; node = node.parent) path.unshift(node);
    return path;
  }
}

/** Children of a node that are too narrow to be drawn one by one. */
export class Remainder {
  constructor(parent, nodes) {
    Object.assign(this, { view: parent.view, parent, symbol: -1, depth: parent.depth + 1, children: [], weight: 0, samples: 0 });
    this.numNodes = nodes.length;
    for (const { weight, samples } of nodes) {
      this.weight += weight;
      this.samples += samples;
    }
  }

  get value() {
    return this.view.bySamples ? this.samples : this.weight;
  }
}

/** The base of the trees of callees and of callers. The root represents all samples, or one function. */
class View {
  constructor(profile, { thread, bySamples, mergeTiers, mergeRecursion }, focus) {
    Object.assign(this, { profile, thread, bySamples, mergeTiers, mergeRecursion });
    this.root = new ViewNode(this, null, -1);
    if (focus === undefined) this.begin();
    else for (const node of this.outermost(focus)) this.beginAt(node);
  }

  /** Nodes with the same key are one. */
  key(symbol) {
    return this.mergeTiers ? this.profile.group[symbol] : symbol;
  }

  /** Whether two nodes of the call tree are shown as one because a function calls itself. */
  recursive(a, b) {
    const { symbol } = this.profile;
    return this.mergeRecursion && this.key(symbol[a]) === this.key(symbol[b]);
  }

  /** Everything: the roots are grouped at once. */
  beginWith(groups) {
    this.root.grouped = sorted(groups);
    for (const { weight, samples } of this.root.grouped) {
      this.root.weight += weight;
      this.root.samples += samples;
    }
  }

  /** Nodes of a function that no node of the same function is above: with what is below them, each sample once. */
  *outermost(key) {
    const { profile } = this;
    for (let node = 0; node < profile.numNodes; ) {
      const found = this.key(profile.symbol[node]) === key;
      if (found && profile.inThread(node, this.thread)) {
        if (this.root.symbol < 0) this.root.symbol = profile.symbol[node];
        yield node;
      }
      node = found ? profile.end[node] : node + 1;
    }
  }

  child(groups, parent, node) {
    const symbol = this.profile.symbol[node];
    const key = this.key(symbol);
    let child = groups.get(key);
    if (!child) groups.set(key, (child = new ViewNode(this, parent, symbol)));
    return child;
  }
}

/** From callers to callees. Members are nodes of the call tree. */
export class Callees extends View {
  begin() {
    const { profile } = this;
    const groups = new Map();
    for (let node = 0; node < profile.numNodes; node = profile.end[node]) {
      if (profile.inThread(node, this.thread)) this.add(this.child(groups, this.root, node), node);
    }
    this.beginWith(groups);
  }

  beginAt(node) {
    this.add(this.root, node);
  }

  expand(parent) {
    const { end } = this.profile;
    const groups = new Map();
    for (const top of parent.members) {
      for (const member of this.merged(top)) {
        for (let node = member + 1; node < end[member]; node = end[node]) {
          if (!this.recursive(node, member)) this.add(this.child(groups, parent, node), node);
        }
      }
    }
    return sorted(groups);
  }

  add(shown, node) {
    const { totalWeight, totalSamples, selfWeight, selfSamples } = this.profile;
    shown.members.push(node);
    shown.weight += totalWeight[node];
    shown.samples += totalSamples[node];
    for (const member of this.merged(node)) {
      shown.selfWeight += selfWeight[member];
      shown.selfSamples += selfSamples[member];
    }
  }

  /** A node and those below it that are shown as one with it. */
  merged(top) {
    const { end } = this.profile;
    const merged = [top];
    for (let at = 0; this.mergeRecursion && at < merged.length; at++) {
      const member = merged[at];
      for (let node = member + 1; node < end[member]; node = end[node]) {
        if (this.recursive(node, member)) merged.push(node);
      }
    }
    return merged;
  }
}

/** From callees to callers. Members are nodes of the call tree, each with the weight that it contributes. */
export class Callers extends View {
  begin() {
    const { profile } = this;
    const groups = new Map();
    for (let at = 0; at < profile.numNodes; at++) {
      if (!profile.selfSamples[at] || !profile.inThread(at, this.thread)) continue;
      const walk = { at, weight: profile.selfWeight[at], samples: profile.selfSamples[at] };
      this.add(this.child(groups, this.root, at), walk);
    }
    this.beginWith(groups);
  }

  beginAt(at) {
    const { totalWeight, totalSamples } = this.profile;
    this.add(this.root, { at, weight: totalWeight[at], samples: totalSamples[at] });
  }

  expand(parent) {
    const groups = new Map();
    for (const { at, weight, samples } of parent.members) {
      const caller = this.callerOf(at);
      if (caller >= 0) this.add(this.child(groups, parent, caller), { at: caller, weight, samples });
    }
    return sorted(groups);
  }

  callerOf(node) {
    const { parent } = this.profile;
    let caller = parent[node];
    while (caller >= 0 && this.recursive(caller, node)) caller = parent[caller];
    return caller;
  }

  add(shown, walk) {
    shown.members.push(walk);
    shown.weight += walk.weight;
    shown.samples += walk.samples;
    if (this.callerOf(walk.at) < 0) {
      shown.selfWeight += walk.weight;
      shown.selfSamples += walk.samples;
    }
  }
}

function sorted(groups) {
  return [...groups.values()].sort((a, b) => b.value - a.value || a.symbol - b.symbol);
}

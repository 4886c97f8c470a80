// Slices of the timeline in a page without a server: tiles, details and neighbours of them.

import { BUCKETS } from "./tiles.js";

/** Slices in rows, by track and depth, each in the order of its start. */
export class Slices {
  constructor(columns, { symbols, timeline }) {
    Object.assign(this, { columns, symbols: symbols?.symbols, tracks: new Map((timeline?.tracks ?? []).map((track) => [track.track, track])) });
    this.rows = new Map();
    const { track, depth } = columns;
    for (let at = 0; at < track.length; ) {
      const key = `${track[at]}/${depth[at]}`;
      const first = at;
      while (at < track.length && track[at] === track[first] && depth[at] === depth[first]) at += 1;
      this.rows.set(key, [first, at]);
    }
  }

  row(track, depth) {
    return this.rows.get(`${track}/${depth}`) ?? [0, 0];
  }

  /** The first position of a row that starts at a time or after it. */
  lower([first, end], time) {
    let [low, high] = [first, end];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.columns.start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  described(at) {
    const { columns, symbols } = this;
    const symbol = columns.symbol[at];
    const [path, tier] = [symbols.path, symbols.tier].map(({ texts, ids }) => (ids[symbol] < 0 ? null : texts[ids[symbol]]));
    const track = this.tracks.get(columns.track[at]);
    return {
      track: columns.track[at], depth: columns.depth[at], index: columns.index[at], kind: track?.kind, thread: track?.thread ?? null,
      start_ns: columns.start[at], duration_ns: columns.duration[at], symbol, name: symbols.name[symbol], tier,
      place: path && (symbols.line[symbol] ? `${path}:${symbols.line[symbol]}` : path),
    };
  }

  /** A slice, those around it, and those directly in it by name. */
  slice({ track, depth, index }) {
    const { start, duration, symbol } = this.columns;
    const at = this.row(Number(track), Number(depth))[0] + Number(index);
    const [from, to] = [start[at], start[at] + duration[at]];
    const parents = [];
    for (let above = 0; above < Number(depth); above++) {
      const row = this.row(Number(track), above);
      let parent = this.lower(row, from + 0.5) - 1;
      if (parent >= row[0] && start[parent] + duration[parent] >= to) parents.push(this.described(parent));
    }
    const below = this.row(Number(track), Number(depth) + 1);
    const sums = new Map();
    let inner = 0;
    for (let child = this.lower(below, from); child < below[1] && start[child] < Math.max(to, from + 1); child++) {
      const sum = sums.get(symbol[child]) ?? { symbol: symbol[child], name: this.symbols.name[symbol[child]], count: 0, duration_ns: 0, longest: null };
      sum.count += 1;
      sum.duration_ns += duration[child];
      if (!sum.longest || duration[child] > sum.longest.duration_ns) sum.longest = this.described(child);
      sums.set(symbol[child], sum);
      inner += duration[child];
    }
    const children = [...sums.values()].sort((a, b) => b.duration_ns - a.duration_ns);
    const slice = { ...this.described(at), self_ns: Math.max(0, duration[at] - inner) };
    return { slice, parents, children: children.slice(0, 20), num_children: children.length, command: null };
  }

  /** The slice before or after a slice; with `same` the nearest of its function in its track. */
  neighbour({ track, depth, index, direction, same }) {
    const { start, symbol } = this.columns;
    const [first, end] = this.row(Number(track), Number(depth));
    const at = first + Number(index);
    const step = direction === "next" ? 1 : -1;
    if (same !== "symbol") {
      const next = at + step;
      return { slice: next >= first && next < end ? this.described(next) : null };
    }
    let best = null;
    for (const [key, [from, to]] of this.rows) {
      if (!key.startsWith(`${track}/`)) continue;
      for (let other = from; other < to; other++) {
        const isAfter = step * (start[other] - start[at]) > 0;
        if (isAfter && symbol[other] === symbol[at] && (best === null || step * (start[best] - start[other]) > 0)) best = other;
      }
    }
    return { slice: best === null ? null : this.described(best) };
  }
}

/** Boxes of tiles, as the server makes them: a slice of a bucket or more by itself, shorter ones by the bucket they start in. */
export function boxesOfTiles(slices, { k, first, last, tracks, depths }) {
  const { columns } = slices;
  const [least, most] = String(depths ?? "0-65535").split("-").map(Number);
  const bucket = 2 ** k;
  const found = { tile: [], track: [], depth: [], start: [], duration: [], symbol: [], count: [], busy: [], index: [] };
  const put = (tile, at, count, busy) => {
    found.tile.push(tile);
    for (const name of ["track", "depth", "start", "duration", "symbol", "index"]) found[name].push(columns[name][at]);
    found.count.push(count);
    found.busy.push(busy);
  };
  const ofTrack = Map.groupBy([...slices.rows.keys()].map((key) => key.split("/").map(Number)), ([track]) => track);
  for (let tile = first; tile <= last; tile++) {
    const [from, to] = [tile * BUCKETS * bucket, (tile + 1) * BUCKETS * bucket];
    for (const track of String(tracks).split(",").map(Number)) {
      for (const [, depth] of (ofTrack.get(track) ?? []).filter(([, each]) => each >= least && each <= most)) {
        const row = slices.row(track, depth);
        let at = slices.lower(row, from);
        // A slice that began before may reach into the tile.
        if (at > row[0] && columns.duration[at - 1] >= bucket && columns.start[at - 1] + columns.duration[at - 1] > from) put(tile, at - 1, 1, columns.duration[at - 1]);
        while (at < row[1] && columns.start[at] < to) {
          if (columns.duration[at] >= bucket) {
            put(tile, at, 1, columns.duration[at]);
            at += 1;
            continue;
          }
          const end = (Math.floor(columns.start[at] / bucket) + 1) * bucket;
          let [longest, count, busy] = [at, 0, 0];
          const begun = at;
          while (at < row[1] && columns.start[at] < end && columns.duration[at] < bucket) {
            if (columns.duration[at] > columns.duration[longest]) longest = at;
            count += 1;
            busy += columns.duration[at];
            at += 1;
          }
          if (at === begun) break;
          put(tile, longest, count, busy);
        }
      }
    }
  }
  return { kind: "tiles", k, first, last, columns: found };
}

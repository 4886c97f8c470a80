// Tiles of the timeline: asked for as they come into sight, kept while there is room.

import { isAbort } from "./server.js";

/** Buckets of a tile. */
export const BUCKETS = 512;
const MOST_BYTES = 64 * 2 ** 20;
const BYTES_PER_BOX = 44;
const AT_ONCE = 2;
/** Tiles times tracks that one request may ask for. */
const PER_REQUEST = 64;
/** Depths are asked for in steps, so that scrolling does not ask for each row. */
export const DEPTH_STEP = 64;

/** The length of a tile of a resolution. */
export function tileLength(k) {
  return BUCKETS * 2 ** k;
}

/** Tiles by resolution, track and number. */
export class Tiles {
  constructor(server, onArrival) {
    Object.assign(this, { server, onArrival, kept: new Map(), bytes: 0, waiting: [], running: new Set(), failed: new Set() });
  }

  key(k, track, tile, depths) {
    return `${k}/${track}/${tile}/${depths}`;
  }

  /** Boxes of a tile as `{ columns, first, end, depths }`, or undefined where it is not here yet. */
  get(k, track, tile, depths) {
    const key = this.key(k, track, tile, depths);
    const found = this.kept.get(key);
    if (found) {
      // The map's order is that of use: what was used last is forgotten last.
      this.kept.delete(key);
      this.kept.set(key, found);
    }
    return found;
  }

  /**
   * Asks for what is in sight and not here. Requests that wait and are no longer needed are forgotten.
   *
   * @param wanted rows of `{ k, first, last, tracks: [[track, depths]] }`, the most urgent first
   */
  want(wanted) {
    this.waiting = [];
    for (const { k, first, last, tracks } of wanted) {
      const byDepths = Map.groupBy(tracks, ([, depths]) => depths);
      for (const [depths, group] of byDepths) this.wantGroup(k, first, last, depths, group.map(([track]) => track));
    }
    this.pump();
  }

  wantGroup(k, first, last, depths, tracks) {
    const missing = (track, tile) => {
      const key = this.key(k, track, tile, depths);
      return !this.kept.has(key) && !this.running.has(key) && !this.failed.has(key);
    };
    const needed = tracks.filter((track) => {
      for (let tile = first; tile <= last; tile++) if (missing(track, tile)) return true;
      return false;
    });
    if (!needed.length) return;
    let [from, to] = [first, last];
    while (from < to && !needed.some((track) => missing(track, from))) from += 1;
    while (to > from && !needed.some((track) => missing(track, to))) to -= 1;
    const numTracks = Math.max(1, Math.floor(PER_REQUEST / (to - from + 1)));
    for (let at = 0; at < needed.length; at += numTracks) {
      this.waiting.push({ k, first: from, last: to, depths, tracks: needed.slice(at, at + numTracks) });
    }
  }

  pump() {
    while (this.waiting.length && (this.numRunning ?? 0) < AT_ONCE) this.load(this.waiting.shift());
  }

  async load(request) {
    const { k, first, last, depths, tracks } = request;
    const keys = [];
    for (const track of tracks) for (let tile = first; tile <= last; tile++) keys.push(this.key(k, track, tile, depths));
    for (const key of keys) this.running.add(key);
    this.numRunning = (this.numRunning ?? 0) + 1;
    try {
      const answer = await this.server.columns("tiles", { k, first, last, tracks: tracks.join(","), depths: `0-${depths - 1}` });
      this.keep(answer, request);
    } catch (error) {
      if (error.code === "too_many" && first < last) {
        const middle = (first + last) >> 1;
        this.waiting.unshift({ ...request, last: middle }, { ...request, first: middle + 1 });
      } else if (error.code === "too_many" && tracks.length > 1) {
        const half = tracks.length >> 1;
        this.waiting.unshift({ ...request, tracks: tracks.slice(0, half) }, { ...request, tracks: tracks.slice(half) });
      } else if (!isAbort(error)) {
        for (const key of keys) this.failed.add(key);
        this.onFailure?.(error);
      }
    } finally {
      for (const key of keys) this.running.delete(key);
      this.numRunning -= 1;
    }
    this.pump();
    this.onArrival();
  }

  keep({ columns }, { k, first, last, depths, tracks }) {
    const num = columns.tile.length;
    for (const track of tracks) {
      for (let tile = first; tile <= last; tile++) this.put(this.key(k, track, tile, depths), { columns, first: 0, end: 0 });
    }
    for (let at = 0; at < num; ) {
      const [tile, track] = [columns.tile[at], columns.track[at]];
      let end = at + 1;
      while (end < num && columns.tile[end] === tile && columns.track[end] === track) end += 1;
      this.put(this.key(k, track, tile, depths), { columns, first: at, end });
      at = end;
    }
    this.forget();
  }

  put(key, boxes) {
    const before = this.kept.get(key);
    if (before) this.bytes -= cost(before);
    this.kept.delete(key);
    this.kept.set(key, boxes);
    this.bytes += cost(boxes);
  }

  forget() {
    for (const [key, boxes] of this.kept) {
      if (this.bytes <= MOST_BYTES) break;
      this.kept.delete(key);
      this.bytes -= cost(boxes);
    }
  }

  clear() {
    this.kept.clear();
    this.failed.clear();
    this.bytes = 0;
  }
}

function cost({ first, end }) {
  return 200 + BYTES_PER_BOX * (end - first);
}

// Which rows the timeline has: processes, their threads, the lanes and counters of each, from top to bottom.

import { DEPTH_STEP } from "../data/tiles.js";
import { visible } from "../flame/format.js";

export const BOX = 17;
const HEADING = 26;
const FOLDED = 24;
const COUNTER = 40;
const GAP = 4;
/** Lanes whose boxes have no length of their own. */
const MOMENTS = new Set(["compile", "instants"]);
const LANES = { gc: "garbage collection", jit: "JIT compiler", lock: "locks", custom: "markers", compile: "JIT code by tier", instants: "events", state: "states" };
/** More of them are folded at first. */
const FEW_PROCESSORS = 8;

/**
 * Rows of the timeline.
 *
 * @returns `{ rows, height }`; a row is `{ kind: "process" | "track" | "counter", key, label, detail, top, height, depths, … }`
 */
export function layoutRows({ tracks, counters }, overview, { isOpen, only }) {
  const rows = [];
  let top = 0;
  const add = (row) => {
    rows.push({ ...row, top });
    top += row.height + (row.kind === "process" ? 0 : GAP);
  };
  const threads = new Map(overview.threads.map((thread) => [thread.thread, thread]));
  // Processors are of no process, and first.
  const processes = [...new Set([...(tracks.some(isOfProcessor) ? [null] : []), ...overview.processes.map(({ process }) => process), ...tracks.map(({ process }) => process), ...counters.map(({ process }) => process)])];
  const names = new Map(overview.processes.map(({ process, name, pid }) => [process, `${visible(name ?? "process")} ${pid ?? ""}`.trim()]));
  for (const process of processes) {
    if (only.processes && !only.processes.includes(process)) continue;
    const own = tracks.filter((track) => track.process === process && (!only.threads || track.thread === null || only.threads.includes(track.thread)));
    const ownCounters = counters.filter((counter) => counter.process === process);
    if (!own.length && !ownCounters.length) continue;
    const open = isOpen(`process ${process}`, own.filter(isOfProcessor).length <= FEW_PROCESSORS);
    const ofNone = own.some(isOfProcessor) ? "processors" : "all processes";
    if (processes.length > 1) add({ kind: "process", key: `process ${process}`, label: names.get(process) ?? (process === null ? ofNone : `process ${process}`), height: HEADING, open });
    if (processes.length > 1 && !open) continue;
    for (const track of own.filter(({ thread }) => thread === null)) add(trackRow(track, null, isOpen, rows));
    const weight = (track) => threads.get(track.thread)?.weight ?? track.busy_ns ?? 0;
    const ofThreads = own.filter(({ thread }) => thread !== null);
    const order = [...new Set([...ofThreads].sort((a, b) => weight(b) - weight(a)).map(({ thread }) => thread))];
    for (const key of order) {
      for (const track of ofThreads.filter(({ thread }) => thread === key).sort((a, b) => isLane(a) - isLane(b))) add(trackRow(track, threads.get(key), isOpen, rows));
    }
    // A runtime has hundreds of counters: threads stay in sight.
    for (const counter of ownCounters) {
      add({ kind: "counter", key: `counter ${counter.counter}`, counter, label: visible(counter.name), detail: visible([counter.section, counter.unit].filter(Boolean).join(", ")), height: COUNTER, open: null });
    }
  }
  return { rows, height: top };
}

function isOfProcessor({ kind }) {
  return kind === "cpu";
}

function isLane({ kind }) {
  return kind in LANES ? 1 : 0;
}

function trackRow(track, thread, isOpen, before) {
  const lane = LANES[track.kind];
  const first = !before.some((row) => row.track && row.track.depths > 1 && !isLane(row.track) && !isOfProcessor(row.track));
  const foldable = track.depths > 1;
  const key = `track ${track.track}`;
  const open = foldable ? isOpen(key, lane ? track.depths <= 4 : first) : false;
  const isFirstOfThread = !before.some((row) => row.track?.thread === track.thread);
  const label = lane ? visible(track.name || lane) : visible(thread?.label ?? track.name ?? "thread");
  const detail = lane ? (thread && isFirstOfThread ? visible(thread.label ?? "") : "") : track.kind === "samples" ? "sampled" : "";
  return {
    kind: "track", key, track, label, detail, lane: Boolean(lane), byName: isOfProcessor(track) || track.kind === "state", moments: MOMENTS.has(track.kind),
    height: open ? track.depths * BOX : FOLDED, open: foldable ? open : null, depths: open ? track.depths : 1,
  };
}

/** How many depths of a row whose top is at `top` are in sight, in steps: these are asked for, and drawn. */
export function depthsAsked(row, top, height) {
  if (row.depths === 1) return 1;
  const inSight = Math.min(row.depths, Math.ceil((height - top) / BOX));
  return Math.min(DEPTH_STEP * Math.ceil(Math.max(1, inSight) / DEPTH_STEP), 65_536);
}

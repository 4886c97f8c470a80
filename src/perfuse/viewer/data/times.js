// Moments and lengths of time as text. Moments are nanoseconds since the first moment of the profile.

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const STEPS = [1, 2, 5];

/** A moment to the precision that `step` (ns between two moments that must differ) asks for: `1.204 s`. */
export function momentText(time, step = 1e6) {
  const [size, name] = Math.abs(time) >= 1e9 || step >= 1e7 ? UNITS[0] : (UNITS.find(([size]) => Math.abs(time) >= size) ?? UNITS[3]);
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(time / size).toFixed(digits)} ${name}`;
}

/** A length of time with three figures: `12.3 ms`. */
export function lengthText(time) {
  const [size, name] = UNITS.find(([size]) => time >= size) ?? UNITS[3];
  const value = time / size;
  return `${value >= 1000 ? Math.round(value).toLocaleString("en-US") : Number(value.toPrecision(3))} ${name}`;
}

/** Two moments: `1.204–1.850 s`. */
export function rangeText([from, to]) {
  const step = (to - from) / 1000;
  const [a, b] = [momentText(from, step), momentText(to, step)];
  const [, unitA] = a.split(" ");
  const [, unitB] = b.split(" ");
  return unitA === unitB ? `${a.split(" ")[0]}–${b}` : `${a} – ${b}`;
}

/** A whole number of nanoseconds as a command takes it: seconds, exactly, without an exponent. */
function secondsText(time) {
  const fraction = String(time % 1e9).padStart(9, "0").replace(/0+$/, "");
  return `${Math.floor(time / 1e9)}${fraction && `.${fraction}`}`;
}

/** A command about a part of the time, within the time that the page was opened for. The end of the recording is a part of what ends there. */
export function commandOfTime(command, [from, to], { span_ns: span, limits_ns: limits }) {
  const start = Math.max(from ?? 0, limits?.[0] ?? 0);
  const end = Math.min(to ?? Infinity, limits?.[1] ?? Infinity);
  if (start <= 0 && end >= span) return command;
  const between = `${start > 0 ? secondsText(start) : ""}..${end < span ? secondsText(end) : ""}`;
  return `${command.replace(/ --between \S+/, "")} --between ${between}`;
}

/** The distance of ticks of an axis, at least `least` apart: 1, 2 or 5 of a power of ten. */
export function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-3)));
  return power * (STEPS.find((step) => step * power >= least) ?? 10);
}

/** Reads a moment as people write it: `1.2s`, `350 ms`, `17us`; a bare number is in seconds. */
export function readMoment(text) {
  const [, number, unit = "s"] = /^\s*([\d.]+)\s*(s|ms|us|µs|ns)?\s*$/.exec(text) ?? [];
  if (number === undefined || Number.isNaN(Number(number))) return null;
  return Number(number) * { s: 1e9, ms: 1e6, us: 1e3, "µs": 1e3, ns: 1 }[unit];
}

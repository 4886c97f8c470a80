// Numbers and names as text.

const TIME = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZE = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 4 });

/** A weight with its unit: `1.25 s`, `12,000 events`, `1.9 MiB`. */
export function weightText(weight, unit) {
  if (unit === "bytes") return bytesText(weight);
  if (unit !== "ns") return `${grouped.format(weight)} ${unit}`;
  const [size, name] = TIME.find(([size]) => weight >= size) ?? TIME[3];
  const value = weight / size;
  return `${value >= 100 ? grouped.format(value) : Number(value.toPrecision(3))} ${name}`;
}

/** A weight in a narrow column whose heading is `amountLabel`: counts without their unit, large ones as `161.2M`. */
export function amountText(weight, unit) {
  if (unit === "ns" || unit === "bytes") return weightText(weight, unit);
  return (weight < 1e8 ? grouped : compact).format(weight);
}

/** The width of a column with amounts of `whole`, such as `5,158,322`, and their shares, such as `<0.01%`. */
export function amountsWidth(whole, unit) {
  return `calc(${Math.max(8, amountText(whole, unit).length) + 8}ch + 1rem)`;
}

/** The heading of a column of weights: `Time`, `Bytes`, or what is counted. */
export function amountLabel(unit) {
  return unit === "ns" ? "Time" : unit[0].toUpperCase() + unit.slice(1);
}

function bytesText(size) {
  const [bytes, name] = SIZE.find(([bytes]) => size >= bytes) ?? [1, "B"];
  const value = size / bytes;
  return `${bytes === 1 || value >= 100 ? grouped.format(value) : value.toFixed(1)} ${name}`;
}

/** A count with thousands apart. */
export function countText(count, name) {
  return `${grouped.format(count)} ${name}${count === 1 ? "" : "s"}`;
}

/** A share of a whole: `12.3%`. */
export function shareText(part, whole) {
  const percent = whole > 0 ? (100 * part) / whole : 0;
  if (percent === 0) return "0%";
  if (percent < 0.01) return "<0.01%";
  return `${percent >= 99.995 ? 100 : percent.toFixed(percent < 1 ? 2 : 1)}%`;
}

// Controls would break a line, and marks of direction would turn the text around them.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name with what cannot be seen written out. */
export function visible(name) {
  return name.replace(INVISIBLE, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** The last part of a path. */
export function fileName(path) {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/** The last part of each path, with as many directories before it as distinguish them: a map. */
export function distinctNames(paths) {
  const names = new Map([...paths].map((path) => [path, fileName(path)]));
  for (let parts = 2; ; parts++) {
    const unclear = [...Map.groupBy(names.keys(), (path) => names.get(path)).values()].filter((alike) => alike.length > 1).flat();
    if (!unclear.length) return names;
    for (const path of unclear) names.set(path, path.split("/").slice(-parts).join("/"));
  }
}

/** Where each of several functions is, in short: `{ name, place }` with a path, a path with a line, or null. */
export function placeTexts(functions) {
  const ofName = new Map([...Map.groupBy(functions, ({ name }) => name)].map(([name, alike]) => [name, distinctNames(alike.map(({ place }) => place).filter(Boolean))]));
  return functions.map(({ name, place }) => (place ? ofName.get(name).get(place) : null));
}

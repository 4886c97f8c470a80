// Squarified treemaps: rectangles of given areas, as near to squares as they can be.

/** Places items with a `value` into a rectangle; returns `[{ item, x, y, width, height }]`, the largest first. */
export function squarify(items, { x, y, width, height }) {
  const placed = [];
  const rest = items.filter(({ value }) => value > 0).sort((a, b) => b.value - a.value);
  const whole = rest.reduce((sum, { value }) => sum + value, 0);
  const scale = whole > 0 ? (width * height) / whole : 0;
  const box = { x, y, width, height };
  for (let at = 0; at < rest.length; ) {
    const short = Math.min(box.width, box.height);
    if (short <= 0) break;
    let end = at + 1;
    let sum = rest[at].value * scale;
    let worst = aspect(short, sum, rest[at].value * scale, rest[at].value * scale);
    while (end < rest.length) {
      const more = sum + rest[end].value * scale;
      const next = aspect(short, more, rest[at].value * scale, rest[end].value * scale);
      if (next > worst) break;
      [worst, sum] = [next, more];
      end += 1;
    }
    placeRow(placed, rest.slice(at, end), sum, scale, box);
    at = end;
  }
  return placed;
}

function aspect(short, sum, largest, smallest) {
  const [side, area] = [short * short, sum * sum];
  return Math.max((side * largest) / area, area / (side * smallest));
}

function placeRow(placed, items, sum, scale, box) {
  const isWide = box.width >= box.height;
  const thick = sum / (isWide ? box.height : box.width);
  let along = 0;
  for (const item of items) {
    const length = (item.value * scale) / thick;
    placed.push(isWide ? { item, x: box.x, y: box.y + along, width: thick, height: length } : { item, x: box.x + along, y: box.y, width: length, height: thick });
    along += length;
  }
  if (isWide) Object.assign(box, { x: box.x + thick, width: box.width - thick });
  else Object.assign(box, { y: box.y + thick, height: box.height - thick });
}

// Postcards: parses a scene in a small language, ray-traces it, dithers and packs the picture, and renders the greeting
// on its back from Markdown. Each iteration makes one card; the scene changes slightly from card to card.
//
//   node postcards.js [CARDS]
'use strict';

// --- The scene language: an object, its attributes, their numbers. A word in parentheses is a variable ---

const SCENE = `
  # A still life with three balls and a floor of squares.
  camera at 0 1.4 -4 zoom 1.5;
  light at 4 6 -3 bright 0.9;
  light at -5 3 -4 bright 0.35;
  floor height 0 colour 0.85 0.85 0.8 shiny 0.15;
  sphere at -1.3 (0.8 + 0.3 * wave) 1 radius 0.8 colour 0.9 0.25 0.2 shiny 0.25;
  sphere at 0.7 1 (2.2 - wave) radius 1 colour 0.2 0.5 0.9 shiny 0.5;
  sphere at (0.4 + 0.8 * wave) 0.35 -0.6 radius 0.35 colour 0.95 0.8 0.3 shiny 0.1;
`;

function* tokenize(text) {
  const pattern = /\s+|#[^\n]*|(\d+(?:\.\d+)?)|([a-z]+)|([-+*()/;])/gy;
  while (pattern.lastIndex < text.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(text);
    if (match === null) throw new SyntaxError(`unexpected ${text[at]} at ${at}`);
    if (match[1] !== undefined) yield { kind: 'number', value: Number(match[1]) };
    else if (match[2] !== undefined) yield { kind: 'word', value: match[2] };
    else if (match[3] !== undefined) yield { kind: match[3], value: match[3] };
  }
}

class SceneParser {
  constructor(text, variables) {
    this.tokens = [...tokenize(text)];
    this.next = 0;
    this.variables = variables;
  }

  peek() {
    return this.next < this.tokens.length ? this.tokens[this.next].kind : 'end';
  }

  take(kind) {
    if (this.peek() !== kind) throw new SyntaxError(`expected ${kind}, found ${this.peek()}`);
    return this.tokens[this.next++].value;
  }

  parse() {
    const things = [];
    while (this.peek() !== 'end') things.push(this.parseThing());
    return things;
  }

  parseThing() {
    const thing = { kind: this.take('word') };
    while (this.peek() === 'word') {
      const attribute = this.take('word');
      const values = [];
      while (this.peek() !== 'word' && this.peek() !== ';') values.push(this.parseFactor());
      thing[attribute] = values.length === 1 ? values[0] : values;
    }
    this.take(';');
    return thing;
  }

  parseSum() {
    let value = this.parseProduct();
    while (this.peek() === '+' || this.peek() === '-') {
      const operator = this.tokens[this.next++].kind;
      const right = this.parseProduct();
      value = operator === '+' ? value + right : value - right;
    }
    return value;
  }

  parseProduct() {
    let value = this.parseFactor();
    while (this.peek() === '*' || this.peek() === '/') {
      const operator = this.tokens[this.next++].kind;
      const right = this.parseFactor();
      value = operator === '*' ? value * right : value / right;
    }
    return value;
  }

  parseFactor() {
    switch (this.peek()) {
      case '-':
        this.take('-');
        return -this.parseFactor();
      case '(': {
        this.take('(');
        const value = this.parseSum();
        this.take(')');
        return value;
      }
      case 'word':
        return this.variables[this.take('word')];
      default:
        return this.take('number');
    }
  }
}

// --- Vectors and rays ---

class Vector {
  constructor(x, y, z) {
    this.x = x;
    this.y = y;
    this.z = z;
  }

  plus(other) {
    return new Vector(this.x + other.x, this.y + other.y, this.z + other.z);
  }

  minus(other) {
    return new Vector(this.x - other.x, this.y - other.y, this.z - other.z);
  }

  times(factor) {
    return new Vector(this.x * factor, this.y * factor, this.z * factor);
  }

  dot(other) {
    return this.x * other.x + this.y * other.y + this.z * other.z;
  }

  unit() {
    return this.times(1 / Math.sqrt(this.dot(this)));
  }
}

class Sphere {
  constructor({ at, radius, colour, shiny }) {
    this.centre = new Vector(...at);
    this.radius = radius;
    this.colour = new Vector(...colour);
    this.shiny = shiny;
  }

  distance(origin, direction) {
    const offset = origin.minus(this.centre);
    const half = offset.dot(direction);
    const gap = half * half - offset.dot(offset) + this.radius * this.radius;
    if (gap < 0) return Infinity;
    const root = Math.sqrt(gap);
    if (-half - root > 1e-4) return -half - root;
    return -half + root > 1e-4 ? -half + root : Infinity;
  }

  normal(point) {
    return point.minus(this.centre).times(1 / this.radius);
  }

  colourAt() {
    return this.colour;
  }
}

class Floor {
  constructor({ height, colour, shiny }) {
    this.height = height;
    this.colour = new Vector(...colour);
    this.dark = this.colour.times(0.25);
    this.shiny = shiny;
  }

  distance(origin, direction) {
    const distance = (this.height - origin.y) / direction.y;
    return distance > 1e-4 ? distance : Infinity;
  }

  normal() {
    return new Vector(0, 1, 0);
  }

  colourAt(point) {
    return (Math.floor(point.x) + Math.floor(point.z)) % 2 === 0 ? this.colour : this.dark;
  }
}

class Scene {
  constructor(things) {
    const of = (kind) => things.filter((thing) => thing.kind === kind);
    this.camera = of('camera')[0];
    this.lights = of('light').map((light) => ({ at: new Vector(...light.at), bright: light.bright }));
    this.bodies = [...of('sphere').map((s) => new Sphere(s)), ...of('floor').map((f) => new Floor(f))];
  }

  nearest(origin, direction) {
    let body = null;
    let distance = Infinity;
    for (const candidate of this.bodies) {
      const found = candidate.distance(origin, direction);
      if (found < distance) {
        distance = found;
        body = candidate;
      }
    }
    return body === null ? null : { body, distance };
  }

  shade(body, point, normal) {
    let light = 0.12;
    for (const lamp of this.lights) {
      const towards = lamp.at.minus(point).unit();
      if (this.nearest(point, towards) === null) light += lamp.bright * Math.max(0, normal.dot(towards));
    }
    return body.colourAt(point).times(light);
  }

  trace(origin, direction, bounces) {
    const hit = this.nearest(origin, direction);
    if (hit === null) return new Vector(0.5, 0.65, 0.9).times(1 - 0.5 * Math.max(0, direction.y));
    const point = origin.plus(direction.times(hit.distance));
    const normal = hit.body.normal(point);
    const own = this.shade(hit.body, point, normal);
    if (bounces === 0 || hit.body.shiny === 0) return own;
    const mirrored = direction.minus(normal.times(2 * direction.dot(normal)));
    return own.times(1 - hit.body.shiny).plus(this.trace(point, mirrored, bounces - 1).times(hit.body.shiny));
  }
}

function render(scene, width, height) {
  const grey = new Float64Array(width * height);
  const eye = new Vector(...scene.camera.at);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const x = (2 * column - width) / height;
      const y = (height - 2 * row) / height;
      const colour = scene.trace(eye, new Vector(x, y, scene.camera.zoom).unit(), 3);
      grey[row * width + column] = 0.3 * colour.x + 0.59 * colour.y + 0.11 * colour.z;
    }
  }
  return grey;
}

// --- The picture in the format of a printer: 16 inks, packed ---

function dither(grey, width, height) {
  const inks = new Uint8Array(grey.length);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const at = row * width + column;
      const ink = Math.max(0, Math.min(15, Math.round(grey[at] * 15)));
      const error = grey[at] - ink / 15;
      inks[at] = ink;
      if (column + 1 < width) grey[at + 1] += (error * 7) / 16;
      if (row + 1 < height) {
        if (column > 0) grey[at + width - 1] += (error * 3) / 16;
        grey[at + width] += (error * 5) / 16;
        if (column + 1 < width) grey[at + width + 1] += error / 16;
      }
    }
  }
  return inks;
}

function packLempelZiv(bytes) {
  const packed = [];
  const heads = new Int32Array(1 << 12).fill(-1);
  let at = 0;
  while (at < bytes.length) {
    const hash = ((bytes[at] << 8) ^ (bytes[at + 1] << 4) ^ bytes[at + 2]) & 0xfff;
    const earlier = heads[hash];
    heads[hash] = at;
    let length = 0;
    if (earlier >= 0) {
      while (length < 255 && at + length < bytes.length && bytes[earlier + length] === bytes[at + length]) length++;
    }
    if (length >= 4) {
      packed.push(0x80, length, (at - earlier) & 0xff, (at - earlier) >> 8);
      at += length;
    } else {
      packed.push(bytes[at++]);
    }
  }
  return packed;
}

function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

// --- The back of the card: Markdown to HTML ---

const GREETING = [
  '# Greetings from *perfuse*',
  '',
  'The weather is **fine**, the functions are `hot`, and [every stack](https://example.org/stacks) has a *name*.',
  '',
  '- swam in the `call chain`',
  '- saw **two** tiers: *sparkplug* and *turbofan*',
  '- sent no symbols, only addresses < 0xffff & lines',
  '',
  'See you at `join` time!',
].join('\n');

function escapeHtml(text) {
  return text.replace(/[&<>]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[character]);
}

function renderInline(text) {
  return escapeHtml(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<b>$1</b>')
    .replace(/\*([^*]+)\*/g, '<i>$1</i>')
    .replace(/\[([^\]]+)\]\(([^)]+)\)/g, '<a href="$2">$1</a>');
}

function renderMarkdown(text) {
  const html = [];
  for (const block of text.split('\n\n')) {
    const lines = block.split('\n');
    if (lines[0].startsWith('# ')) html.push(`<h1>${renderInline(lines[0].slice(2))}</h1>`);
    else if (lines.every((line) => line.startsWith('- '))) {
      html.push('<ul>', ...lines.map((line) => `<li>${renderInline(line.slice(2))}</li>`), '</ul>');
    } else html.push(`<p>${lines.map(renderInline).join(' ')}</p>`);
  }
  return html.join('\n');
}

// --- Printing ---

function printCard(number, width, height) {
  const scene = new Scene(new SceneParser(SCENE, { wave: Math.sin(number / 3) }).parse());
  const packed = packLempelZiv(dither(render(scene, width, height), width, height));
  let back = '';
  for (let copy = 0; copy < 40; copy++) back = renderMarkdown(`${GREETING}\n\nCard ${number}, copy ${copy}.`);
  const card = JSON.stringify({ number, width, height, crc: crc32(packed), picture: packed, back });
  return JSON.parse(card);
}

const cards = Number(process.argv[2] ?? 24);
let bytes = 0;
let seal = 0;
for (let number = 0; number < cards; number++) {
  const card = printCard(number, 240, 160);
  bytes += card.picture.length;
  seal = (seal ^ card.crc) >>> 0;
}
console.log(`${cards} cards, ${bytes} bytes of ink, seal ${seal.toString(16)}`);

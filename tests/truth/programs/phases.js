// Four functions, each busy alone for a known time. A line of output names it and its time on CLOCK_MONOTONIC, the
// clock of `perf record -k mono`; so every sample of the main thread in that time has one right answer.
'use strict';

function mandelbrot(size) {
  let inside = 0;
  for (let row = 0; row < size; row++) {
    const ci = (2 * row) / size - 1;
    for (let column = 0; column < size; column++) {
      const cr = (3 * column) / size - 2;
      let zr = 0;
      let zi = 0;
      let steps = 0;
      while (steps < 50 && zr * zr + zi * zi < 4) {
        const next = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = next;
        steps++;
      }
      if (steps === 50) inside++;
    }
  }
  return inside;
}

function sieve(limit) {
  const composite = new Uint8Array(limit + 1);
  let primes = 0;
  for (let candidate = 2; candidate <= limit; candidate++) {
    if (composite[candidate]) continue;
    primes++;
    for (let multiple = candidate * candidate; multiple <= limit; multiple += candidate) {
      composite[multiple] = 1;
    }
  }
  return primes;
}

function collatz(limit) {
  let longest = 0;
  for (let start = 1; start <= limit; start++) {
    let length = 1;
    let value = start;
    while (value !== 1) {
      if (value % 2 === 0) {
        value = value / 2;
      } else {
        value = 3 * value + 1;
      }
      length++;
    }
    longest = Math.max(longest, length);
  }
  return longest;
}

function scramble(rounds) {
  let a = 1;
  let b = 2;
  let c = 3;
  for (let round = 0; round < rounds; round++) {
    a = (a + b) | 0;
    c = (c ^ a) | 0;
    b = (b + ((c << 13) | (c >>> 19))) | 0;
    a = (a ^ (b >>> 5)) | 0;
    c = Math.imul(c, 0x9e3779b1);
    b = (b - c) | 0;
  }
  return a ^ b ^ c;
}

// Milliseconds are those of the processor: beside other work there are as many samples.
function busy(work, argument, milliseconds) {
  const start = process.hrtime.bigint();
  const end = process.cpuUsage().user + milliseconds * 1000;
  let sum = 0;
  while (process.cpuUsage().user < end) sum = (sum + work(argument)) | 0;
  const phase = { function: work.name, start_ns: Number(start), end_ns: Number(process.hrtime.bigint()) };
  console.log('phase ' + JSON.stringify({ ...phase, result: sum }));
}

const milliseconds = Number(process.argv[2] ?? 1000);
const works = [[mandelbrot, 200], [sieve, 200000], [collatz, 5000], [scramble, 200000]];
for (const [work, argument] of works) {
  for (let warm = 0; warm < 300; warm++) work(argument);
}
for (const [work, argument] of works) busy(work, argument, milliseconds);

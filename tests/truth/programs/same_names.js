// usage: same_names.js MILLISECONDS,...
//
// Two methods of one name and four functions without a name, two of them on one line. Each is busy alone for the number of
// milliseconds of processor time at its place; a line of output states its place, and start and end in that time.
const now = () => {
  const used = process.cpuUsage();
  return (used.user + used.system) * 1000;
};

class P {
  run(n, sum) { for (let i = 0; i < n; i++) sum = (sum * 31 + i) | 0; return sum; }
}

class Q {
  run(n, sum) { for (let i = 0; i < n; i++) sum = (sum * 17 ^ i) | 0; return sum; }
}

const nameless = [
  (() => (n, sum) => { for (let i = 0; i < n; i++) sum = (sum * 13 + i) | 0; return sum; })(),
  (() => (n, sum) => { for (let i = 0; i < n; i++) sum = (sum * 11 ^ i) | 0; return sum; })(),
  ...[(n, sum) => { for (let i = 0; i < n; i++) sum = (sum * 7 + i) | 0; return sum; }, (n, sum) => { for (let i = 0; i < n; i++) sum = (sum * 5 ^ i) | 0; return sum; }],
];

const p = new P(), q = new Q();
const works = [(n, s) => p.run(n, s), (n, s) => q.run(n, s), ...nameless];
const rounds = process.argv[2].split(",").map(Number);
// The order in which V8 compiles them depends on the argument.
const order = rounds.map((_, i) => i).sort((a, b) => rounds[a] - rounds[b]);
let warm = 0;
for (const at of order) for (let i = 0; i < 3000; i++) warm += works[at](500, i);
for (const at of order) {
  const start = now();
  let sum = warm;
  while (now() < start + rounds[at] * 1000000) sum = works[at](20000, sum);
  console.log(`phase {"function": "${at}", "start_ns": ${start}, "end_ns": ${now()}, "result": ${sum}}`);
}

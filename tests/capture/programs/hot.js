// inner_hot is busy for half a second of processor time, called by outer_warm.
function inner_hot(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += Math.sqrt(i % 97);
  return sum;
}

function outer_warm(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += inner_hot(20000);
  return sum;
}

const used = () => process.cpuUsage().user;
const end = used() + 500_000;
let total = 0;
while (used() < end) total += outer_warm(20);
console.log(total > 0 ? "done" : "nothing");

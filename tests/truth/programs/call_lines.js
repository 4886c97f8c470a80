// Functions that are called on known lines.
function first(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum * 31 + i) | 0;
  return sum;
}

function second(n) {
  let sum = 1;
  for (let i = 0; i < n; i++) sum = (sum * 17 ^ i) | 0;
  return sum;
}

function caller(k) {
  let sum = k;
  sum += first(4000); // called: first
  sum ^= k * 3;
  sum += second(4000); // called: second
  sum ^= k * 5;
  if ((k & 1) === 0) {
    sum += first(2000); // called: first
  } else {
    sum -= second(2000); // called: second
  }
  return sum;
}

// Time of the processor: beside other work there are as many samples.
const until = process.cpuUsage().user + process.argv[2] * 1000;
let sum = 0;
for (let k = 0; process.cpuUsage().user < until; k++) sum = (sum + caller(k)) | 0;
console.log(sum);

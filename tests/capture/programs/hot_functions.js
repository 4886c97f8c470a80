// outer_warm calls inner_hot; the value of the script is outer_warm.
function inner_hot(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += Math.sqrt(i % 97);
  return sum;
}

function outer_warm(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += inner_hot(20000);
  return /m+/.test("summa") ? sum : 0;
}

outer_warm;

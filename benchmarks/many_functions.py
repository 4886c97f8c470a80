"""Writes a JavaScript program of many functions; the output is deterministic."""

from collections.abc import Iterator
from pathlib import Path


def write(path: Path, num_functions: int) -> None:
    """Writes the program; `node PROGRAM [ROUNDS]` calls each function once a round."""
    with path.open("w", encoding="utf-8") as program:
        for number in range(num_functions):
            program.write("\n".join(_function(number)) + "\n")
        program.write("const functions = [\n")
        for first in range(0, num_functions, 10):
            last = min(first + 10, num_functions)
            program.write(" ".join(f"f{number}," for number in range(first, last)) + "\n")
        program.write("];\n" + _MAIN)


_MAIN = """\
const rounds = Number(process.argv[2] ?? 20);
let seal = 0;
for (let round = 0; round < rounds; round++) {
  for (let number = 0; number < functions.length; number++) {
    seal = (seal ^ functions[number](round, number)) | 0;
  }
}
console.log(`${functions.length} functions, ${rounds} rounds, seal ${seal}`);
"""


def _numbers(seed: int) -> Iterator[int]:
    """Pseudo-random numbers by xorshift, the same with every version of Python."""
    state = (seed * 0x9E3779B1 + 1) & 0xFFFFFFFF
    while True:
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        yield state


def _function(number: int) -> Iterator[str]:
    numbers = _numbers(number)
    yield f"function f{number}(x, y) {{"
    yield "  let sum = y;"
    for step in range(5 + next(numbers) % 8):
        factor, mask = next(numbers) % 97 + 2, next(numbers) % 1024
        match next(numbers) % 4:
            case 0:
                yield f"  sum = (sum + x * {factor}) | 0;"
            case 1:
                yield f"  if ((sum & {mask}) > {mask // 2}) {{"
                yield f"    x = (x ^ {factor}) + {step};"
                yield "  } else {"
                yield f"    y = Math.max(y, {step});"
                yield "  }"
            case 2:
                yield f"  const t{step} = (sum >>> {factor % 31}) - y;"
                yield f"  sum = t{step} > x ? t{step} - {mask} : (t{step} + x) | 0;"
            case _:
                yield f"  y = (y + sum % {factor}) & 0xffff;"
    if number > 0:
        # Occasional calls of earlier functions make stacks deeper than two.
        yield f"  if ((sum & 63) === {next(numbers) % 64}) return f{next(numbers) % number}(y, 1);"
    yield "  return (sum + x - y) | 0;"
    yield "}"

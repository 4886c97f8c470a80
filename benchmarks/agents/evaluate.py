"""Asks the questions of `planted_causes.py`, and prints how many calls and bytes each cause takes."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests")]

from planted_causes import CASES, MAX_BYTES, MAX_CALLS, Case  # noqa: E402

from mcp_client import serving  # noqa: E402 - found in the directories above


@dataclass(frozen=True)
class Result:
    """What a case took.

    Attributes:
        texts: The answers.
        missing: Patterns of the cause that no answer contains.
        seconds: Time of all calls.
    """

    texts: tuple[str, ...]
    missing: tuple[str, ...]
    seconds: float

    @property
    def num_bytes(self) -> int:
        """Size of the answers."""
        return sum(len(text.encode()) for text in self.texts)


def ask(case: Case, directory: Path) -> Result:
    """Builds the recording of a case and asks its questions."""
    case.build(directory)
    with serving(directory) as client:
        client.initialize()
        start = time.monotonic()
        # An error is an answer, too: it may list what a name stands for.
        texts = tuple(client.call(tool, **arguments)[0] for tool, arguments in case.calls)
        seconds = time.monotonic() - start
    missing = tuple(one for one in case.answers if not any(re.search(one, text, re.MULTILINE) for text in texts))
    return Result(texts, missing, seconds)


def main() -> int:
    """Prints the table, of the causes that were named or of all; 1 where a cause is not found."""
    num_found = 0
    cases = [case for case in CASES if case.name in sys.argv[1:]] or CASES
    print("| cause | calls | bytes | time | found |")
    print("|---|---|---|---|---|")
    for case in cases:
        with tempfile.TemporaryDirectory() as directory:
            result = ask(case, Path(directory))
        is_found = not result.missing and len(result.texts) <= MAX_CALLS and result.num_bytes <= MAX_BYTES
        num_found += is_found
        found = "yes" if is_found else f"no: {result.missing}"
        print(f"| {case.name} | {len(result.texts)} | {result.num_bytes:,} | {result.seconds:.2f} s | {found} |")
    print(
        f"\n{num_found} of {len(cases)} causes are in the answers to at most {MAX_CALLS} calls and {MAX_BYTES:,} bytes"
    )
    return 0 if num_found == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())

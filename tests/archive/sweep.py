"""Compares saved profiles with their recordings: every question, for every recording of the corpus.

    PYTHONPATH=tests python tests/archive/sweep.py [--part 1/2] [--default] [TEXT...]

Prints what differs, then how much was compared; the exit code is 1 where something differs. TEXT selects sets whose
names contain it. `--default` saves with the default options, without machine code and sources.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from arro3.core import Table
from every_recording import RecordingSet, every_set
from questions import answer_to, questions

import perfuse as pf

ALL: dict[str, Any] = {"code": "all", "sources": "used"}
WITHOUT_INPUTS = ("`perfuse pack --inputs` saves them",)
NOT_SAVED = (*WITHOUT_INPUTS, "`perfuse pack --code all` saves it", "`perfuse pack --code sampled` saves that")
"""Parts of errors that name the option that was not given."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A question with two answers."""

    question: str
    expected: str
    found: str

    def __str__(self) -> str:
        at = next((n for n, (a, b) in enumerate(zip(self.expected, self.found, strict=False)) if a != b), 0)
        begin = max(at - 80, 0)
        return f"{self.question}\n  {self.expected[begin : at + 160]!r}\n  {self.found[begin : at + 160]!r}"


def differences(
    one: RecordingSet, folder: Path, *, is_asked: Callable[[], bool] = lambda: True, **options: Any
) -> Iterator[Difference | None]:
    """What differs between the recordings and their saved profile; None for each equal answer.

    Each question is asked where `is_asked` is true.

    Raises:
        PerfuseError: The recordings cannot be opened together, or not saved.
    """
    path = folder / "saved.perfuse"
    refusals = WITHOUT_INPUTS if options.get("code") == "all" else NOT_SAVED
    with pf.fuse(*one.paths, **one.options) as profile:
        profile.save(path, **options)
        with pf.fuse(path) as saved:
            pairs = zip(questions(profile, folder / "out"), questions(saved, folder / "out"), strict=True)
            for (name, expect), (same, find) in pairs:
                assert name == same
                if not is_asked():
                    continue
                expected, found = answer_to(expect), answer_to(find)
                if isinstance(expected, Exception):
                    yield Difference(name, f"{type(expected).__name__}: {expected}", _text(found))
                elif expected == found or any(text in str(found) for text in refusals):
                    yield None
                else:
                    yield Difference(name, _text(expected), _text(found))
    path.unlink()


def _text(answer: Any) -> str:
    if isinstance(answer, Table):
        return str(answer.to_struct_array().to_pylist())
    return answer.decode("utf-8", "backslashreplace") if isinstance(answer, bytes) else str(answer)


def main() -> int:
    """Compares, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    parser.add_argument("--without", metavar="TEXT", help="Leave out sets whose names contain it.")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="Only the I-th of N parts.")
    parser.add_argument("--default", action="store_true", help="Save with the default options.")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    num_sets = num_equal = num_different = 0
    for number, one in enumerate(every_set()):
        if number % parts != part - 1 or not all(text in one.name for text in given.texts):
            continue
        if given.without is not None and given.without in one.name:
            continue
        if missing := [path for path in one.paths if not path.exists()]:
            parser.error(f"{missing[0]} is missing: PERFUSE_CORPUS names the corpus")
        started, different = time.monotonic(), 0
        try:
            with tempfile.TemporaryDirectory() as folder:
                for found in differences(one, Path(folder), **({} if given.default else ALL)):
                    num_equal += found is None
                    if found is not None:
                        different += 1
                        print(f"{one.name}: {found}", flush=True)
        except pf.PerfuseError as error:
            print(f"{one.name}: not compared: {error}", flush=True)
            continue
        num_sets, num_different = num_sets + 1, num_different + different
        seconds = time.monotonic() - started
        print(f"{one.name}: {f'{different} DIFFERENT' if different else 'same'}, {seconds:.1f} s", flush=True)
    print(f"{num_sets} sets of recordings: {num_equal} answers are equal, {num_different} differ")
    return 1 if num_different else 0


if __name__ == "__main__":
    raise SystemExit(main())

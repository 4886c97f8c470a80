"""V8: the line and column of every sampled address in optimized code are the ones V8 itself prints for it.

V8 writes debug entries 0x40 bytes too high. Read as they are, which is what `perf inject` does, most
samples of these functions get a wrong line: `test_perf_is_shifted` measures how many, so that the fix is
known to be one.
"""

from collections import Counter
from dataclasses import dataclass

import pytest

from needs import need

from . import v8_listing
from .producers import PROGRAMS, Run, function_lines, node_of, record
from .sampled import Leaf, leaves, share

SCRIPT = PROGRAMS / "phases.js"
ELF_HEADER_BYTES = 0x40


@dataclass(frozen=True, slots=True)
class Recorded:
    run: Run
    leaves: list[Leaf]
    listings: dict[int, v8_listing.Listing]


@pytest.fixture(scope="module", params=["system", "wheel"])
def node(request: pytest.FixtureRequest) -> str:
    """The node that is installed, and node 24 from PyPI, which damages most file names in its dumps."""
    return node_of(request.param)


@pytest.fixture(scope="module")
def recorded(node: str, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    need("perf")
    directory = tmp_path_factory.mktemp("v8")
    printing = ["--print-opt-code", "--redirect-code-traces", "--redirect-code-traces-to=code.asm"]
    run = record([node, "--perf-prof", *printing, SCRIPT, "1000"], directory)
    listings = v8_listing.read(directory / "code.asm")
    uses = Counter(listing.start_address for listing in listings)
    return Recorded(
        run,
        leaves(run.perf_data, run.dump),
        {x.start_address: x for x in listings if uses[x.start_address] == 1},
    )


@pytest.mark.truth(recording="perf_node", path="api:Profile.sql", source="the program's own times")
def test_samples_are_in_the_function_that_was_busy(recorded: Recorded) -> None:
    for phase in recorded.run.phases:
        lines = function_lines(SCRIPT, f"function {phase.function}(")
        inside = [leaf for leaf in recorded.leaves if phase.start_ns <= leaf.ts_ns <= phase.end_ns]
        # The rest is in builtins that code of the lower tiers calls.
        scripted = [leaf for leaf in inside if leaf.linkage_name.startswith("JS:")]
        assert share(len(scripted), len(inside), at_least=200) >= 0.95, phase.function
        right = [leaf for leaf in scripted if leaf.name == phase.function and leaf.line in {*lines, None}]
        assert share(len(right), len(scripted), at_least=200) >= 0.99, phase.function
        # V8 writes no debug entries at all for some Maglev code.
        with_line = [leaf for leaf in right if leaf.line is not None]
        assert share(len(with_line), len(right), at_least=200) >= 0.95, phase.function
        assert {leaf.path for leaf in with_line} == {str(SCRIPT)}


@pytest.mark.truth(recording="perf_node", path="api:Profile.sql", source="V8: --print-opt-code")
def test_lines_and_columns_are_v8s_own(recorded: Recorded) -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    right, wrong = 0, Counter[tuple[str, int, object, object]]()
    for leaf, listing in _listed(recorded):
        position = listing.position(leaf.code_offset)
        truth = v8_listing.line_and_column(script, position) if position is not None else (None, None)
        if (leaf.line, leaf.column) == truth:
            right += 1
        else:
            wrong[leaf.name, leaf.code_offset, truth, (leaf.line, leaf.column)] += 1
    assert share(right, right + wrong.total(), at_least=800) >= 0.99, wrong.most_common(10)


def test_perf_is_shifted(recorded: Recorded) -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    right = total = 0
    for leaf, listing in _listed(recorded):
        total += 1
        truth, shifted = (listing.position(leaf.code_offset - skew) for skew in (0, ELF_HEADER_BYTES))
        if truth is not None and shifted is not None:
            right += v8_listing.line_and_column(script, truth)[0] == v8_listing.line_and_column(script, shifted)[0]
    assert share(right, total, at_least=800) < 0.9


def _listed(recorded: Recorded) -> list[tuple[Leaf, v8_listing.Listing]]:
    """Samples in the program's own functions whose code V8 printed."""
    own = {phase.function for phase in recorded.run.phases}
    return [
        (leaf, recorded.listings[leaf.start_address])
        for leaf in recorded.leaves
        if leaf.name in own and leaf.start_address in recorded.listings
    ]

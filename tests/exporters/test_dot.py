"""Graphviz: graphs that it accepts, and the edges that llvm-xray draws."""

import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from tools import output_of

import perfuse
from needs import need
from perfuse.analysis.callgraph import CallGraph
from perfuse.analysis.diff import Difference
from perfuse.analysis.function_graph import function_graph
from perfuse.analysis.latency import CallAccount
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export
from perfuse.exporters.dot_diff import dot_diff_lines
from profiles import HOSTILE, hostile

EDGE = re.compile(r'[fF](\d+) -> [fF](\d+) \[label="([\d,]+)')
DIFFER = {
    # Calls that were written twice are counted twice there: see tests/corpus/test_xray_account.py.
    "basic-fork-v3": {(2, 2)},
    "blocked-thread-dup-v5": {(2, 2), (4, 4)},
    "threads_nc-v3": {(1, 1), (2, 2), (3, 3), (4, 4), (5, 2), (5, 5)},
    # Entries were in lost buffers: llvm-xray with `--keep-going` has other stacks after their exits.
    "threads2-tinybuf-v5": {(1, 1), (5, 1), (6, 5)},
    "threads4-rotate-v5": {(2, 2), (5, 1), (5, 2), (5, 3), (5, 4), (6, 5)},
}
"""Edges that llvm-xray counts differently, by log; callers and callees by the log's numbers."""


def exported(profile: Any, **options: Any) -> str:
    out = io.BytesIO()
    export(profile, out, to="dot", **options)
    return out.getvalue().decode()


def _edges(text: str) -> dict[tuple[int, int], int]:
    return {(int(a), int(b)): int(count.replace(",", "")) for a, b, count in EDGE.findall(text)}


def test_small_profile_is_this_file(small: FakeProfile, golden: Any) -> None:
    golden("small.dot", exported(small))


def test_edges_of_llvm_xray(xray_corpus: Path) -> None:
    graphs = sorted((xray_corpus / "expected").glob("*.graph.dot"))
    assert len(graphs) == 27
    for graph in graphs:
        name = graph.name.split(".")[0]
        (log,) = xray_corpus.glob(f"*/{name}.xray")
        profile = perfuse.fuse(log)
        numbers = dict(profile.sql("SELECT function_id, native_id FROM functions").fetchall())
        ours = {(numbers[a], numbers[b]): n for (a, b), n in _edges(exported(profile, min_share=0.0)).items()}
        # F0 stands for the code outside of all calls.
        theirs = {(a, b): n for (a, b), n in _edges(graph.read_text()).items() if a}
        different = {ends for ends in {*ours, *theirs} if ours.get(ends) != theirs.get(ends)}
        assert different == DIFFER.get(name, set()), name


def test_labels_have_the_requested_statistics(xray_corpus: Path) -> None:
    profile = perfuse.fuse(xray_corpus / "fdr" / "threads4-v5.xray", maps={0: xray_corpus / "bin" / "threads22"})
    text = exported(profile, node_label="count", node_color="none", edge_label="p99", edge_color="none", min_share=0.0)
    account = CallAccount(profile, edges=True)
    for one in account.functions():
        calls = one.latency.num_calls
        assert f'\\n{calls:,} call{"s" if calls > 1 else ""}", tooltip=' in text
    edges = [one for one in CallGraph(account).edges() if one.caller]
    assert text.count(" -> ") == len(edges) > 5
    assert text.count('penwidth="0.60"') == len(edges)
    assert "label=" not in exported(profile, edge_label="none").split("->", 1)[1]


def test_light_functions_are_left_out(small: FakeProfile) -> None:
    whole, part = (exported(small, min_share=share) for share in (0.0, 0.5))
    assert (whole.count("fillcolor"), part.count("fillcolor")) == (7, 1)
    assert "6 functions with less than 50.00% of it left out" in part


def test_graphviz_draws_hostile_names() -> None:
    need("dot")
    out = io.BytesIO()
    export(hostile(), out, to="dot", min_share=0.0)
    both = function_graph(hostile(), edges=True)
    difference = "\n".join(dot_diff_lines(Difference([both], [both]), min_share=0.0))
    for graph in (out.getvalue(), difference.encode("utf-8")):
        drawn = ET.fromstring(output_of("dot", "-Tsvg", given=graph))
        texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
        for name in (HOSTILE[0], HOSTILE[2], r"line\nbreak\r\ttab\x00null", HOSTILE[5]):
            assert name in texts


def test_colours_of_a_difference_show_its_sign(xray_corpus: Path) -> None:
    program = {0: xray_corpus / "bin" / "small22"}
    logs = [xray_corpus / "fdr" / "small-v5.xray", xray_corpus / "basic" / "basic-small-v3.xray"]
    sides = [function_graph(perfuse.fuse(log, maps=program), edges=True) for log in logs]
    difference = Difference(*([one] for one in sides))
    signs = set()
    drawn = "\n".join(dot_diff_lines(difference, min_share=0.0))
    for one in difference.functions:
        (colour,) = re.findall(rf'^  f{one.key} \[.*fillcolor="#(\w+)"', drawn, re.MULTILINE)
        red, green = int(colour[:2], 16), int(colour[2:4], 16)
        assert (red > green) == (one.figures["self"].difference > 0)
        signs.add(red > green)
    assert signs == {True, False}


def test_refusals(small: FakeProfile) -> None:
    profile = small
    with pytest.raises(UsageError, match="edge_label of samples is one of none, count, self, total, not 'p99'"):
        exported(profile, edge_label="p99")
    with pytest.raises(UsageError, match="from 0 to 1"):
        exported(profile, min_share=1.0)
    with pytest.raises(UsageError, match="no samples of event"):
        exported(profile, event="cycles")
    with pytest.raises(ExportError, match="neither calls nor samples"):
        exported(FakeProfile())

"""Flame graphs as files: complete, escaped, self-contained. tests/browser tests the page itself."""

import base64
import html
import io
import json
import re
import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fake_profile import FakeProfile
from small_profile import small_profile

import perfuse
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export
from perfuse.exporters.palette import ORIGINS, hexadecimal
from perfuse.exporters.svg import visible
from perfuse.pictures.flame_graph import FlameGraph
from perfuse.reports.text import printable
from profiles import HOSTILE, hostile, narrow_boxes

SVG = "{http://www.w3.org/2000/svg}"


def exported(profile, to, **options) -> str:
    out = io.BytesIO()
    export(profile, out, to, **options)
    return out.getvalue().decode()


def picture(profile, **options) -> ElementTree.Element:
    return ElementTree.fromstring(exported(profile, "svg", **options))


def boxes(svg: ElementTree.Element) -> dict[str, tuple[float, float, list[str]]]:
    """Left, width and tooltip of each box by name."""
    found = {}
    for group in svg.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        name, *facts = group.findtext(f"{SVG}title").split("\n")
        found[name] = (float(rect.get("x")), float(rect.get("width")), facts)
    return found


def data(page: str) -> tuple[dict, bytes]:
    packed = re.search(r'id="profile">([^<]*)</script>', page)[1]
    raw = zlib.decompress(base64.b64decode(packed))
    (length,) = struct.unpack_from("<I", raw)
    return json.loads(raw[4 : 4 + length]), raw[4 + length + -(4 + length) % 8 :]


def test_a_picture_has_each_box_where_it_belongs():
    found = boxes(picture(small_profile(), width=724))
    # 700 pixels for seven samples.
    assert {name: (left, width) for name, (left, width, _) in found.items()} == {
        "all": (12, 699),
        "main": (12, 499),
        "run": (212, 99),
        "add": (12, 199),
        "[unknown] app": (312, 99),
        "sys_read": (412, 99),
        "Entry": (512, 99),
        "[no stack]": (612, 99),
    }
    assert found["add"][2] == ["28.57% · 2 ms · 2 samples", "Inlined (turbofan)", "lib.js:2"]


def test_an_inverted_picture_starts_from_what_ran():
    svg = picture(small_profile(), inverted=True, width=724)
    tops = {
        float(rect.get("y")): rect for rect in svg.iter(f"{SVG}rect") if rect.get("class", "").startswith("inlined-")
    }
    assert min(tops) == min(float(rect.get("y")) for rect in svg.iter(f"{SVG}rect") if "-" in rect.get("class", ""))


def test_pictures_by_samples_and_of_threads():
    p = small_profile()
    p.add(
        "samples", sample_id=9, ts_ns=9, thread_id=0, stack_id=6, weight=93_000_000, weight_unit="ns", event="cpu-clock"
    )
    assert boxes(picture(p, width=724))["Entry"][1] == pytest.approx(657, abs=1)
    assert boxes(picture(p, width=724, weight="samples"))["Entry"][1] == pytest.approx(174, abs=1)
    assert "main" not in boxes(picture(p, threads=(1,)))


@pytest.mark.parametrize("weight", ["weight", "samples"])
def test_narrow_boxes_of_a_picture_are_one_together(weight):
    """Half of the samples are of 4,000 functions, a sixth of a pixel each: that half is drawn, and stated."""
    found = boxes(picture(narrow_boxes(), width=1200, weight=weight))
    assert set(found) == {"all", "main", "wide", "boxes too narrow to be drawn one by one"}
    left, width, facts = found["boxes too narrow to be drawn one by one"]
    assert (left, width) == (pytest.approx(600, abs=1), pytest.approx(587, abs=1))
    assert facts == ["50.00% · 4 s · 4,000 samples"]
    few = boxes(picture(narrow_boxes(20), width=1200, weight=weight))
    assert len(few) == 23, "all of them are drawn"


def test_names_cannot_break_out_of_a_picture():
    svg = picture(hostile())
    names = boxes(svg)
    assert {visible(name) or "[unknown] null" for name in HOSTILE[:6]} <= set(names)
    tags = {element.tag.removeprefix(SVG) for element in svg.iter()}
    assert tags == {"svg", "title", "style", "rect", "text", "g"}
    assert not any(attribute.startswith("on") for element in svg.iter() for attribute in element.attrib)


def test_names_cannot_break_out_of_a_page():
    page = exported(hostile(), "html")
    assert page.count("<script") == page.count("</script>") == 2
    assert "{{" not in page.replace(html.escape(printable(hostile().title)), "")
    description, _ = data(page)
    assert set(HOSTILE) - {""} <= set(description["symbols"]["name"])


def test_a_page_needs_nothing_else():
    page = exported(small_profile(), "html")
    assert not re.search(r"""(?:src|href)\s*=|@import|url\(|https?://(?!www\.w3\.org)""", page)
    assert "default-src 'none'" in page
    assert re.search(r"^(?:import|export)\b", page, re.MULTILINE) is None


def test_the_kernel_is_one_module():
    page, picture = (exported(small_profile(), to) for to in ("html", "svg"))
    assert "[kernel]" in data(page)[0]["symbols"]["module"]["texts"]
    assert "[kernel]</title>" in picture
    assert "kallsyms" not in picture


def test_a_page_holds_the_tree_by_thread():
    description, nodes = data(exported(small_profile(), "html", inverted=True))
    num = len(nodes) // 24
    assert description["inverted"] is True
    assert [label for _, label in description["threads"]] == ["app 10/10", "worker;1 10/11"]
    samples = struct.unpack_from(f"<{num}I", nodes, 12 * num)
    assert sum(samples) == 7
    assert [description["symbols"]["name"][i] for i in struct.unpack_from(f"<{num}I", nodes, 4 * num)].count("run") == 2


@pytest.mark.parametrize("to", ["html", "svg"])
def test_a_profile_without_samples_has_no_graph(to):
    with pytest.raises(ExportError, match="there are no samples"):
        exported(FakeProfile("nothing"), to)


@pytest.mark.parametrize("to", ["html", "svg"])
def test_the_same_profile_gives_the_same_bytes(to):
    assert exported(small_profile(), to) == exported(small_profile(), to)


def test_a_flame_graph_saves_and_shows_itself(tmp_path):
    flame = FlameGraph.of(small_profile(), inverted=True)
    flame.save(tmp_path / "flame.svg", width=400)
    assert 'width="400"' in (tmp_path / "flame.svg").read_text()
    flame.save(tmp_path / "flame.html")
    assert data((tmp_path / "flame.html").read_text())[0]["inverted"]
    with pytest.raises(UsageError, match=r"\.html or \.svg"):
        flame.save(tmp_path / "flame.folded")
    with pytest.raises(UsageError, match=r"\.html or \.svg"):
        flame.save(tmp_path / "flame.png")
    assert not (tmp_path / "flame.png").exists()
    assert flame._repr_html_().startswith("<iframe srcdoc=")
    assert flame._repr_html_().count("<") == 2


def test_colours_are_those_of_the_standard():
    # Values of the CSS Color 4 text and of its sample code.
    assert hexadecimal(1, 0, 0) == "#ffffff"
    assert hexadecimal(0, 0, 0) == "#000000"
    assert hexadecimal(0.627955, 0.257683, 29.2339) == "#ff0000"
    assert hexadecimal(0.519752, 0.176858, 142.4953) == "#008000"
    assert len({origin.name for origin in ORIGINS}) == len(ORIGINS)


def test_sums_over_calls_are_not_samples(tmp_path):
    """A trace has calls and their time; the number of sums over calls is not a number of samples."""
    trace = next((Path(__file__).parents[2] / "examples" / "xray_server").glob("xray-log.*"))
    profile = perfuse.fuse(trace)
    page, picture = tmp_path / "page.html", tmp_path / "picture.svg"
    profile.export(page)
    profile.export(picture)
    assert data(page.read_text())[0]["counted"] is False
    assert "372 ms · wall-time</text>" in picture.read_text()
    assert "samples" not in picture.read_text()
    assert data(exported(small_profile(), "html"))[0]["counted"] is True


def test_the_picture_of_a_heap_counts_no_samples() -> None:
    log = Path(__file__).parents[2] / "examples" / "mono_sessions" / "sessions.mlpd.gz"
    drawn = exported(perfuse.fuse(log).heap().retained_sizes, "svg")
    assert "KiB" in drawn
    assert "sample" not in drawn

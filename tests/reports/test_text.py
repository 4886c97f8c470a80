"""Text for a terminal: printable characters, widths, shortening."""

import io
import json
import re
from pathlib import Path
from unicodedata import combining, east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfuse as pf
from perfuse import Hex
from perfuse.filters.names import function_text
from perfuse.reports.grid import Column, bar, grid, sparkline
from perfuse.reports.json_text import address_value, is_address, json_text
from perfuse.reports.names import module_name, module_text
from perfuse.reports.profile import profile_lines, profile_report
from perfuse.reports.stack_views import StackRequest, stack_lines, stack_report
from perfuse.reports.text import Role, Style, cell_width, cut, cut_middle, pad, printable
from perfuse.reports.units import bytes_text, duration_text, percent_text


@given(st.text())
def test_control_characters_are_escaped(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


@given(st.text().map(printable), st.integers(1, 40))
def test_cut_text_fits_and_is_marked(text: str, width: int) -> None:
    for shorten in (cut, cut_middle):
        shown = shorten(text, width)
        assert cell_width(shown) <= width
        assert shown == text or "…" in shown
    assert cell_width(pad(cut(text, width), width)) == width


def test_cutting_the_middle_keeps_both_ends() -> None:
    assert cut_middle("/usr/lib/x86_64-linux-gnu/libc.so.6", 20) == "/usr/li…nu/libc.so.6"


@given(st.text().map(printable))
def test_the_width_is_the_sum_over_characters(text: str) -> None:
    widths = (0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)
    assert cell_width(text) == sum(widths)


def test_wide_and_combining_characters_are_measured() -> None:
    assert cell_width("日本") == 4
    assert cell_width("e\u0301") == 1
    assert cut("日本語", 4) == "日…"


ROWS = st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60)), max_size=5)


@given(ROWS, st.integers(40, 120))
def test_grids_fit_their_width(rows: list[tuple[str, str]], width: int) -> None:
    columns = [Column("name", shrinks=8), Column("where", shrinks=8)]
    for line in grid(columns, rows, Style(width=width)):
        assert cell_width(line) <= width


def test_a_grid() -> None:
    columns = [Column("n", right=True), Column("name", role=Role.NAME), Column("note")]
    lines = list(grid(columns, [["5", "a", "x"], ["10", "long", ""]], Style()))
    assert lines == ["   n  name  note", "   5  a     x", "  10  long"]
    assert list(grid(columns, [], Style())) == ["  n  name  note"]


def test_colour_is_not_counted() -> None:
    plain = list(grid([Column("a", role=Role.NAME), Column("b")], [["x", "y"], ["long", "z"]], Style()))
    painted = list(grid([Column("a", role=Role.NAME), Column("b")], [["x", "y"], ["long", "z"]], Style(colour=True)))
    assert painted[1] == "  \x1b[36mx\x1b[0m     y"
    assert plain[1] == "  x     y"


@pytest.mark.parametrize(("share", "drawn"), [(0, ""), (0.5, "██"), (1, "████"), (7, "████"), (0.01, ""), (0.04, "▏")])
def test_bars(share: float, drawn: str) -> None:
    assert bar(share, 1.0, 4) == drawn.ljust(4)


def test_sparklines() -> None:
    assert sparkline([0, 1, 4, 8]) == "·▂▅█"
    assert sparkline([0, 0]) == "··"


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (3_140, "3.14 µs"),
        (12_000_000, "12.0 ms"),
        (1_420_000_000, "1.42 s"),
        (125_000_000_000, "2 min 05 s"),
        (3 * 3_600_000_000_000 + 420_000_000_000, "3 h 07 min"),
        (-5_000, "-5.00 µs"),
    ],
)
def test_durations(ns: int, shown: str) -> None:
    assert duration_text(ns) == shown


def test_sizes_and_parts() -> None:
    assert [bytes_text(n) for n in (0, 1023, 1024, 1_952_834, 545_000_000)] == [
        "0 B",
        "1,023 B",
        "1.0 KiB",
        "1.9 MiB",
        "520 MiB",
    ]
    assert percent_text(1, 3) == "33.3%"
    assert percent_text(1, 0) == "-"


def test_functions_of_one_text_are_shown_whole(tmp_path: Path) -> None:
    overloads = ["ns::start(int)", "ns::start(std::vector<int> const&)"]
    recording = tmp_path / "overloads.collapsed"
    lines = [f"main;{name} {7 + number}\n" for number, name in enumerate([*overloads, "ns::stop(int)"])]
    recording.write_text("".join(lines), encoding="ascii")
    with pf.fuse(recording) as profile:
        report = "\n".join(profile_lines(profile_report(profile), Style()))
        tree = "\n".join(stack_lines(stack_report(profile, StackRequest(tree=True, limit=None)), Style()))
    for text in (report, tree):
        assert all(name in text for name in overloads)
        assert "ns::stop" in text
        assert "ns::stop(" not in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("R<int> ns::Scavenger::Visit<A, B<C>>(ns::Object*, int) const", "ns::Scavenger::Visit<…>"),
        ("v8::internal::(anonymous namespace)::Invoke(v8::internal::Isolate*)", "v8::internal::(anonymous)::Invoke"),
        ("bool std::operator<(a, b)", "std::operator<"),
        ("bool std::operator< <int, b<c> >(a, b)", "std::operator< <…>"),
        ("V& std::map<K, V<int> >::operator[](K&&)", "std::map<…>::operator[]"),
        ("std::less<int>::operator()(int, int) const", "std::less<…>::operator()"),
        ("ns::A<int>::operator std::vector<int, b<int> >() const", "ns::A<…>::operator std::vector<…>"),
        ("void* ns::A::operator new[](unsigned long)", "ns::A::operator new[]"),
        ("decltype(auto) ns::f<A<&B::operator()>>(int)", "decltype(auto) ns::f<A<&B::operator()>>(int)"),
        ("long ns::f(std::string const&) [clone .cold]", "ns::f [clone .cold]"),
        ("ns::f(int) [clone .isra.0] [clone .part.1]", "ns::f [clone .isra.0] [clone .part.1]"),
        ("int32 [app] App::Fib(int32)[QuickJitted]", "App::Fib [QuickJitted]"),
        ("bool [app] App+<Iter>c__Iterator1::MoveNext()[Tier0]", "App+<Iter>c__Iterator1::MoveNext [Tier0]"),
        ("void [a] A+<B>c::X.I<C>.get()[Tier0]", "A+<B>c::X.I<…>.get [Tier0]"),
        ("<(A, B) as core::ops::Fn<(i32,)>>::call", "<(A, B) as core::ops::Fn<(i32,)>>::call"),
        ("std::f<1, (E)2>(int) const [clone .cold]", "std::f<…> [clone .cold]"),
        ("core::fmt::Formatter::pad", "core::fmt::Formatter::pad"),
        ("<A as B>::run", "<A as B>::run"),
        ("a::b<(", "a::b<("),
        ("f(int)", "f(int)"),
        ("", ""),
    ],
)
def test_function_names(name: str, shown: str) -> None:
    assert function_text(name) == shown


def test_module_names() -> None:
    assert module_text("/usr/lib/libc.so.6") == "libc.so.6"
    assert module_text("[kernel.kallsyms]_text") == module_text("[kernel]") == "[kernel]"
    assert module_name("[kernel.vmlinux]") == "[kernel]"
    assert module_name("/usr/lib/libc.so.6") == "/usr/lib/libc.so.6"
    assert module_text("[jit] V8") == "[jit] V8"


def test_json() -> None:
    value = {"a": Hex(255), "b": b"\x01\xff", "c": [Hex(1), 2**64 - 1], "d": float("nan"), "é": None}
    assert json.loads(json_text(value)) == {"a": "0xff", "b": "01ff", "c": ["0x1", 2**64 - 1], "d": None, "é": None}
    assert "é" in json_text(value)
    assert json.loads(json_text({"name": "a\ud800\x1b[m"})) == {"name": "a\\ud800\x1b[m"}


def test_json_text_is_that_of_python() -> None:
    """Also with empty lists and dictionaries, large numbers, and every character up to U+2FFF."""
    characters = "".join(map(chr, range(0x3000)))
    value = {"a": [], "b": {}, "c": [[{}], [1, -(2**70), 1.5e300, None, True, False]], characters: {"d": [characters]}}
    text = json_text(value)
    assert json.loads(text) == value
    controls = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
    python = json.dumps(value, indent=2, ensure_ascii=False)
    assert text == controls.sub(lambda found: f"\\u{ord(found[0]):04x}", python)


def test_addresses_are_recognized_by_column_name() -> None:
    assert [is_address(name) for name in ("address", "start_address", "addresses", "address_count")] == [
        True,
        True,
        True,
        False,
    ]
    assert address_value([16, None]) == ["0x10", None]


def test_style_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Style.of(io.StringIO()) == Style(colour=False, width=None)
    assert Style.of(io.StringIO(), "always").colour
    monkeypatch.setenv("COLUMNS", "90")
    assert Style.of(io.StringIO()).width == 90

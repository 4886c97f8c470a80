"""Generates pages of docs/reference from the code, and the field tables in docs/formats.

python docs/generate.py            # writes them
python docs/generate.py --check    # exits with 1 if one is out of date
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

import api
import truth_matrix

from perfuse import _core
from perfuse.cli.app import context_of
from perfuse.cli.verbs import VERBS
from perfuse.diagnostics import rules
from perfuse.exporters import TARGETS
from perfuse.exporters.contents import DATA

DOCS = Path(__file__).parent
NOTICE = "\n\n<!-- Generated from the code by docs/generate.py. -->\n"
COLUMNS = 96
FORMATS = re.compile(r"(<!-- formats -->\n).*?(<!-- end of formats -->\n)", re.DOTALL)
LAYOUTS = re.compile(r"(<!-- layouts of (\w+) -->\n).*?(<!-- end of layouts -->\n)", re.DOTALL)


def main() -> int:
    """Writes or checks every page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    check = parser.parse_args().check
    expected = {DOCS / "reference" / name: make().replace("\n", NOTICE, 1) for name, make in PAGES.items()}
    expected |= {page: _with_layouts(page.read_text(encoding="utf-8")) for page in (DOCS / "formats").glob("*.md")}
    expected[truth_matrix.OPEN_CELLS] = truth_matrix.open_cells()
    outdated = [
        path for path, text in expected.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in outdated:
        if check:
            print(f"{path.relative_to(DOCS.parent)} is out of date: run make docs", file=sys.stderr)
        else:
            path.write_text(expected[path], encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    return 1 if check and outdated else 0


def tables() -> str:
    """The common tables."""
    formats = _core.formats()
    out = [
        "# Tables\n",
        "All formats are decoded into these tables, which `profile.tables` and `perfuse query` read. Keys are "
        "`<singular>_id`; `pid` and `tid` are the operating system's; times are `*_ns` on the profile's clock; "
        "`start_address` and `end_address` are half-open; null means not recorded, 0 is a value. Rows made from "
        "a record end with `source_id, record_offset`: the file and the offset of the record.\n",
        'A column called `column` needs quotes in SQL: `"column"`.\n',
    ]
    for table in _core.tables():
        fillers = [f["title"] for f in formats if table["name"] in f["tables"]]
        out += [f"## {table['name']}\n", table["doc"] + "\n"]
        if fillers:
            out.append(f"Filled from {' and '.join(fillers)}.\n")
        rows = [(f"`{name}`", kind, "yes" if null else "", doc) for name, kind, null, doc in table["columns"]]
        out.append(_table(("column", "type", "null", "meaning"), rows))
    return "\n".join(out)


def diagnostics() -> str:
    """The diagnostics."""
    titles = {row["name"]: row["title"] for row in _core.formats()}
    titles |= {"fusing": "Joining files", "instrumentation_map": "XRay instrumentation maps"}
    out = [
        "# Diagnostics\n",
        "Each kind of deviation from a specification has a stable code. `perfuse check FILE` reports deviations; "
        "`perfuse explain CODE` prints the text of this page.\n",
        _table(
            ("severity", "meaning"),
            [
                ("info", "a known producer behaviour; nothing is lost and no action is needed"),
                ("warning", "a violation of the specification that some tools misread; perfuse reads it correctly"),
                ("data_loss", "recorded data is missing from the file"),
                ("error", "contradictory data in the file; it was omitted or corrected"),
            ],
        ),
    ]
    for name, found in groupby(rules().values(), key=lambda rule: rule.format):
        out.append(f"## {titles[name]}\n")
        for rule in found:
            section = f" · section {rule.section}" if rule.section else ""
            out += [f"### {rule.code}: {rule.title} {{ #{rule.code} }}\n", f"*{rule.severity}*{section}\n"]
            out += [rule.meaning + "\n", f"**What to do.** {rule.action}\n"]
    return "\n".join(out)


def cli() -> str:
    """The help of every command."""
    out = ["# Command line\n", _block(context_of(terminal_width=COLUMNS).get_help())]
    for name in VERBS:
        out += [f"## {name}\n", _block(context_of(name, COLUMNS).get_help())]
    return "\n".join(out)


def exporters() -> str:
    """The export targets of `convert`."""
    out = ["# Export targets\n", "What `perfuse convert --to` and `profile.export(to=...)` write.\n"]
    rows = [
        (f"`{t.name}`", t.title, " ".join(f"`{s}`" for s in t.suffixes), " or ".join(t.outputs), t.readers)
        for t in TARGETS
    ]
    out.append(_table(("target", "what", "file names", "writes", "for"), rows))
    return "\n".join(out) + "\n" + _contents()


def _contents() -> str:
    """Which kinds of data each target's files contain, and in which form."""
    out = [
        "## What is written\n",
        "● is written; ○ could be held by the target's format and is not written yet: `perfuse convert` says so on "
        "standard error, `profile.export` warns with `ExportWarning`; a dot cannot be held. Targets of one event "
        "(`-O event=NAME`) say which others there are; `chrome`, `perfetto` and `perf-script`, which sums by stack "
        "they leave out, such as time off the processor.\n",
    ]
    written = {t.name: t.contents for t in TARGETS}
    rows = [
        (title, *("●" if name in one.forms else "○" if name in one.not_yet else "·" for one in written.values()))
        for name, (title, _) in DATA.items()
    ]
    out.append(_table(("", *(f"`{name}`" for name in written)), rows))
    for name, one in written.items():
        forms: dict[str, list[str]] = {}
        for kind, form in one.forms.items():
            forms.setdefault(form, []).append(DATA[kind][0])
        out.append(f"- `{name}`: " + "; ".join(f"{', '.join(kinds)}: {form}" for form, kinds in forms.items()) + ".")
    return "\n".join(out) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli,
    "diagnostics.md": diagnostics,
    "exporters.md": exporters,
    "python.md": api.page,
    "tables.md": tables,
    "truth.md": truth_matrix.page,
}


def _with_layouts(text: str) -> str:
    formats = {row["name"]: row for row in _core.formats()}
    text = FORMATS.sub(lambda found: found[1] + "\n" + _formats(formats.values()) + "\n" + found[2], text)
    return LAYOUTS.sub(lambda found: found[1] + "\n" + _layouts(formats[found[2]]["layouts"]) + "\n" + found[3], text)


def _formats(formats: Iterable["_core._Format"]) -> str:
    """What each format declares about itself."""
    rows = [
        (
            f"[{row['title']}]({row['name']}.md)",
            row["role"].replace("_", " "),
            " ".join(f"`{pattern}`" for pattern in row["patterns"]),
            row["about"],
        )
        for row in formats
    ]
    return _table(("format", "role", "file names", "contents"), rows)


def _layouts(layouts: Iterable["_core._Layout"]) -> str:
    out = []
    for layout in layouts:
        out += [f"### {layout['name']}\n", f"Section {layout['section']}. {layout['doc']}\n"]
        offset: int | None = 0
        rows = []
        for name, kind, doc in layout["fields"]:
            rows.append(("" if offset is None else str(offset), kind, f"`{name}`", doc))
            size = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8}.get(kind)
            offset = None if offset is None or size is None else offset + size
        out.append(_table(("offset", "type", "field", "meaning"), rows))
    return "\n".join(out)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    sys.exit(main())

"""Every view on a recording of gcc whose copied stacks are unwound by SFrame shows what `report` prints."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest
from viewer import reported

from needs import need
from perfuse import sframe

TABS = ["overview", "timeline", "heat", "flame", "tree", "functions", "callers", "annotate", "files", "sql"]
FUNCTION = "double f{0}(double a, int n) {{ double s = 0; for (int k = 0; k < n; k++) s += a * k + {0}; return s; }}"


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    """A recording of gcc, whose compiler got an SFrame section from its .eh_frame."""
    need("gcc", "perf")
    directory = tmp_path_factory.mktemp("compiler")
    name = subprocess.run(["gcc", "-print-prog-name=cc1"], check=True, capture_output=True, text=True).stdout.strip()
    original = Path(shutil.which(name) or name).resolve()
    program = directory / "cc1"
    sframe.from_eh_frame(original).section.write_into(original, program)
    program.chmod(0o755)
    (directory / "functions.c").write_text("\n".join(map(FUNCTION.format, range(700))), encoding="ascii")
    run = directory / "run"
    gcc = ["gcc", "-B", f"{directory}/", "-O2", "-c", "functions.c", "-o", "functions.o"]
    record = ["record", "--no-report", "-o", str(run), "--frequency", "500", "--", *gcc]
    done = subprocess.run(
        [sys.executable, "-m", "perfuse", *record],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (run,)


def test_the_stacks_are_unwound_by_sframe(compiler):
    found = reported(compiler)["unwound"]
    frames = found["frames"]
    assert frames["sframe"] > frames.get("eh_frame", 0), "libraries have .eh_frame only"
    assert found["stops"]["outermost"] > 0.8 * found["num_stacks"]


def test_every_view_opens(view, compiler):
    viewed = view(compiler)
    found = [tab.get_attribute("id").removeprefix("tab-") for tab in viewed.page.locator("#tabs [role=tab]").all()]
    assert found == TABS
    for tab in TABS:
        section = viewed.show(tab)
        assert viewed.page.locator(".failure").count() == 0, tab
        assert section.inner_text().strip(), tab


def test_samples_and_functions_equal_the_report(view, compiler):
    viewed = view(compiler)
    report = reported(compiler)
    event = report["events"][0]
    assert f"{event['samples']:,} samples" in viewed.show("overview").inner_text()
    assert [row[-1] for row in viewed.rows("Heaviest functions")][:5] == [row["name"] for row in report["top_self"][:5]]
    viewed.show("tree")
    assert viewed.rows("Call tree")[0][2] == f"{event['samples']:,}"
    viewed.show("functions")
    rows = viewed.rows("Functions")
    assert len(rows) > 20
    for row, expected in zip(rows, report["top_self"], strict=False):
        assert (row[-1], row[2]) == (expected["name"], f"{expected['samples']:,}")
        assert share(row[0]) == pytest.approx(expected["self_weight"] / event["weight"], abs=0.0006)
        assert share(row[1]) == pytest.approx(expected["total_weight"] / event["weight"], abs=0.0006)


def share(text):
    """The share in `367 ms  2.3%`."""
    return float(re.search(r"<?([\d.]+)%", text)[1]) / 100


def test_half_of_the_time_equals_the_report(view, compiler):
    viewed = view(compiler)
    length = reported(compiler)["duration_ns"]
    start, end = length // 4, 3 * length // 4
    report = reported(compiler, "--between", f"{start / 1e9:.9f}..{end / 1e9:.9f}")
    state = {"range": f"{start}-{end}"}
    viewed.show("tree", **state)
    assert viewed.rows("Call tree")[0][2] == f"{report['events'][0]['samples']:,}"
    viewed.show("functions", **state)
    rows = [(row[-1], row[2]) for row in viewed.rows("Functions")]
    assert rows == [(row["name"], f"{row['samples']:,}") for row in report["top_self"][: len(rows)]]


def test_callers_and_callees_are_those_of_the_stacks(view, compiler):
    viewed = view(compiler)
    report = reported(compiler)
    [row] = [row for row in report["top_total"] if row["name"].startswith("toplev::main(")]
    viewed.show("callers", function=quote(row["name"], safe=""))
    callers, callees = (viewed.rows(f"{what} of {row['name']}") for what in ("Callers", "Callees"))
    assert [caller[-1] for caller in callers] == ["main"]
    total = row["total_weight"] / report["events"][0]["weight"]
    assert share(callers[0][0]) == pytest.approx(total, abs=0.0006)
    assert 0 < sum(share(callee[0]) for callee in callees) <= total + 0.0006 * len(callees)


def test_the_difference_of_two_halves_has_the_shares_of_both(view, compiler):
    viewed = view(compiler)
    length = reported(compiler)["duration_ns"]
    middle = length // 2
    parts = {"base": (0, middle), "range": (middle, length)}
    shares = {}
    for part, (start, end) in parts.items():
        # What ends with the recording contains its last moment.
        until = f"{end / 1e9:.9f}" if end < length else ""
        report = reported(compiler, "--between", f"{start / 1e9:.9f}..{until}")
        weight = report["events"][0]["weight"]
        # Programs of the recording may have functions of one name, and a program may have several.
        shares[part] = Counter()
        for row in report["top_self"]:
            # The page has one name for all modules of the kernel's own code.
            module = "[kernel]" if (row["module"] or "").startswith("[kernel.") else row["module"] or ""
            shares[part][row["name"] + module] += row["self_weight"] / weight
    viewed.show("flame", **{part: f"{start}-{end}" for part, (start, end) in parts.items()})
    rows = viewed.rows("Changes by function", hints=True)
    once = {function for function, num in Counter(row[-1] for row in rows).items() if num == 1}
    assert len(once) > 5
    for _, base, selection, function in rows:
        of_base, of_range = shares["base"][function], shares["range"][function]
        if function in once:
            assert share(base) == pytest.approx(of_base, abs=0.0006)
            assert share(selection) == pytest.approx(of_range, abs=0.0006)
        else:
            assert share(base) <= of_base + 0.0006
            assert share(selection) <= of_range + 0.0006

"""The viewer's tab of source lines and machine code: the numbers of `perfuse annotate --json`, by mouse and keys."""

import functools
import json
import subprocess
import sys

from viewer import POSTCARDS


@functools.cache
def annotated(*options):
    command = [sys.executable, "-m", "perfuse", "annotate", "--json", *options, *map(str, POSTCARDS), "shade"]
    return json.loads(subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout)


def cells(viewed, pane, kind):
    """Texts of a column of a pane, of the rows that have samples."""
    rows = viewed.page.locator(f'[aria-label="{pane}"] .one.hot .{kind}:visible')
    return rows.all_inner_texts()


def test_instructions_lines_and_compilations_of_the_function_of_another_view(view):
    viewed = view(POSTCARDS)
    report = annotated()
    viewed.show("functions", q="shade")
    viewed.page.locator("#view-functions tbody tr[role=row]").first.click()
    viewed.page.keyboard.press("l")
    viewed.settled("annotate")
    assert viewed.state()["function"] == "shade"
    rows = viewed.rows("Compilations")
    assert [(row[0], row[7], row[8]) for row in rows] == [
        (str(one["number"]), f"{one['self_samples']:,}", f"{one['total_samples']:,}") for one in report["compilations"]
    ]
    hot = [one for one in report["listings"][0]["instructions"] if one["self_samples"]]
    assert cells(viewed, "Machine code", "offset") == [f"{one['offset']:x}" for one in hot]
    assert cells(viewed, "Machine code", "count")[::2] == [str(one["self_samples"]) for one in hot]
    # The page opens at the hottest instruction and marks its line.
    hottest = max(hot, key=lambda one: one["self_weight"])
    current = viewed.page.locator('[aria-label="Machine code"] [aria-current] .offset')
    assert current.inner_text() == f"{hottest['offset']:x}"
    line = viewed.page.locator('[aria-label="Source"] [aria-current]')
    assert line.locator(".offset").inner_text() == str(hottest["line"])
    lines = {}
    for one in hot:
        lines[one["line"]] = lines.get(one["line"], 0) + one["self_samples"]
    assert dict(zip(cells(viewed, "Source", "offset"), cells(viewed, "Source", "count"), strict=True)) == {
        str(number): str(samples) for number, samples in lines.items()
    }
    viewed.page.keyboard.press("<")
    viewed.page.wait_for_selector('table[aria-label="Compilations"] [aria-selected=true][aria-rowindex="4"]')
    viewed.settled("annotate")
    third = annotated("--compilation", "3")["listings"][0]["instructions"]
    assert cells(viewed, "Machine code", "offset") == [f"{one['offset']:x}" for one in third if one["self_samples"]]


def test_a_line_leads_to_its_hottest_instruction_and_two_compilations_are_side_by_side(view):
    viewed = view(POSTCARDS)
    viewed.show("annotate", function="shade", beside="2", syntax="intel", lines="both")
    page = viewed.page
    hot = annotated()["listings"][0]["instructions"]
    number = max({one["line"] for one in hot if one["self_samples"]})
    of_line = [one for one in hot if one["line"] == number]
    page.locator(f'[aria-label="Source"] [data-line="{number}"]').click()
    best = max(one["self_weight"] for one in of_line)
    chosen = page.locator('[aria-label="Machine code"] [aria-current] .offset').inner_text()
    assert chosen in {f"{one['offset']:x}" for one in of_line if one["self_weight"] == best}
    other = annotated("--compilation", "2")["listings"][0]["instructions"]
    second = page.locator('[aria-label="Machine code of another compilation"]')
    assert second.locator(".one").count() == len(other)
    page.get_by_role("button", name="Save").click()
    assert page.locator("#command").inner_text().endswith("--syntax intel shade")


def test_notes_are_in_the_line_of_their_instruction(view):
    viewed = view(POSTCARDS)
    viewed.show("annotate", function="render", lines="machine")
    notes = viewed.page.locator('[aria-label="Machine code"] .one .note')
    distances = notes.evaluate_all(
        """notes => notes.map((note) => {
            const top = (node) => {
                const text = document.createRange();
                text.selectNodeContents(node);
                return text.getBoundingClientRect().top;
            };
            return Math.abs(top(note) - top(note.parentElement.querySelector(".offset")));
        })"""
    )
    assert distances
    assert max(distances) < 1
    head = viewed.page.locator('[aria-label="Machine code"] .head .offset')
    assert head.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_a_function_without_code_says_so(view):
    viewed = view(POSTCARDS)
    viewed.show("annotate", function="nowhere")
    shown = viewed.page.locator("#view-annotate .annotated")
    assert "No machine code" in shown.inner_text()
    assert "no function 'nowhere'" in shown.inner_text()
    assert viewed.page.locator(".listing-pane:visible").count() == 0

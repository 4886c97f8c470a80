"""Functions of one name in the viewer: each row opens its own function, and a function in focus stays the same."""

from pathlib import Path
from urllib.parse import quote

import pytest
from viewer import POSTCARDS, reported

from libraries_of_one_name import BEFORE, recorded


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, ...]:
    return (recorded(tmp_path / "run", tmp_path / "libraries", BEFORE),)


@pytest.mark.parametrize("tab", ["functions", "callers"])
def test_a_row_opens_its_own_function(view, files, tab):
    """Both are called `init`; they differ in their libraries and numbers of samples."""
    viewed = view(files)
    whole = sum(BEFORE.values())
    table = {"functions": "Functions", "callers": "Functions of the selection"}[tab]
    for name, count in BEFORE.items():
        viewed.show(tab)
        share = f"{100 * count / whole:.1f}%"
        rows = viewed.rows(table, hints=True)
        (at,) = (number for number, row in enumerate(rows) if row[0].endswith(share))
        assert rows[at][-1].endswith(f"{name}/core.so")
        row = viewed.page.locator(f'table[aria-label="{table}"] tbody tr[role=row]').nth(at)
        if tab == "functions":
            row.dblclick()
        else:
            row.click()
        facts = viewed.page.locator("#view-callers .butterfly p", has_text=f"/{name}/core.so")
        facts.wait_for()
        assert f"({share})" in facts.inner_text()


def test_the_function_in_focus_stays_the_same_in_another_range(view):
    """The tiers of a function are one here: its number is not that of one of its symbols."""
    viewed = view(POSTCARDS)
    of_range = {row["name"] for row in reported(POSTCARDS, "--between", "0.1..0.9")["top_total"]}
    rows = [row for row in reported(POSTCARDS)["top_total"] if row["kind"] == "jit" and row["tiers"][1:]]
    names = [row["name"] for row in rows if row["name"] in of_range]
    assert len(names) > 3
    for name in names[:4]:
        viewed.show("callers", function=quote(name, safe=""))
        viewed.page.get_by_role("button", name="Sandwich flame graph").click()
        viewed.settled("flame")
        focus = viewed.page.locator("#selected b")
        assert focus.inner_text() == name
        viewed.show(**{**viewed.state(), "range": "100000000-900000000"})
        viewed.page.wait_for_selector("#selection .chip button")
        assert focus.inner_text() == name


def test_a_function_in_focus_that_did_not_run_in_a_range_is_stated(view):
    viewed = view(POSTCARDS)
    early = {row["name"] for row in reported(POSTCARDS, "--between", "0..0.1")["top_total"]}
    rows = reported(POSTCARDS)["top_total"]
    name = next(row["name"] for row in rows if row["kind"] == "jit" and row["name"] not in early)
    viewed.show("callers", function=quote(name, safe=""))
    viewed.page.get_by_role("button", name="Sandwich flame graph").click()
    viewed.settled("flame")
    viewed.show(**{**viewed.state(), "range": "0-100000000"})
    viewed.page.locator("#selected", has_text=f"{name} did not run here").wait_for()

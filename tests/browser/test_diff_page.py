"""The page of a difference, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from perfuse.cli import run

ROW = 20
BASE = {"main;parse": 3000, "main;shade": 1000, "main;emit": 600, "main;emit;old": 400}
NEW = {"main;parse": 3000, "main;shade": 1500, "main;emit": 600, "main;added": 300}


@pytest.fixture
def page(open_page: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Shows the difference of the two, five runs a side with a noise of some samples."""

    def show(*options: str, num_runs: int = 5, name: str = "diff.html") -> Any:
        sides = []
        for side, weights in (("a", BASE), ("b", NEW)):
            for number in range(num_runs):
                path = tmp_path / f"{side}{number}.folded"
                rows = (
                    f"{stack} {count + (7 * number + len(stack)) % 11}\n"
                    for stack, count in ({**weights, '"</script>;x': 5}).items()
                )
                path.write_text("".join(rows), encoding="utf-8")
                sides.append(str(path))
        sides.insert(num_runs, "--")
        out = tmp_path / name
        assert run(["diff", *options, *sides, "-o", str(out)]) == 0
        return open_page(out.as_uri(), size=(1200, 800))

    return show


def colour(page: Any, x: float, row: int) -> list[int]:
    """Red, green and blue of a pixel of a box."""
    found: list[int] = page.evaluate(
        """([x, y]) => {
            const canvas = document.querySelector("#graph canvas");
            const ratio = canvas.width / canvas.clientWidth;
            const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, x * ratio, y * ratio, 1, 1, 0, 0, 1, 1);
            return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }""",
        [x, row * ROW + 3],
    )
    return found


def boxes(page: Any) -> dict[str, tuple[float, str]]:
    """Names on the canvas are not text: the first place of each box, found by the tooltip along each row."""
    found = page.evaluate(
        """(row) => {
            const [graph, tooltip] = [document.querySelector("#graph"), document.querySelector("#tooltip")];
            const area = graph.getBoundingClientRect();
            const found = {};
            for (let depth = 0; depth < 3; depth++) {
                for (let x = 4; x < area.width - 2; x += 6) {
                    const at = { clientX: area.left + x, clientY: area.top + (depth + 0.5) * row };
                    graph.dispatchEvent(new MouseEvent("mousemove", at));
                    const name = tooltip.querySelector("strong")?.textContent;
                    if (!tooltip.hidden && !(name in found)) found[name] = [x, tooltip.innerText];
                }
            }
            return found;
        }""",
        ROW,
    )
    return {name: (x, text) for name, (x, text) in found.items()}


def test_both_sides_are_shown_and_proven_changes_have_colours(page: Callable[..., Any]) -> None:
    shown = page()
    found = boxes(shown)
    assert found.keys() >= {"main", "parse", "shade", "emit", "old", "added"}
    assert "removed: only in base" in found["old"][1]
    assert "added: only in new" in found["added"][1]
    # The noise of five runs is 10, 6, 2, 9 and 5 samples.
    for fact in ("1,006 samples > 1,506 samples", "+500 (+49.7%)", "self changed"):
        assert fact in found["shade"][1], found["shade"][1]
    red, _, blue = colour(shown, found["shade"][0], 1)
    assert red > blue + 40
    grey = colour(shown, found["parse"][0], 1)
    assert max(grey) - min(grey) < 12
    red, _, blue = colour(shown, found["emit"][0], 1)
    assert blue > red + 40


def test_views_and_table(page: Callable[..., Any]) -> None:
    shown = page()
    rows = shown.locator("#functions tbody tr").all_inner_texts()
    assert [row.split("\t")[1:] for row in rows[:3]] == [["changed", "shade"], ["gone", "old"], ["new", "added"]]
    shown.click("[data-width=gone]")
    assert boxes(shown).keys() == {"main", "emit", "old"}
    shown.click("[data-width=new]")
    assert "old" not in boxes(shown)
    shown.click("[data-width=base]")
    assert "added" not in boxes(shown)
    shown.click("[data-number=share]")
    assert "points" in boxes(shown)["shade"][1]
    shown.click("[data-width=both]")
    shown.fill("#search", "shade")
    assert shown.locator("#matched").inner_text() == "20.0% > 27.7%"
    shown.keyboard.press("Escape")
    assert shown.locator("#matched").inner_text() == ""


def means_of_shade(tmp_path: Path, *, of_whole: bool) -> tuple[float, float]:
    """The mean over the runs of each side, of samples or of shares of the run."""
    means = []
    for side in "ab":
        values = []
        for path in sorted(tmp_path.glob(f"{side}*.folded")):
            stacks = dict(line.rsplit(" ", 1) for line in path.read_text(encoding="utf-8").splitlines())
            values.append(int(stacks["main;shade"]) / (sum(map(int, stacks.values())) if of_whole else 1))
        means.append(fmean(values))
    return means[0], means[1]


def test_means_of_few_samples_are_not_whole(open_page: Callable[..., Any], tmp_path: Path) -> None:
    sides = []
    for side, counts in (("a", (1, 0, 1)), ("b", (12, 11, 12))):
        for number, count in enumerate(counts):
            path = tmp_path / f"{side}{number}.folded"
            path.write_text(f"main;parse 3000\nmain;rare {count}\n", encoding="utf-8")
            sides.append(str(path))
    out = tmp_path / "diff.html"
    assert run(["diff", *sides[:3], "--", *sides[3:], "-o", str(out)]) == 0
    shown = open_page(out.as_uri())
    # (12 + 11 + 12) / 3 is 11.67, and (1 + 0 + 1) / 3 is 0.67.
    assert shown.locator("#functions tbody tr").all_inner_texts() == [
        "+11.00 (\N{MULTIPLICATION SIGN}17.5)\tunclear\trare"
    ]
    assert "0.67 samples > 11.67 samples" in boxes(shown)["rare"][1]


def test_shares_of_runs(page: Callable[..., Any], tmp_path: Path) -> None:
    shown = page("--normalize", "share")
    base, new = means_of_shade(tmp_path, of_whole=True)
    rows = shown.locator("#functions tbody tr").all_inner_texts()
    change = f"+{100 * (new - base):.2f} points (+{100 * (new / base - 1):.1f}%)"
    assert f"{change}\tchanged\tshade" in rows
    assert f"{100 * base:.1f}% > {100 * new:.1f}%" in boxes(shown)["shade"][1]


def test_zoom(page: Callable[..., Any]) -> None:
    shown = page()
    x, _ = boxes(shown)["emit"]
    shown.click("#graph", position={"x": x, "y": ROW + 8})
    assert shown.locator("#crumbs button").all_inner_texts() == ["all", "main", "emit"]
    assert set(boxes(shown)) == {"main", "emit", "old"}
    shown.locator("#crumbs button", has_text="all").click()
    assert "shade" in boxes(shown)


def test_one_run_states_that_nothing_is_proven(page: Callable[..., Any]) -> None:
    assert "one run proves nothing" in page(num_runs=1).locator("#legend").inner_text()

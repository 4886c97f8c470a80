"""Makes the pictures of `perfuse view` in docs/pictures with Chromium: `python docs/view_pictures.py [NAME...]`."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
POSTCARDS = ("examples/postcards/perf.data.gz", "examples/postcards/jit-32015.dump.gz")
SIZE = (1000, 560)
MOST_BYTES = 150_000
SETTLED_MS = 800


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Attributes:
        name: Name of its file.
        files: The recording.
        state: What is in the address.
        theme: Colours of the page.
    """

    name: str
    files: tuple[str, ...]
    state: str
    theme: str = "light"


PICTURED = (
    Picture("overview", POSTCARDS, "tab=overview"),
    Picture("timeline", POSTCARDS, "tab=timeline"),
    Picture("heat", POSTCARDS, "tab=heat&heat=seconds&column=100000000"),
    Picture("flame", POSTCARDS, "tab=flame&range=400000000-900000000"),
    Picture("difference", POSTCARDS, "tab=flame&range=800000000-1400000000&base=0-300000000", theme="dark"),
    Picture("functions", POSTCARDS, "tab=functions&only=render"),
    Picture("callers", POSTCARDS, "tab=callers&function=trace"),
    Picture("annotate", POSTCARDS, "tab=annotate&function=shade"),
    Picture("code", POSTCARDS, "tab=code"),
)


@contextmanager
def served(files: tuple[str, ...]) -> Iterator[str]:
    """A server of a recording; its address."""
    command = [sys.executable, "-m", "perfuse", "view", "--no-browser", "--source-dir", "examples/postcards", *files]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


def draw(page: Page, picture: Picture, address: str) -> None:
    """Writes a picture."""
    page.goto(f"{address}&{picture.state}")
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector(".view[aria-busy=false]:visible")
    if "tab=timeline" in picture.state:
        page.wait_for_selector("#view-timeline[data-filled]")
    # Tiles and tables are drawn in the frames after their answers.
    page.wait_for_timeout(SETTLED_MS)
    path = PICTURES / f"{picture.name}.png"
    page.screenshot(path=path)
    size = path.stat().st_size
    assert size <= MOST_BYTES, f"{path.name} has {size:,} bytes"


def main(names: list[str]) -> None:
    """Makes all pictures, or those of some names."""
    PICTURES.mkdir(exist_ok=True)
    wanted = [one for one in PICTURED if not names or one.name in names]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for files in dict.fromkeys(one.files for one in wanted):
            with served(files) as address:
                for picture in (one for one in wanted if one.files == files):
                    width, height = SIZE
                    context = browser.new_context(
                        viewport={"width": width, "height": height}, color_scheme=picture.theme, reduced_motion="reduce"
                    )
                    draw(context.new_page(), picture, address)
                    context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])

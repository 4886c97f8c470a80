"""Draws the flame graph in README.md: the upper part of the main thread of the example, without the narrowest boxes."""

import io
import re
from pathlib import Path

import perfuse as pf

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "postcards"
PICTURE = ROOT / "docs" / "images" / "postcards.svg"
WIDTH = 860
HEIGHT = 600
MIN_WIDTH = 1.5

_BOX = re.compile(r'<g><title>.*?</title><rect [^>]*?y="(\d+)" width="([\d.]+)".*?</g>\n?', re.DOTALL)
_SIZE = re.compile(r'(width="\d{3,}" )height="\d{3,}"')


def main() -> None:
    """Writes the picture."""
    profile = pf.fuse(EXAMPLE / "perf.data.gz", EXAMPLE / "jit-32015.dump.gz")
    ((main_thread,),) = profile.sql(
        "SELECT tid FROM threads JOIN processes USING (process_id) WHERE tid = pid"
    ).fetchall()
    drawn = io.BytesIO()
    profile.thread(main_thread).export(drawn, to="svg", width=WIDTH)
    boxes, last, legend = _BOX.sub(_retain_visible, drawn.getvalue().decode()).rpartition("</g>")
    whole = max(int(y) for y in re.findall(r' y="(\d+)"', legend))
    legend = re.sub(r' y="(\d+)"', lambda y: f' y="{int(y[1]) - whole + HEIGHT - 6}"', legend)
    # Set the size of the background and of the view box.
    boxes = _SIZE.sub(rf'\1height="{HEIGHT}"', boxes)
    boxes = re.sub(r'viewBox="0 0 (\d+) \d+"', rf'viewBox="0 0 \1 {HEIGHT}"', boxes)
    PICTURE.write_text(boxes + last + legend, encoding="utf-8")


def _retain_visible(box: re.Match[str]) -> str:
    return box[0] if int(box[1]) < HEIGHT - 20 and float(box[2]) >= MIN_WIDTH else ""


if __name__ == "__main__":
    main()

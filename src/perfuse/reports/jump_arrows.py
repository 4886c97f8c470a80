"""Arrows from jumps to their targets, as a column of text."""

from __future__ import annotations

from collections.abc import Sequence

MAX_LANES = 4
"""Arrows beside each other; further ones are not drawn."""


def jump_arrows(jumps: Sequence[tuple[int, int]], num_rows: int) -> tuple[list[str], int]:
    """The cells of a column of arrows, one per row, and the number of jumps that are not drawn.

    Args:
        jumps: Row of the jump, and row of its target.
        num_rows: Number of rows.

    >>> jump_arrows([(2, 0)], 3)
    (['┌►', '│ ', '└─'], 0)
    """
    lanes: list[list[tuple[int, int]]] = []
    drawn: list[tuple[int, int, int]] = []
    left_out = 0
    # The shortest are innermost.
    for source, target in sorted(dict.fromkeys(jumps), key=lambda jump: (abs(jump[0] - jump[1]), jump)):
        low, high = min(source, target), max(source, target)
        lane = next((n for n, used in enumerate(lanes) if all(high < a or b < low for a, b in used)), len(lanes))
        if lane == len(lanes):
            if lane == MAX_LANES:
                left_out += 1
                continue
            lanes.append([])
        lanes[lane].append((low, high))
        drawn.append((lane, source, target))
    width = len(lanes)
    if not width:
        return [""] * num_rows, left_out
    cells = [[" "] * (width + 1) for _ in range(num_rows)]
    for lane, source, target in drawn:
        low, high, column = min(source, target), max(source, target), width - 1 - lane
        for row in range(low + 1, high):
            cells[row][column] = "┼" if cells[row][column] == "─" else "│"
        for row, corner in ((low, "┌"), (high, "└")):
            cells[row][column] = corner if low != high else "↻"
            for at in range(column + 1, width):
                cells[row][at] = {"│": "┼", " ": "─"}.get(cells[row][at], cells[row][at])
        if cells[source][width] != "►":
            cells[source][width] = "─"
        cells[target][width] = "►"
    return ["".join(row) for row in cells], left_out

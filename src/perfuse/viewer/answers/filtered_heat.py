"""Heat maps of filtered stacks, whose samples are rows of a table."""

from array import array
from typing import TYPE_CHECKING, Any

from perfuse.viewer.answers.parameters import RequestError

if TYPE_CHECKING:
    from perfuse.viewer.answers.selected import Selected

MOST_CELLS = 4_000_000
GROUPS = {
    "seconds": ("((ts_ns - $first) % $column) // $row", ""),
    "threads": ("thread_id", ""),
    "processors": ("cpu", ""),
    "tiers": (
        "coalesce(c.tier::VARCHAR, f.kind::VARCHAR)",
        "JOIN stacks USING (stack_id) JOIN frames f USING (frame_id)"
        " LEFT JOIN code_objects_of_stacks c USING (code_object_id)",
    ),
}


def filtered_weights(part: "Selected", kind: str, grid: tuple[int, int, int, int]) -> tuple[list[str], bytes, str]:
    """Names of rows, cells by row, and the unit: weight of the samples that a filter selects.

    Raises:
        RequestError: There is no such heat map of filtered stacks.
    """
    if kind not in GROUPS:
        hint = f"{', '.join(GROUPS)} take them"
        raise RequestError(400, "bad_parameter", f"filters of stacks do not apply to heat maps of {kind}", hint)
    first, column_ns, num_columns, num_rows = grid
    event = next(one for one in part.session.events() if not one.is_sum)
    group, joins = GROUPS[kind]
    values: dict[str, Any] = {"first": first, "column": column_ns, "event": event.name}
    if kind == "seconds":
        values["row"] = -(-column_ns // num_rows)
    rows = part.profile.sql(
        f"SELECT {group} AS name, (ts_ns - $first) // $column AS place, sum(s.weight)::DOUBLE"
        f" FROM samples s {joins} WHERE event::VARCHAR = $event AND {group} IS NOT NULL GROUP BY ALL",
        values,
    ).fetchall()
    if kind == "seconds":
        names: list[Any] = list(range(num_rows))
    else:
        sums: dict[Any, float] = {}
        for name, _, weight in rows:
            sums[name] = sums.get(name, 0.0) + weight
        names = sorted(sums, key=lambda name: (-sums[name], str(name)))
    if len(names) * num_columns > MOST_CELLS:
        raise RequestError(400, "too_many", "there are too many cells")
    row_of = {name: number for number, name in enumerate(names)}
    cells = array("d", bytes(8 * len(names) * num_columns))
    for name, place, weight in rows:
        if 0 <= place < num_columns:
            cells[row_of[name] * num_columns + place] += weight
    return [str(name) for name in names], cells.tobytes(), event.unit

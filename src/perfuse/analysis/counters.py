"""Counters: what they were last, and on the way there."""

from dataclasses import dataclass

from perfuse.analysis.runtime import Managed


@dataclass(frozen=True, slots=True)
class CounterValues:
    """A counter with its values.

    Attributes:
        section: What it is listed under; None where the file does not say.
        name: Its name.
        unit: `bytes`, `time`, `count`, `percentage` or `raw`; None where the file does not say.
        kind: Type of its values, as the recorder calls it.
        monotonic: Whether it only grows; None where the file does not say.
        last: The last value; None where it is text.
        text: The last value, where it is text.
        min: The least; None where there is no number.
        max: The greatest.
        values: Every value with its time on the profile's clock, where it is a number.
    """

    section: str | None
    name: str
    unit: str | None
    kind: str
    monotonic: bool | None
    last: float | None
    text: str | None
    min: float | None
    max: float | None
    values: list[tuple[int, float]]


def counters(profile: Managed) -> list[CounterValues]:
    """Counters that have a value in the selected time, by section, as the file lists them."""
    within = profile.selection.time_ns
    time = f"ts_ns >= {within[0]} AND ts_ns < {within[1]}" if within else "true"
    rows = profile.sql(f"""
        SELECT section::VARCHAR, any_value(name::VARCHAR), any_value(unit::VARCHAR), any_value(kind::VARCHAR),
            any_value(monotonic), arg_max(value, ts_ns), arg_max(text::VARCHAR, ts_ns), min(value), max(value),
            list({{'t': ts_ns, 'v': value}} ORDER BY ts_ns) FILTER (value IS NOT NULL)
        FROM counters JOIN (SELECT * EXCLUDE (source_id, record_offset) FROM counter_samples WHERE {time})
            USING (counter_id)
        GROUP BY counter_id, section ORDER BY min(counter_id) OVER (PARTITION BY section), counter_id
    """).fetchall()
    found = []
    for row in rows:
        section, name, unit, kind, monotonic, last, text, least, most, points = row
        values = [(point["t"], point["v"]) for point in points or []]
        found.append(CounterValues(section, name, unit, kind, monotonic, last, text, least, most, values))
    return found

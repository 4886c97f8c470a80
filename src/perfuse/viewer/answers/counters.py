"""Values of counters over time."""

from typing import TYPE_CHECKING, Any

from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.selected import selected

if TYPE_CHECKING:
    from perfuse.viewer.session import Session

MOST_BUCKETS = 4000


def counters(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Least, greatest and last value of counters in parts of the selected time that have values."""
    if not session.profile.has("counter_samples"):
        raise RequestError(404, "not_recorded", "the recording has no counters")
    part = selected(session, parameters)
    keys = parameters.keys("counter")
    buckets = parameters.count("buckets", 800, least=1, most=MOST_BUCKETS)
    start, end = part.time_ns
    width = max(1, -(-(end - start) // buckets))
    query = (
        "SELECT counter_id, (ts_ns - $start) // $width AS bucket, min(value), max(value),"
        " arg_max(value, ts_ns), max(ts_ns) FROM counter_samples"
        " WHERE value IS NOT NULL AND ts_ns >= $start AND ts_ns < $end"
    )
    if keys is not None:
        query += f" AND counter_id IN ({', '.join(map(str, keys))})"
    parameters_of_query = {"start": start, "end": end, "width": width}
    rows = session.profile.sql(query + " GROUP BY ALL ORDER BY counter_id, bucket", parameters_of_query).fetchall()
    zero = session.times()[0]
    series: dict[int, dict[str, Any]] = {}
    for counter, _, least, most, last, ts_ns in rows:
        of = series.setdefault(counter, {"counter": counter, "t": [], "min": [], "max": [], "last": []})
        for name, value in (("t", ts_ns - zero), ("min", least), ("max", most), ("last", last)):
            of[name].append(value)
    return {"counters": list(series.values()), **part.command("report", "--section", "counters")}

"""Values of counters over time."""

from typing import TYPE_CHECKING, Any

from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.selected import selected

if TYPE_CHECKING:
    from perfuse.viewer.session import Session

MOST_BUCKETS = 4000
COLUMNS = ("t", "min", "max", "last", "num")


def counters(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Least, greatest and last value of counters in parts of the selected time that have values, and the last value
    before it."""
    if not session.profile.has("counter_samples"):
        raise RequestError(404, "not_recorded", "the recording has no counters")
    part = selected(session, parameters)
    keys = parameters.keys("counter")
    buckets = parameters.count("buckets", 800, least=1, most=MOST_BUCKETS)
    start, end = part.time_ns
    condition = "value IS NOT NULL AND ts_ns < $end"
    if keys is not None:
        condition += f" AND counter_id IN ({', '.join(map(str, keys))})"
    sql = session.profile.sql
    within = {"start": start, "end": end}
    count = f"SELECT count(*) AS num FROM counter_samples WHERE {condition} AND ts_ns >= $start GROUP BY counter_id"
    [(most,)] = sql(f"SELECT max(num) FROM ({count})", within).fetchall()
    # Few values are answered one by one.
    width = max(1, -(-(end - start) // buckets)) if (most or 0) > buckets else 1
    query = (
        "SELECT counter_id, CASE WHEN ts_ns < $start THEN -1 ELSE (ts_ns - $start) // $width END AS bucket,"
        " max(ts_ns), min(value), max(value), arg_max(value, ts_ns), count(*) FROM counter_samples"
        f" WHERE {condition} GROUP BY ALL ORDER BY counter_id, bucket"
    )
    rows = sql(query, {**within, "width": width}).fetchall()
    zero = session.times()[0]
    series: dict[int, dict[str, Any]] = {}
    for counter, bucket, ts_ns, *values in rows:
        empty = {"counter": counter, "before": None, **{name: [] for name in COLUMNS}}
        of = series.setdefault(counter, empty)
        if bucket < 0:
            *_, of["before"], _ = values
            continue
        for name, value in zip(COLUMNS, (ts_ns - zero, *values), strict=True):
            of[name].append(value)
    return {"from": start - zero, "counters": list(series.values()), **part.command("report", "--section", "counters")}

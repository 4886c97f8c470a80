"""OTLP profiles: OpenTelemetry's own message classes, and a collector made of them."""

import io
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from small_profile import BUILD_ID, MS

import perfuse as pf
from needs import need_module
from perfuse.errors import ExportError, ExportWarning, UsageError
from perfuse.exporters import export
from perfuse.exporters.queries import FRAMES


def messages() -> Any:
    return need_module("opentelemetry.proto.profiles.v1development.profiles_pb2")


def written(profile: Any, **options: Any) -> Any:
    out = io.BytesIO()
    export(profile, out, to="otlp", **options)
    data = messages().ProfilesData()
    data.ParseFromString(out.getvalue())
    assert data.SerializeToString() == out.getvalue(), "the wire format is the same, field by field"
    return data


def with_time_of_day(small: FakeProfile) -> FakeProfile:
    small.add("clocks", clock_id=1, source_id=0, kind="realtime", offset_ns=0, realtime_offset_ns=10**18)
    return small


def locations(data: Any, stack: int) -> list[list[str]]:
    """The functions of each location, leaf first."""
    tables = data.dictionary
    name = lambda line: tables.string_table[tables.function_table[line.function_index].name_strindex]  # noqa: E731
    return [
        [name(line) for line in tables.location_table[index].lines]
        for index in tables.stack_table[stack].location_indices
    ]


def test_small_profile(small: FakeProfile) -> None:
    data = written(with_time_of_day(small))
    (resource,) = data.resource_profiles
    attributes = {one.key: one.value for one in resource.resource.attributes}
    assert attributes["process.pid"].int_value == 10
    assert attributes["service.name"].string_value == "app"
    ((profile,),) = ([*scope.profiles] for scope in resource.scope_profiles)
    texts = data.dictionary.string_table
    assert [texts[profile.sample_type.type_strindex], texts[profile.sample_type.unit_strindex]] == [
        "cpu_clock",
        "nanoseconds",
    ]
    assert len(profile.profile_id) == 16
    stacks = Counter()
    for sample in profile.samples:
        stacks[str(locations(data, sample.stack_index))] += len(sample.values)
        assert [*sample.values] == [MS] * len(sample.timestamps_unix_nano)
    # `add` is inlined into `run`: two lines of one location, the inlined one first
    assert stacks == {
        "[['run'], ['main']]": 1,
        "[['add', 'run'], ['main']]": 2,
        "[['[unknown] app'], ['main']]": 1,
        "[['sys_read'], ['main']]": 1,
        "[['Entry']]": 1,
        "[]": 1,
    }
    times = sorted(time for sample in profile.samples for time in sample.timestamps_unix_nano)
    assert times[0] == 10**18 + 5000 * MS
    ids = [
        one.value.string_value
        for one in data.dictionary.attribute_table
        if texts[one.key_strindex] == "process.executable.build_id.gnu"
    ]
    assert ids == [BUILD_ID]


def test_json_is_the_same_message(small: FakeProfile) -> None:
    json_format = need_module("google.protobuf.json_format")
    out = io.BytesIO()
    export(with_time_of_day(small), out, to="otlp", encoding="json")
    assert json_format.Parse(out.getvalue(), messages().ProfilesData()) == written(small)


def test_every_sample_of_perf(expected_script: Path) -> None:
    """Every sample of perf's own output, with its functions, root first."""
    profile = perf_script(expected_script)
    with pytest.warns(ExportWarning, match="time of day is unknown"):
        data = written(profile)
    theirs: Counter[tuple[str, ...]] = Counter()
    for resource in data.resource_profiles:
        for one in (one for scope in resource.scope_profiles for one in scope.profiles):
            for sample in one.samples:
                names = [name for location in locations(data, sample.stack_index) for name in location]
                theirs[tuple(reversed(names))] += sum(sample.values)
    frames = dict(profile.sql(f"SELECT frame_id, label FROM ({FRAMES})").fetchall())
    paths: dict[int | None, tuple[str, ...]] = {None: ()}
    for stack, parent, frame in profile.sql(
        "SELECT stack_id, parent_stack_id, frame_id FROM stacks ORDER BY 1"
    ).fetchall():
        paths[stack] = (*paths[parent], frames[frame])
    expected: Counter[tuple[str, ...]] = Counter()
    for stack, weight in profile.sql("SELECT stack_id, sum(weight)::BIGINT FROM samples GROUP BY 1").fetchall():
        expected[paths[stack]] += weight
    assert theirs == expected


@contextmanager
def collector(
    status: int = 200, rejected: int = 0, content_type: str = "application/x-protobuf"
) -> Iterator[tuple[str, list[Any]]]:
    """A server with the request and the response of the protocol: its address, and what it got."""
    service = need_module("opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = service.ExportProfilesServiceRequest()
            request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.path, self.headers["Content-Type"], request))
            answer = service.ExportProfilesServiceResponse()
            if rejected:
                answer.partial_success.rejected_profiles = rejected
                answer.partial_success.error_message = "too old"
            body = answer.SerializeToString() if status == 200 else b"no such signal"
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"otlp+http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_collector_gets_the_message(small: FakeProfile) -> None:
    with collector() as (address, got):
        assert export(with_time_of_day(small), address) == ()
    ((path, content_type, request),) = got
    assert (path, content_type) == ("/v1development/profiles", "application/x-protobuf")
    assert request.SerializeToString() == written(small).SerializeToString()


def test_answers_that_are_no_success(small: FakeProfile) -> None:
    small = with_time_of_day(small)
    with collector(rejected=3) as (address, _), pytest.raises(ExportError, match="rejected 3 profiles: too old"):
        export(small, address)
    with collector(status=404) as (address, _), pytest.raises(ExportError, match=r"404 .*no such signal"):
        export(small, address + "/other")
    with collector(status=307) as (address, got), pytest.raises(ExportError, match="answered 307"):
        export(small, address)
    assert len(got) == 1, "a redirect is not followed"
    # Parca answers any address with its page.
    with (
        collector(content_type="text/html") as (address, _),
        pytest.raises(ExportError, match="answered with text/html"),
    ):
        export(small, address)
    with pytest.raises(ExportError, match="cannot send to"):
        export(small, address)
    for wrong in ("otlp+http://", "otlp+http://host:port", "otlp+http://user@host"):
        with pytest.raises(UsageError):
            export(small, wrong)
    with pytest.raises(UsageError, match="takes OTLP profiles, not pprof"):
        export(small, address, to="pprof")


def test_samples_without_times_are_sums(small: FakeProfile) -> None:
    """Pyroscope takes one value of each sample."""
    small = with_time_of_day(small)
    profile, sums = (
        {
            (one.sample_type.type_strindex, sample.stack_index, *sample.attribute_indices): [*sample.values]
            for scope in data.resource_profiles[0].scope_profiles
            for one in scope.profiles
            for sample in one.samples
        }
        for data in (written(small), written(small, times=False))
    )
    assert {key: [sum(values)] for key, values in profile.items()} == sums
    with collector() as (address, got):
        export(small, address, times=False)
    ((_, _, request),) = got
    assert request.SerializeToString() == written(small, times=False).SerializeToString()


def test_every_profile_has_a_period(recorded_calls: Path) -> None:
    """Parca refuses profiles without the type of their period; sums have every occurrence."""
    data = written(pf.fuse(recorded_calls))
    texts = data.dictionary.string_table
    profiles = [one for every in data.resource_profiles for scope in every.scope_profiles for one in scope.profiles]
    assert {(texts[one.period_type.type_strindex], one.period) for one in profiles} == {("wall_time", 1), ("calls", 1)}


@pytest.fixture
def recorded_calls(xray_corpus: Path) -> Path:
    return xray_corpus / "fdr" / "small-v5.xray"


def test_refusals(small: FakeProfile) -> None:
    with pytest.raises(ExportError, match="no samples"):
        written(FakeProfile())
    with pytest.raises(UsageError, match="encoding"):
        written(small, encoding="text")

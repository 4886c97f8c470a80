"""A dataset in an object store: an S3 server of another project, and proxies before it that lose connections."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import perfuse
from fleet.conftest import LABELS
from fleet.generated import Written, write_fleet
from fleet.tables import contents
from perfuse.errors import PerfuseError, UsageError
from perfuse.fleet import Fleet, Pool, relabel, remove
from perfuse.fleet.maintenance import clean
from perfuse.fleet.packs import pack_path

pytest.importorskip("obstore")
pytestmark = pytest.mark.skipif(find_spec("moto") is None, reason="moto, which only the server imports, is missing")


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[int], Path]]:
    """The ports of an S3 server with the bucket `profiles`, and of two proxies; the file of what they lost."""
    lost = tmp_path_factory.mktemp("lost") / "lost"
    server = subprocess.Popen(
        [sys.executable, "-m", "fleet.object_store", str(lost)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
        text=True,
    )
    assert server.stdout is not None
    numbers = [int(word) for word in server.stdout.readline().split()]
    with urlopen(Request(f"http://127.0.0.1:{numbers[0]}/profiles", method="PUT")):
        pass
    yield numbers, lost
    server.communicate()


@pytest.fixture
def server(ports: tuple[list[int], Path]) -> int:
    """The port of the server."""
    return ports[0][0]


def _options(port: int) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag",
    }


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_fleet(tmp_path_factory.mktemp("inputs"), ["1"], runs=3, samples=200)


@pytest.fixture(scope="module")
def undisturbed(inputs: Written, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    fleet = Fleet(tmp_path_factory.mktemp("undisturbed") / "dataset")
    fleet.add(inputs.paths)
    return contents(fleet)


def test_a_dataset_in_an_object_store(server: int, inputs: Written, undisturbed: dict[str, Any]) -> None:
    fleet = Fleet("s3://profiles/plain", _options(server))
    assert not fleet.store.exists()
    pool = Pool(2)
    try:
        assert fleet.add(inputs.paths, engine=pool).num_added == len(inputs.paths)
    finally:
        pool.close()
    assert fleet.store.exists()
    assert contents(fleet) == undisturbed
    assert fleet.add(inputs.paths).kept == len(inputs.paths)
    assert clean(fleet, older_than_hours=0).files_after < 10
    assert contents(fleet) == undisturbed


def test_saved_profiles_in_an_object_store(
    server: int, inputs: Written, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """They are written, copied back, and deleted where no recording names them; selections copy only their files."""
    fleet = Fleet("s3://profiles/packed", _options(server))
    fleet.add(inputs.paths, keep_packs=True)
    assert contents(fleet) == undisturbed
    ((pack, path),) = fleet.rows("SELECT pack, json_extract_string(inputs, '$[0].path') FROM recordings LIMIT 1")
    copy = pack_path(fleet.store, pack, tmp_path)
    with perfuse.fuse(copy) as saved, perfuse.fuse(path) as plain:
        assert saved.sql("FROM samples").fetchall() == plain.sql("FROM samples").fetchall()
    url = f"http://127.0.0.1:{server}/profiles/packed/packs/ab/{'ab' * 16}.20260101T000000Z-{'0' * 16}.perfuse"
    with urlopen(Request(url, data=b"PK", method="PUT")):
        pass
    assert clean(fleet, older_than_hours=1).deleted_packs == 1
    assert pack_path(fleet.store, pack, tmp_path).is_file()


def test_recordings_in_an_object_store(
    server: int, inputs: Written, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    urls = []
    for number, path in enumerate(inputs.paths):
        name = f"profiles/inputs/{number}.collapsed"
        binary = {"Content-Type": "application/octet-stream"}
        request = Request(f"http://127.0.0.1:{server}/{name}", data=path.read_bytes(), method="PUT", headers=binary)
        with urlopen(request):
            urls.append(f"s3://{name}")
    fleet = Fleet(tmp_path / "dataset", _options(server))
    result = fleet.add([*urls, "s3://profiles/inputs/none.collapsed"])
    assert result.num_added == len(urls)
    assert [code for _, code, _ in result.failed] == ["UnreadableInput"]
    assert contents(fleet)["function_totals"] == undisturbed["function_totals"]


@pytest.mark.parametrize("proxy", [1, 2], ids=["requests", "answers"])
def test_connections_are_lost(
    ports: tuple[list[int], Path], inputs: Written, undisturbed: dict[str, Any], proxy: int
) -> None:
    """Every fourth request that writes, or the answer to it, is lost."""
    numbers, lost = ports
    before = lost.stat().st_size if lost.exists() else 0
    uri = f"s3://profiles/lossy-{proxy}"
    failures = []
    for _ in range(8):
        try:
            Fleet(uri, _options(numbers[proxy])).add(inputs.paths)
            break
        except (PerfuseError, OSError) as error:
            failures.append(error)
    else:
        raise AssertionError(failures)
    assert lost.stat().st_size > before
    assert contents(Fleet(uri, _options(numbers[0]))) == undisturbed


@pytest.mark.parametrize("proxy", [1, 2], ids=["requests", "answers"])
def test_connections_are_lost_while_recordings_are_edited(
    ports: tuple[list[int], Path], inputs: Written, tmp_path: Path, proxy: int
) -> None:
    """As above: what is repeated until it succeeds has the result of the local dataset."""
    numbers, _ = ports
    uri = f"s3://profiles/edited-{proxy}"
    local, plain = Fleet(tmp_path / "dataset"), Fleet(uri, _options(numbers[0]))
    for fleet in (local, plain):
        fleet.add(inputs.paths, labels_from=LABELS)
    service = "SELECT service, sum(self)::BIGINT FROM function_totals GROUP BY ALL ORDER BY ALL"
    for edit in (
        lambda fleet: relabel(fleet, "host=a", {"service": "web", "host": "c"}),
        lambda fleet: remove(fleet, "host=b, last 2"),
    ):
        edit(local)
        for number in range(8):
            try:
                edit(Fleet(uri, _options(numbers[proxy])))
                break
            except UsageError:
                # Nothing is left to edit, since an earlier commit was made and its answer lost.
                assert number
                break
            except (PerfuseError, OSError):
                if number == 7:
                    raise
        assert contents(plain) == contents(local)
        assert plain.rows(service) == local.rows(service)

"""What SQL can reach: the tables and what it is given; no files, extensions, settings or Python variables."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import perfuse as pf
from perfuse.errors import QueryError, UsageError

NUM_THREADS = 16


@pytest.fixture(scope="module")
def profile(jitdump_corpus: Path) -> pf.Profile:
    return pf.fuse(jitdump_corpus / "produced/node20.perf.data", jitdump_corpus / "produced/node20.dump")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text("password\nhunter2\n")
    return path


REACHING: dict[str, Callable[[Path], str]] = {
    "text": lambda path: f"SELECT * FROM read_text('{path}')",
    "CSV by its name": lambda path: f"SELECT * FROM '{path}'",
    "a file of no known form": lambda _path: "SELECT * FROM '/etc/passwd'",
    "names of files": lambda path: f"SELECT * FROM glob('{path.parent}/*')",
    "writing": lambda path: f"COPY (SELECT 1) TO '{path.parent}/out.csv'",
    "exporting": lambda path: f"EXPORT DATABASE '{path.parent}/out'",
    "a database": lambda path: f"ATTACH '{path.parent}/other.db'",
    "installing": lambda _path: "INSTALL httpfs",
    "loading": lambda _path: "LOAD httpfs",
    "settings": lambda _path: "SET enable_external_access = true",
    "Python variables, enabled": lambda _path: "SET python_enable_replacements = true",
    "a pragma": lambda _path: "PRAGMA temp_directory = '/'",
    "secrets": lambda _path: "CREATE PERSISTENT SECRET stolen (TYPE http)",
    "after a query": lambda path: f"SELECT 1; COPY (SELECT 1) TO '{path.parent}/out.csv'",
    "Python variables": lambda _path: "SELECT * FROM variable",
}


@pytest.mark.parametrize("what", REACHING)
def test_queries_do_not_reach(profile: pf.Profile, secret: Path, what: str) -> None:
    variable = pl.DataFrame({"a": [1]})
    before = sorted(secret.parent.iterdir())
    with pytest.raises(QueryError) as raised:
        profile.sql(REACHING[what](secret)).fetchall()
    assert raised.value.hint or "Persistent secrets are disabled" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert sorted(secret.parent.iterdir()) == before
    assert len(variable) == 1


def test_files_are_reached_where_that_is_allowed(profile: pf.Profile, secret: Path) -> None:
    rows = profile.sql(f"SELECT password FROM '{secret}'", allow_files=True).fetchall()
    assert rows == [("hunter2",)]
    out = secret.with_name("out.parquet")
    profile.sql("SELECT count(*) AS n FROM samples", allow_files=True).write_parquet(str(out))
    assert pl.read_parquet(out)["n"].to_list() == [profile.sql("SELECT count(*) FROM samples").fetchall()[0][0]]
    with pytest.raises(QueryError, match="file system operations are disabled"):
        profile.sql(f"SELECT password FROM '{secret}'")


def test_the_command_line_is_the_same(jitdump_corpus: Path, secret: Path) -> None:
    recording = jitdump_corpus / "produced/node20.dump"
    command = [sys.executable, "-m", "perfuse", "query", str(recording), f"SELECT password FROM '{secret}'"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--allow-files" in refused.stderr
    allowed = subprocess.run([*command, "--allow-files"], capture_output=True, text=True, check=True)
    assert "hunter2" in allowed.stdout


def test_values_are_bound_to_parameters(profile: pf.Profile) -> None:
    expected = profile.sql("SELECT count(*) FROM functions WHERE name LIKE '%run%'").fetchall()
    assert expected[0][0] > 0
    assert profile.sql("SELECT count(*) FROM functions WHERE name LIKE ?", ["%run%"]).fetchall() == expected
    assert profile.sql("SELECT count(*) FROM functions WHERE name LIKE $name", {"name": "%run%"}).fetchall() == expected
    injected = profile.sql("SELECT count(*) FROM functions WHERE name = $name", {"name": "' OR true OR '"})
    assert injected.fetchall() == [(0,)]


def test_tables_of_the_user_are_joined(profile: pf.Profile) -> None:
    [(thread_id, expected)] = profile.sql(
        "SELECT thread_id, count(*) FROM samples GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
    ).fetchall()
    mine = pl.DataFrame({"thread_id": [thread_id], "role": ["renderer"]})
    query = "SELECT role, count(*) FROM samples JOIN roles USING (thread_id) GROUP BY 1"
    relation = profile.sql(query, frames={"roles": mine})
    other = profile.sql(query, frames={"roles": mine.with_columns(role=pl.lit("other"))})
    assert relation.fetchall() == [("renderer", expected)]
    assert other.fetchall() == [("other", expected)]
    with pytest.raises(UsageError, match="common table"):
        profile.sql("SELECT 1", frames={"samples": mine})
    with pytest.raises(QueryError, match="roles does not exist"):
        profile.sql(query)


def test_relations_are_named_and_joined(profile: pf.Profile) -> None:
    counts = profile.sql("SELECT thread_id, count(*) AS num FROM samples GROUP BY 1")
    threads = profile.sql("SELECT thread_id, tid FROM threads")
    joined = counts.set_alias("c").join(threads.set_alias("t"), "thread_id")
    assert sorted(joined.project("tid, num").fetchall()) == sorted(
        profile.sql("SELECT tid, count(*) FROM samples JOIN threads USING (thread_id) GROUP BY 1").fetchall()
    )
    assert (
        profile.sql("SELECT sum(num) FROM counts", frames={"counts": counts}).fetchall()
        == profile.sql("SELECT count(*) FROM samples").fetchall()
    )


def test_times_with_a_zone(profile: pf.Profile) -> None:
    [(moment,)] = profile.sql("SELECT to_timestamp(1)").fetchall()
    assert moment.timestamp() == 1


QUESTIONS = (
    "SELECT count(*), sum(weight) FROM samples",
    "SELECT count(*) FROM frames JOIN stacks USING (frame_id)",
    "SELECT name, count(*) FROM functions GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5",
    "SELECT count(*) FROM records",
)


def test_threads_run_queries_of_one_profile(jitdump_corpus: Path) -> None:
    """All begin at once, on a profile that has no tables yet."""
    path = jitdump_corpus / "produced/node20.perf.data"
    alone = [pf.fuse(path).sql(question).fetchall() for question in QUESTIONS]
    profile = pf.fuse(path)
    together = threading.Barrier(NUM_THREADS)

    def ask(number: int) -> list[list[object]]:
        together.wait()
        order = [(number + step) % len(QUESTIONS) for step in range(3 * len(QUESTIONS))]
        found = {at: profile.sql(QUESTIONS[at]).fetchall() for at in order}
        return [found[at] for at in range(len(QUESTIONS))]

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for found in pool.map(ask, range(NUM_THREADS)):
            assert found == alone


def test_texts_and_comments_request_no_columns(profile: pf.Profile, tmp_path: Path) -> None:
    """Machine code is read, or refused where it was not saved, for a query that names its column only."""
    path = tmp_path / "app.perfuse"
    profile.save(path)
    with pf.fuse(path) as saved:
        query = "SELECT count(*) /* code, code_objects.code */, 'code' FROM code_objects -- and its code"
        assert saved.sql(query).fetchall() == profile.sql(query).fetchall()
        for column in ("code", '"code"', "code_objects.code"):
            with pytest.raises(UsageError, match="does not contain all machine code"):
                saved.sql(f"SELECT {column} FROM code_objects").fetchall()


def test_a_query_that_is_not_unicode(profile: pf.Profile) -> None:
    with pytest.raises(QueryError, match="not valid Unicode"):
        profile.sql("SELECT '\udcff'")

"""Fixtures for all tests: the corpus of real recordings and damaged files, which is stored outside the repository."""

import gc
import os
import random
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from needs import program_at
from perfuse.cli import OBJECTS_BEFORE_GC


def pytest_configure(config: pytest.Config) -> None:
    """Properties are tried on the same values, unless `--hypothesis-seed` (`make test SEED=N`) gives others."""
    settings.register_profile(
        "perfuse", derandomize=config.getoption("hypothesis_seed") is None, deadline=None, database=None
    )
    settings.load_profile("perfuse")
    gc.set_threshold(OBJECTS_BEFORE_GC, *gc.get_threshold()[1:])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out cases of the tests that are marked `some(n)`, where a seed is given: `make test` runs n, chosen by it.

    Tests of a module with the same parameters have the same choice, so that what they share is made once.
    """
    seed = config.getoption("hypothesis_seed")
    if seed is None:
        return
    cases: dict[tuple[str, int], set[str]] = {}
    for item in items:
        if case := _case(item):
            cases.setdefault(case[0], set()).add(case[1])
    chosen = {
        group: set(random.Random(f"{seed} {group[0]}").sample(sorted(found), min(group[1], len(found))))
        for group, found in cases.items()
    }
    left_out = [item for item in items if (case := _case(item)) and case[1] not in chosen[case[0]]]
    config.hook.pytest_deselected(items=left_out)
    ignored = set(left_out)
    items[:] = [item for item in items if item not in ignored]


def _case(item: pytest.Item) -> tuple[tuple[str, int], str] | None:
    """The module and number of a test that is marked `some`, and the text of its parameters."""
    marker = item.get_closest_marker("some")
    callspec = getattr(item, "callspec", None)
    return ((item.nodeid.partition("::")[0], marker.args[0]), callspec.id) if marker and callspec else None


def pytest_collection_finish() -> None:
    """The collector leaves out the thousands of tests, which would be a tenth of the processor's time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end of the process all objects are deleted; libraries report those that are left."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI nothing may be missing: a skipped test has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _fail_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI nothing may be missing: a module that is skipped as a whole has failed."""
    report = yield
    if report.skipped:
        _fail_in_ci(report)
    return report


def _fail_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a report of a skip into one of a failure, where CI is set."""
    if os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longreprtext}"


@pytest.fixture
def choice(request: pytest.FixtureRequest) -> random.Random:
    """Chooses what a test takes of many: the same in every run, others with a `--hypothesis-seed` other than 1."""
    return random.Random(f"{request.config.getoption('hypothesis_seed') or 1} {request.node.name}")


@pytest.fixture(scope="session")
def jitdump_corpus() -> Path:
    """The corpus' JITDUMP files."""
    return _corpus("jitdump")


@pytest.fixture(scope="session")
def xray_corpus() -> Path:
    """The corpus' XRay logs and programs."""
    return _corpus("xray")


@pytest.fixture(scope="session")
def mono_corpus() -> Path:
    """The corpus' Mono logs."""
    return _corpus("mono")


@pytest.fixture(scope="session")
def sframe_corpus() -> Path:
    """The corpus' programs with SFrame sections."""
    return _corpus("sframe")


@pytest.fixture(scope="session")
def mprof_report() -> str:
    """Mono's own reader of its logs."""
    return program_at("mprof-report")


def _corpus(part: str) -> Path:
    """A folder of the corpus, which is at `PERFUSE_CORPUS`, by default in `../shared/corpus`."""
    beside = Path(__file__).parents[2] / "shared" / "corpus"
    corpus = Path(os.environ.get("PERFUSE_CORPUS", beside)) / part
    if not corpus.is_dir():
        pytest.skip(f"no corpus at {corpus}")
    return corpus


@pytest.fixture(scope="session")
def llvm_xray() -> str:
    """LLVM's own reader of XRay logs, of the newest release."""
    return program_at("llvm-xray-22")

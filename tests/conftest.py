"""What all tests share: the corpus of real recordings and bad files, which is kept outside the repository."""

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything is there, so a test that is skipped has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longreprtext}"
    return report


@pytest.fixture(scope="session")
def jitdump_corpus() -> Path:
    """Its JITDUMP part."""
    return _corpus("jitdump")


@pytest.fixture(scope="session")
def xray_corpus() -> Path:
    """Its XRay part."""
    return _corpus("xray")


@pytest.fixture(scope="session")
def mono_corpus() -> Path:
    """Its Mono part."""
    return _corpus("mono")


@pytest.fixture(scope="session")
def sframe_corpus() -> Path:
    """Its SFrame part."""
    return _corpus("sframe")


@pytest.fixture(scope="session")
def mprof_report() -> str:
    """Mono's own reader of its logs."""
    found = shutil.which("mprof-report")
    if found is None:
        absent("no mprof-report")
    return str(found)


def _corpus(part: str) -> Path:
    """A part of the corpus. `PERFUSE_CORPUS` says where it is; else it is beside the repository."""
    beside = Path(__file__).parents[2] / "shared" / "corpus"
    corpus = Path(os.environ.get("PERFUSE_CORPUS", beside)) / part
    if not corpus.is_dir():
        absent(f"no corpus at {corpus}")
    return corpus


@pytest.fixture(scope="session")
def llvm_xray() -> str:
    """LLVM's own reader of XRay logs, of the newest release there is."""
    found = shutil.which("llvm-xray-22")
    if found is None:
        absent("no llvm-xray-22")
    return str(found)


def absent(what: str) -> None:
    """Skips a test for what this machine lacks; in CI, where everything is, that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)

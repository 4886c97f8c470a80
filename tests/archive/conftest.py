"""What tests of saved profiles share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from archive.saved_ranges import Opened
from perfuse.cli import run


@pytest.fixture
def answer(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Exit code, output and messages of a command line."""
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run([str(word) for word in words])
        return code, *capfd.readouterr()

    return call


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Recordings with their saved profiles, which are open until the tests of a file end."""
    with ExitStack() as stack:
        yield Opened(tmp_path_factory.mktemp("opened"), stack)

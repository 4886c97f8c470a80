"""What tests of saved profiles share."""

from collections.abc import Callable

import pytest

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

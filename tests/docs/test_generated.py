"""Generated pages are up to date, and the examples in docstrings work."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse

ROOT = Path(__file__).parents[2]
MODULES = [
    module.name for module in pkgutil.walk_packages(perfuse.__path__, "perfuse.") if "__main__" not in module.name
]


def test_generated_pages_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0

"""The packages of the extra `perfuse[fleet]`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from perfuse.errors import UsageError


def required(module: str) -> Any:
    """A module of the extra.

    Raises:
        UsageError: It is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise UsageError(
            f"fleets of recordings need the package {package}", hint="install the extra: pip install 'perfuse[fleet]'"
        ) from error

"""XRay instrumentation maps: the functions of a program that have sleds, and the meaning of function ids in logs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING

from perfuse import _core
from perfuse.diagnostics import Diagnostic, diagnostic

if TYPE_CHECKING:
    from arro3.core import Table as ArrowTable


class InstrumentationMap:
    """The instrumentation map of a program, a shared library or an object file (ELF or Mach-O).

    Functions are numbered as in logs: from 1 on, in the first object of a process. Names are looked up on first use: in
    the file's symbols and DWARF, or in its separate debug file.

    Attributes:
        path: The file.
    """

    def __init__(self, core: _core.InstrumentationMap, path: str) -> None:
        self._core = core
        self.path = path

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        symbol_dirs: Sequence[str | PathLike[str]] = (),
        debug_info: bool = True,
        architecture: str | None = None,
    ) -> "InstrumentationMap":
        """Opens a file and reads its map.

        Args:
            path: The program that was recorded, as it was linked.
            symbol_dirs: Directories with the debug file or an unstripped copy, found by name and by build id.
            debug_info: Use DWARF, which has the declarations of functions.
            architecture: Which part of a universal file: `x86_64`, `aarch64`. By default that of this machine, or the
                first.

        Raises:
            UnreadableInput: The file cannot be read, is not an object file, or has no map.
            UsageError: One of `symbol_dirs` is not a directory.
        """
        from perfuse.fusing.following import require_symbol_dirs

        require_symbol_dirs(symbol_dirs)
        core = _core.InstrumentationMap.open(path, [fspath(one) for one in symbol_dirs], debug_info, architecture)
        return cls(core, fspath(path))

    @property
    def architecture(self) -> str:
        """Machine of the code: `x86_64`, `aarch64`, `s390x`; `unknown` for machines that XRay does not support."""
        return self._core.architecture

    @property
    def pointer_bytes(self) -> int:
        """Size of an address in bytes."""
        return self._core.pointer_bytes

    @property
    def version(self) -> int | None:
        """Version of its entries; None where there are none, or several versions."""
        return self._core.version

    @property
    def versions(self) -> tuple[int, ...]:
        """All versions of its entries."""
        return tuple(self._core.versions)

    @property
    def kinds(self) -> dict[str, int]:
        """Number of sleds by kind, named as in `llvm-xray extract`: `function-enter`, `function-exit`."""
        return dict(self._core.kinds)

    @cached_property
    def functions(self) -> "ArrowTable":
        """The functions, one per row, as an `arro3.core.Table`.

        Columns: `id`, `address` (at link time), `section` (addresses are relative to it where the file is not linked),
        `name`, `linkage_name`, `path`, `line` and `column` of its declaration, `num_sleds`, `kinds`,
        `always_instrument`, `version`.
        """
        from arro3.core import Table as ArrowTable

        return ArrowTable.from_arrow(self._core.functions())

    @cached_property
    def sleds(self) -> "ArrowTable":
        """The sleds, one per row, grouped by function, as an `arro3.core.Table`.

        Columns: `function_id`, `address`, `function_address`, `section`, `kind`, `always_instrument`, `version`, and
        `offset` of the entry in the file.
        """
        from arro3.core import Table as ArrowTable

        return ArrowTable.from_arrow(self._core.sleds())

    @cached_property
    def findings(self) -> list[Diagnostic]:
        """Errors of the map, and functions without a name."""
        return [
            replace(diagnostic(code, self.path, message, offset), count=count)
            for code, message, offset, count in self._core.findings
        ]

    def __len__(self) -> int:
        """Number of functions."""
        return len(self._core)

    def __repr__(self) -> str:
        return f"<perfuse instrumentation map of {self.path}: {len(self):,} functions, {self.architecture}>"

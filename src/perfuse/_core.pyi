from collections.abc import Sequence
from typing import Any, Literal

def __getattr__(name: str) -> Any: ...

class JitdumpEncoder:
    def __new__(cls, endian: str) -> JitdumpEncoder: ...
    def header(self, elf_mach: int, pid: int, timestamp: int, flags: int) -> None: ...
    def take(self) -> bytes: ...
    def discard(self) -> None: ...
    def code_load(
        self,
        timestamp: int,
        ids: tuple[int, int],
        vma: int,
        code_addr: int,
        code_index: int,
        name: str,
        code: bytes,
    ) -> None: ...
    def code_move(
        self,
        timestamp: int,
        ids: tuple[int, int],
        vma: int,
        addresses: tuple[int, int],
        code_size: int,
        code_index: int,
    ) -> None: ...
    def debug_info(
        self, timestamp: int, code_addr: int, entries: Sequence[tuple[int, str, int, int]], repeat: bool
    ) -> None: ...
    def unwinding_info(
        self, timestamp: int, eh_frame_hdr: bytes, eh_frame: bytes, mapped_size: int, header_first: bool
    ) -> None: ...
    def inline_info(
        self,
        timestamp: int,
        code_addr: int,
        dialect: Literal["debug_info2", "frames"],
        outer: tuple[str, str, int, int],
        lines: Sequence[tuple[int, str, int, int]],
        calls: Sequence[tuple[int, int, int, str, str, int, int, str, int, int]],
    ) -> tuple[int, int, int, int]: ...
    def tier(self, timestamp: int, code_addr: int, color: int, name: str) -> None: ...
    def embedded_source(self, timestamp: int, path: str, text: bytes) -> None: ...
    def raw(self, timestamp: int, tag: int, body: bytes) -> None: ...
    def debug_info2_body(
        self,
        files: Sequence[str],
        function_names: Sequence[str],
        functions: Sequence[tuple[int, int, int, int, int]],
        inline_calls: Sequence[tuple[int, int, int, int, int]],
        ranges: Sequence[tuple[int, int]],
        lines: Sequence[tuple[int, int, int, int]],
    ) -> bytes: ...
    def frames_body(
        self,
        code_addr: int,
        code_offsets: Sequence[tuple[int, int]],
        source_positions: Sequence[tuple[int, int, int, int, int, int, int]],
        strings: Sequence[str],
    ) -> bytes: ...
    def inline_calls_body(
        self, code_addr: int, entries: Sequence[tuple[int, int, int, int, int, int, str, str]]
    ) -> bytes: ...
    def inline_stack_body(self, code_addr: int, entries: Sequence[tuple[int, int, str, str]]) -> bytes: ...

class Images:
    def facts(self) -> list[tuple[int, str, int, int, int, int]]: ...

def code_pids(fusion: Any) -> list[int]: ...
def write_images(fusion: Any, files: dict[int, int], machine: int) -> Images: ...
def inject_images(
    fusion: Any, images: Images, paths: dict[int, str], out: int
) -> tuple[int, int, int] | None: ...

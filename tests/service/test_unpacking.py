"""Compressed data, pipes and devices: limits by ratio and size, and an end for what has none."""

import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.errors import UnreadableInput, UsageError
from perfuse.input import streams

MIB = 1 << 20
SMALL = Path(__file__).parents[1] / "cli" / "testdata" / "jit-2345.dump"


def zeros_gz(num_bytes: int) -> bytes:
    """A gzip file with that number of zeros, made without them all in memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(bytes(MIB)) for _ in range(num_bytes // MIB)]
    return b"".join([*parts, packer.flush()])


def zeros_xz(num_bytes: int) -> bytes:
    packer = lzma.LZMACompressor(preset=0)
    parts = [packer.compress(bytes(MIB)) for _ in range(num_bytes // MIB)]
    return b"".join([*parts, packer.flush()])


def zeros_zst(num_bytes: int) -> bytes:
    """A zstd frame of run-length blocks, each 4 bytes for 128 KiB (RFC 8878, 3.1.1.2)."""
    descriptor = bytes([0x00, 0x38])  # no content size; a window of 128 KiB
    num_blocks = num_bytes >> 17
    blocks = [
        ((1 << 17) << 3 | 1 << 1 | (index == num_blocks - 1)).to_bytes(3, "little") + b"\0"
        for index in range(num_blocks)
    ]
    return b"\x28\xb5\x2f\xfd" + descriptor + b"".join(blocks)


def stated_zst(num_bytes: int) -> bytes:
    """A zstd frame whose header states a size that its one block does not have."""
    return b"\x28\xb5\x2f\xfd" + bytes([0xE0]) + num_bytes.to_bytes(8, "little") + bytes([1, 0, 0])


BOMBS: dict[str, Callable[[int], bytes]] = {"gz": zeros_gz, "xz": zeros_xz, "zst": zeros_zst}


@pytest.mark.parametrize("ending", BOMBS)
def test_the_ratio_limits_what_a_file_becomes(tmp_path: Path, ending: str) -> None:
    bomb = tmp_path / f"bomb.{ending}"
    bomb.write_bytes(BOMBS[ending](300 * MIB))
    assert bomb.stat().st_size < MIB
    with pytest.raises(UnreadableInput, match=r"bomb.*unpacks to more than 256 MiB, the limit") as raised:
        pf.open(bomb)
    assert raised.value.hint == "--max-unpacked SIZE (max_unpacked=) allows more"
    assert raised.value.path == str(bomb)


@pytest.mark.parametrize("ending", BOMBS)
def test_a_limit_holds_for_paths_bytes_and_streams(tmp_path: Path, ending: str) -> None:
    content = BOMBS[ending](4 * MIB)
    path = tmp_path / f"file.{ending}"
    path.write_bytes(content)
    for source in (lambda: path, lambda: content, lambda: io.BytesIO(content)):
        with pytest.raises(UnreadableInput, match="more than 1 MiB, the limit"):
            pf.open(source(), max_unpacked="1MiB")
        # It fits, and is not a recording.
        with pytest.raises(UnreadableInput, match="magic"):
            pf.open(source(), max_unpacked=4 * MIB)


def test_a_stated_size_is_refused_before_unpacking() -> None:
    with pytest.raises(UnreadableInput, match="unpacks to more than 256 MiB"):
        pf.open(stated_zst(1 << 50))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_compressed_files_are_what_they_contain(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "packed"
    path.write_bytes(pack(SMALL.read_bytes()))
    plain, packed = pf.open(SMALL), pf.open(path)
    assert packed.read_bytes(0, packed.size_bytes) == SMALL.read_bytes()
    assert packed.summary.records == plain.summary.records


def test_an_xz_file_of_two_streams_and_a_cut_one() -> None:
    half = SMALL.stat().st_size // 2
    content = SMALL.read_bytes()
    both = lzma.compress(content[:half]) + lzma.compress(content[half:])
    assert pf.open(both).read_bytes(0, len(content)) == content
    cut = lzma.compress(content)[:-40]
    recording = pf.open(cut)
    assert content.startswith(recording.read_bytes(0, len(content)))
    assert [one.code for one in recording.check() if one.code == "IO001"] == ["IO001"]


def test_an_xz_file_cannot_ask_for_gigabytes_of_memory() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    content = bytearray(lzma.compress(bytes(100), filters=filters))
    # Block header after the 12 bytes of the stream header: size, flags, id, size of properties, dictionary size.
    content[16] = 40  # 4 GiB - 1
    header_size = (content[12] + 1) * 4
    content[12 + header_size - 4 : 12 + header_size] = zlib.crc32(bytes(content[12 : 12 + header_size - 4])).to_bytes(
        4, "little"
    )
    code = r"""
import re, sys
from pathlib import Path
import perfuse as pf
try:
    pf.open(sys.stdin.buffer.read())
except pf.UnreadableInput:
    print(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])  # of this program alone
"""
    done = subprocess.run([sys.executable, "-c", code], input=bytes(content), capture_output=True, check=True)
    assert int(done.stdout) < 1 << 20  # KiB


@pytest.mark.parametrize("size", ["", "0", "-1", "x", "1XB", 0, -1])
def test_a_limit_is_a_positive_size(size: int | str) -> None:
    with pytest.raises(UsageError):
        pf.open(SMALL, max_unpacked=size)


def test_the_limit_ends_with_the_call() -> None:
    content = gzip.compress(SMALL.read_bytes())
    with pytest.raises(UnreadableInput):
        pf.open(content, max_unpacked=10)
    assert pf.open(content).size_bytes == SMALL.stat().st_size
    with pytest.raises(UnreadableInput):
        pf.fuse(content, max_unpacked=10)
    assert pf.fuse(content).recordings[0].size_bytes == SMALL.stat().st_size


def perfuse(*words: str, stdin: int | None = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perfuse", *words], stdin=stdin, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("verb", ["info", "report", "check", "records", "tables", "watch"])
def test_a_device_is_refused(verb: str) -> None:
    done = perfuse(verb, "/dev/zero")
    assert done.returncode == 3
    assert "cannot read /dev/zero: it is a device, not a file or a pipe" in done.stderr
    assert done.stdout == ""


def test_standard_input_without_an_end_has_one() -> None:
    with open("/dev/zero", "rb") as zeros:  # noqa: PTH123
        done = perfuse("info", "-", "--max-unpacked", "32MB", stdin=zeros.fileno())
    assert done.returncode == 3
    assert "cannot read -: it has more than 32 MB, the limit" in done.stderr
    assert "--max-unpacked" in done.stderr


def test_the_option_raises_and_lowers_the_limit(tmp_path: Path) -> None:
    (tmp_path / "small.gz").write_bytes(gzip.compress(SMALL.read_bytes()))
    low = perfuse("report", str(tmp_path / "small.gz"), "--max-unpacked", "1000")
    assert (low.returncode, "more than 1000 bytes" in low.stderr) == (3, True)
    assert perfuse("report", str(tmp_path / "small.gz"), "--max-unpacked", "1GB").returncode == 0
    wrong = perfuse("report", str(tmp_path / "small.gz"), "--max-unpacked", "much")
    assert wrong.returncode == 2


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    yield path
    path.unlink()


def test_a_pipe_that_nobody_writes_to_has_an_end(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "WRITER_WAIT_S", 0.01)
    with pytest.raises(UnreadableInput, match="nothing was written to this pipe"):
        pf.open(pipe)


def test_a_pipe_is_read_to_its_end(pipe: Path) -> None:
    content = gzip.compress(SMALL.read_bytes())
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    recording = pf.open(pipe)
    writer.join()
    assert recording.read_bytes(0, recording.size_bytes) == SMALL.read_bytes()


def test_a_pipe_in_a_directory_is_not_opened(pipe: Path) -> None:
    (pipe.parent / "jit-1.dump").write_bytes(SMALL.read_bytes())
    pipe.rename(pipe.with_name("jit-2.dump"))
    assert [one.path for one in pf.fuse(pipe.parent).recordings] == [str(pipe.parent / "jit-1.dump")]
    pipe.with_name("jit-2.dump").rename(pipe)


def test_an_exception_of_a_stream_is_the_callers() -> None:
    class Failing(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pf.open(Failing())


def test_temporary_space_is_checked_first(tmp_path: Path) -> None:
    """A file system with 16 MiB cannot take 200 MiB: an error that names it, and nothing is left there."""
    bomb = tmp_path / "large.gz"
    bomb.write_bytes(zeros_gz(200 * MIB))
    small = tmp_path / "small"
    small.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", small], capture_output=True, check=False)
    if mount.returncode:
        # Without the right to mount, the limit on the size of files has the same effect.
        pytest.xfail("no right to mount a file system")
    try:
        command = [sys.executable, "-m", "perfuse", "info", str(bomb)]
        environment = {**os.environ, "TMPDIR": str(small)}
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 3
        assert f"temporary files in {small}" in done.stderr
        assert "TMPDIR" in done.stderr
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


PIPE_HEADER = b"PERFILE2" + (16).to_bytes(8, "little")
COMPRESSED = 81
"""PERF_RECORD_COMPRESSED of linux/tools/lib/perf/include/perf/event.h."""


def packed_records(stream: bytes) -> bytes:
    """A piped recording of perf with that zstd stream in its compressed records, each of which has at most 64 KiB."""
    most = 65_520
    parts = [stream[start : start + most] for start in range(0, len(stream), most)]
    header = COMPRESSED.to_bytes(4, "little") + bytes(2)
    return PIPE_HEADER + b"".join(header + (8 + len(part)).to_bytes(2, "little") + part for part in parts)


@pytest.mark.parametrize("limit", [None, 1 << 20])
def test_packed_records_have_the_same_limits(limit: int | None) -> None:
    recording = pf.open(packed_records(zeros_zst(300 * MIB)), max_unpacked=limit)
    [found] = [one for one in recording.check() if one.code == "PD012"]
    assert f"unpacks to more than {'1 MiB' if limit else '256 MiB'}, the limit" in found.message

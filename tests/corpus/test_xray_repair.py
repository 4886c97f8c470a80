"""llvm-xray accepts repaired logs: its own verifier checks them, where it supports the format."""

import subprocess
from pathlib import Path

import pytest

import perfuse

ACCEPTED = ["fdr", "fdr-old", "dso", "synthetic", "malformed"]
"""Folders with little-endian FDR logs, the only ones that llvm-xray verifies."""


def is_fdr(path: Path) -> bool:
    head = path.read_bytes()[:4]
    return head[2:4] == b"\x01\x00" and head[1:2] == b"\x00"


@pytest.mark.truth(recording=["xray_fdr", "xray_shared_objects"], path="repair", source="llvm-xray fdr-dump --verify")
@pytest.mark.parametrize("folder", ACCEPTED)
def test_repaired_logs_are_accepted(folder: str, xray_corpus: Path, llvm_xray: str, tmp_path: Path) -> None:
    logs = [path for path in sorted((xray_corpus / folder).glob("*.xray")) if is_fdr(path)]
    assert logs
    repaired = tmp_path / "repaired.xray"
    for path in logs:
        repaired.unlink(missing_ok=True)
        try:
            perfuse.repair(path, repaired)
        except perfuse.UnreadableInput:
            assert path.stat().st_size < 32
            continue
        done = subprocess.run([llvm_xray, "fdr-dump", "--verify", repaired], capture_output=True, check=False)
        assert done.returncode == 0, f"{path.name}: {done.stderr.decode(errors='replace')}"


@pytest.mark.parametrize("name", ["typed-v5", "zero-event-v5", "threads_custom-v2", "threads_custom-v3"])
def test_llvm_xray_refuses_what_was_repaired(name: str, xray_corpus: Path, llvm_xray: str) -> None:
    """llvm-xray refuses some real logs, so repair is useful."""
    folder = "fdr" if name.endswith("v5") else "fdr-old"
    refused = subprocess.run(
        [llvm_xray, "fdr-dump", "--verify", xray_corpus / folder / f"{name}.xray"], capture_output=True, check=False
    )
    assert refused.returncode != 0


def test_a_wrong_rate_is_corrected(xray_corpus: Path, tmp_path: Path) -> None:
    path, repaired = xray_corpus / "fdr" / "wrong-frequency-v5.xray", tmp_path / "repaired.xray"
    result = perfuse.repair(path, repaired)
    assert "XR003" in {change.code for change in result.changes}
    assert result.lost == []
    hz = perfuse.open(repaired).header["cycle_frequency"]
    assert hz == pytest.approx(2_596_126_000, rel=5e-4)

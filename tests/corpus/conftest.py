"""The corpus: real recordings and bad files, kept outside the repository."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def jitdump_corpus() -> Path:
    """Its JITDUMP part. `PERFUSE_CORPUS` says where the corpus is; else it is beside the repository."""
    beside = Path(__file__).parents[3] / "shared" / "corpus"
    corpus = Path(os.environ.get("PERFUSE_CORPUS", beside)) / "jitdump"
    if not corpus.is_dir():
        pytest.skip(f"no corpus at {corpus}")
    return corpus

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", ROOT.parent / "shared" / "corpus")) / "jitdump"


@pytest.fixture(scope="session", params=["node24", "openjdk17-jvmti", "wasmtime50"])
def expected_script(request: pytest.FixtureRequest) -> Path:
    """perf's own output for a real recording."""
    path = CORPUS / "expected" / f"{request.param}.script.txt.gz"
    if not path.exists():
        pytest.skip(f"no corpus at {CORPUS}")
    return path

"""Programs of other projects that npm installs for tests, into build/ on first use."""

import fcntl
import subprocess
from pathlib import Path

from needs import need

ROOT = Path(__file__).parents[1]


def node_modules(wanted: Path) -> Path:
    """The packages of a package.json, which is in a folder `peers` of the tests; skips the test without npm."""
    need("npm")
    build = ROOT / "build" / f"{wanted.parent.parent.name}-peers"
    build.mkdir(parents=True, exist_ok=True)
    package = wanted.read_text()
    here = build / "package.json"
    # Tests run in several processes, one of which installs them.
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not here.exists() or here.read_text() != package or not (build / "node_modules").exists():
            here.write_text(package)
            subprocess.run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"], cwd=build, check=True)
    return build / "node_modules"

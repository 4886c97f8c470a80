"""The workflow of the guide about CI: its step runs, and ends as the guide's table says."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from pages import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "ci-check.md"


@pytest.mark.parametrize(("accepted", "code"), [("JD052\n", 1), ("# V8\nJD052\nJD053@name\nJD067\n", 0)])
def test_the_step_of_the_workflow(recorded: Path, environment: dict[str, str], accepted: str, code: int) -> None:
    [workflow] = blocks(GUIDE, "yaml")
    [step] = re.findall(r"^ *(perfuse .*)$", workflow, re.M)
    (recorded / ".perfuse-accepted").write_text(accepted)
    done = subprocess.run(["bash", "-ec", step], cwd=recorded, env=environment, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    for used in re.findall(r"check\.(?:sarif|xml)", workflow):
        assert (recorded / used).exists()
    [run] = json.loads((recorded / "check.sarif").read_bytes())["runs"]
    assert run["invocations"][0]["exitCode"] == code

"""The Mono logs of the corpus, and facts about each that other programs determined."""

import json
import os
from pathlib import Path
from typing import Any

BESIDE = Path(__file__).parents[3] / "shared" / "corpus"
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", BESIDE)) / "mono"


def logs(*folders: str) -> list[Path]:
    """Every log of some folders of the corpus."""
    return sorted(path for folder in folders for path in (CORPUS / folder).glob("*.mlpd*"))


def stem(path: Path) -> str:
    """The log's name without its suffixes; the files of facts about it have the same name."""
    return path.name.split(".mlpd")[0]


def truth(path: Path) -> dict[str, Any]:
    """Facts of a log; empty where there are none."""
    path_of_facts = CORPUS / "expected" / path.parent.name / f"{stem(path)}.truth.json"
    facts: dict[str, Any] = json.loads(path_of_facts.read_text(encoding="utf-8")) if path_of_facts.is_file() else {}
    return facts


def counts(path: Path) -> dict[str, int]:
    """Events of a log by kind."""
    text = (CORPUS / "counts" / path.parent.name / f"{stem(path)}.txt").read_text(encoding="utf-8", errors="replace")
    found = {}
    for line in text.splitlines():
        words = line.split()
        # A line of an event kind begins with the event's first byte: `  43 METHOD JIT   2581   194444 bytes`.
        if line.startswith("  ") and not line.startswith("   ") and len(words[0]) == 2:
            found["_".join(words[1:-3])] = int(words[-3])
    return found

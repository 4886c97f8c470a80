"""Fills the sections of the site that list all pages of a folder, so that mkdocs.yml need not name them."""

from pathlib import Path
from typing import Any

FOLDERS = {"Formats": "formats", "Decisions": "decisions"}


def on_config(config: Any) -> Any:
    """Adds the pages of each folder to its section, the index first; called by mkdocs."""
    docs = Path(config["docs_dir"])
    for entry in config["nav"]:
        for title, folder in FOLDERS.items():
            if isinstance(entry, dict) and title in entry:
                pages = sorted(page.name for page in (docs / folder).glob("*.md") if page.name != "index.md")
                entry[title] = [f"{folder}/{name}" for name in ("index.md", *pages)]
    return config

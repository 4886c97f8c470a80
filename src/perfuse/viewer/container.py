"""Binary answers: JSON and columns of numbers in one container, which a page reads without copying.

The layout is that of JSLB. The root is JSON; its member `columns` has the number of each column's slab.
"""

from collections.abc import Mapping
from typing import Any

from perfuse.output.jslb import TYPES, json_slab, packed


def container(head: Mapping[str, Any], columns: Mapping[str, tuple[str, bytes]]) -> bytes:
    """Numbers for the page as bytes, with a JSON object that describes them.

    Args:
        head: The JSON object, without `columns`.
        columns: Type and little-endian numbers of each column, by name.
    """
    root = {**head, "columns": {name: number for number, name in enumerate(columns, 1)}}
    return packed([json_slab(root), *((TYPES[kind], data) for kind, data in columns.values())], 0)

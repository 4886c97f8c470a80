"""Decodes every debug entry of a dump and prints what that took, as JSON. usage: decode_lines.py DUMP"""

import json
import sys
import time

import perfuse


def main(path: str) -> None:
    """Streams the table of line rows, batch by batch, and keeps none of it."""
    started = time.perf_counter()
    num_rows = sum(batch.num_rows for batch in perfuse.open(path).tables["line_rows"].stream())
    print(json.dumps({"seconds": time.perf_counter() - started, "num_rows": num_rows}))


if __name__ == "__main__":
    main(sys.argv[1])

"""Streams a table of a recording and prints what that took, as JSON. usage: decode.py FILE TABLE"""

import json
import sys
import time

import perfuse


def main(path: str, table: str) -> None:
    """Pulls every batch, and keeps none."""
    started = time.perf_counter()
    num_rows = sum(batch.num_rows for batch in perfuse.open(path).tables[table].stream())
    print(json.dumps({"seconds": time.perf_counter() - started, "num_rows": num_rows}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

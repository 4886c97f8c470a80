"""Streams a table of a recording and prints the time and the number of rows, as JSON. usage: decode.py FILE TABLE"""

import json
import sys
import time

import perfuse


def main(path: str, table: str) -> None:
    """Reads every batch and discards it."""
    started = time.perf_counter()
    num_rows = sum(batch.num_rows for batch in perfuse.open(path).tables[table].stream())
    print(json.dumps({"seconds": time.perf_counter() - started, "num_rows": num_rows}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

"""Writing the result of a query: as a text table, CSV, JSON, Parquet or Arrow."""

from __future__ import annotations

import io
import os
import shutil
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from perfuse import _core
from perfuse.cli.console import Console
from perfuse.declared_formats import COMPRESSED
from perfuse.errors import QueryError, UsageError, core_error
from perfuse.output.file import output_file
from perfuse.output.terminal import standard_output
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.json_text import address_value, is_address, json_text
from perfuse.reports.text import Role, Style, cell_width, cut, cut_middle
from perfuse.reports.units import count_text

if TYPE_CHECKING:
    from perfuse.query import DuckDBRelation

ENDINGS = {
    "table": (".txt",),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "json": (".json",),
    "ndjson": (".ndjson", ".jsonl"),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather", ".ipc"),
    "arrow-stream": (".arrows",),
}
"""The forms of a result, with the endings of their files."""
FORMATS = tuple(ENDINGS)
TABLE_LIMIT = 50
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")


def form_of_file(path: str) -> str:
    """The form of a file by the ending of its name; `.gz` and `.zst` may follow it.

    Raises:
        UsageError: No form has that ending.
    """
    name = Path(path)
    ending = Path(name.stem if name.suffix.lower() in COMPRESSED else name).suffix.lower()
    for form, endings in ENDINGS.items():
        if ending in endings:
            return form
    known = ", ".join(one for endings in ENDINGS.values() for one in endings)
    raise UsageError(
        f"no form has the ending of {name.name}",
        hint=f"endings: {known}, each also with {' or '.join(COMPRESSED)}; --format NAME allows any name",
    )


def write_result(console: Console, relation: DuckDBRelation, form: str, path: str | None, limit: int | None) -> None:
    """Writes the rows of a relation to a file, or to standard output where `path` is None.

    Every row is written unless there is a limit; a table on standard output has one.

    Raises:
        ExportError: The file cannot be written.
        QueryError: The query fails while its rows are computed.
    """
    from perfuse.query import query_errors

    if limit is None and form == "table" and path is None:
        limit = TABLE_LIMIT
    shown = relation.limit(limit) if limit else relation
    with query_errors():
        if path is None:
            _write_stdout(console, shown, form)
        else:
            _write_file(shown, form, Path(path))
        if not limit:
            return
        [(total,)] = relation.count("*").fetchall()
    if total <= limit:
        return
    if form == "table" and path is None:
        console.line(console.style.paint(f"… {count_text(total - limit)} more rows (--limit 0 shows all)", Role.FAINT))
    else:
        console.note(f"{count_text(total - limit)} more rows were left out", "--limit 0 writes all")


def _write_file(relation: DuckDBRelation, form: str, path: Path) -> None:
    by_name = _named_writer(relation, form)
    with output_file(path) as out:
        if by_name is not None:
            _through_pipe(relation, by_name, out)
            return
        if form in {"arrow", "arrow-stream"}:
            _write_arrow(relation, out, form)
            return
        text = io.TextIOWrapper(out, encoding="utf-8", newline="\n")
        _write_text(relation, form, text, Style())
        text.flush()
        text.detach()


def _write_stdout(console: Console, relation: DuckDBRelation, form: str) -> None:
    by_name = _named_writer(relation, form)
    if by_name is not None:
        console.out.flush()
        _through_pipe(relation, by_name, standard_output())
    elif form in {"arrow", "arrow-stream"}:
        console.out.flush()
        out = standard_output()
        _write_arrow(relation, out, form)
        out.flush()
    else:
        _write_text(relation, form, console.out, console.style)


def _named_writer(relation: DuckDBRelation, form: str) -> Callable[[str], None] | None:
    """DuckDB's own writer of a form, which takes the name of a file; None for the forms that it does not write."""
    if form == "parquet":
        return relation.write_parquet
    if form == "csv":
        return relation.write_csv
    if form == "tsv":
        return lambda path: relation.write_csv(path, sep="\t")
    return None


def _write_arrow(relation: DuckDBRelation, out: IO[bytes], form: str) -> None:
    try:
        _core.write_arrow(out, relation, form == "arrow-stream")
    except ValueError as error:
        # An Arrow stream passes on errors of the query as text.
        raise core_error(error) or QueryError(str(error)) from error


def _write_text(relation: DuckDBRelation, form: str, out: TextIO, style: Style) -> None:
    if form == "table":
        out.writelines(line + "\n" for line in table_lines(relation, style))
        return
    rows = (json_text(row, indent=None) for row in _json_rows(relation))
    if form == "ndjson":
        out.writelines(row + "\n" for row in rows)
        return
    # One JSON document, and one row per line for grep.
    separator = "["
    for row in rows:
        out.write(f"{separator}\n{row}")
        separator = ","
    out.write("[]\n" if separator == "[" else "\n]\n")


def _json_rows(relation: DuckDBRelation) -> Iterator[dict[str, Any]]:
    # Two columns of one name would be one member; a subquery gives the second a name, as CSV and Parquet have it.
    names = relation.limit(0).columns
    addresses = [is_address(name) for name in relation.columns]
    for row in relation.fetchall():
        values = [address_value(value) if address else value for value, address in zip(row, addresses, strict=True)]
        yield dict(zip(names, values, strict=True))


def table_lines(relation: DuckDBRelation, style: Style) -> Iterator[str]:
    """The rows as an aligned table; null is empty, addresses are hexadecimal."""
    names = relation.columns
    rows = relation.fetchall()
    kinds = [str(kind) for kind in relation.types]
    numeric = [any(part in kind for part in _NUMBERS) and "[" not in kind for kind in kinds]
    columns = [
        Column(name, right=right, shrinks=None if right else 12, cut=cut_middle if name.endswith("path") else cut)
        for name, right in zip(names, numeric, strict=True)
    ]
    texts = [_cell_text(name, kind) for name, kind in zip(names, kinds, strict=True)]
    cells: list[list[Cell]] = [[text(value) for text, value in zip(texts, row, strict=True)] for row in rows]
    num_shown = _fitting(columns, cells, style)
    yield from grid(columns[:num_shown], [row[:num_shown] for row in cells], style, indent="")
    if num_shown < len(names):
        yield style.paint(f"… more columns: {', '.join(names[num_shown:])}", Role.FAINT)


def _fitting(columns: Sequence[Column], cells: Sequence[Sequence[Cell]], style: Style) -> int:
    """The number of columns that fit in a line."""
    if style.width is None:
        return len(columns)
    for num_shown in range(len(columns), 1, -1):
        lines = grid(columns[:num_shown], [row[:num_shown] for row in cells], Style(width=style.width), indent="")
        if all(cell_width(line) <= style.width for line in lines):
            return num_shown
    return 1


def _cell_text(column: str, kind: str) -> Callable[[Any], str]:
    """The function that writes the values of a column."""
    address = is_address(column)
    # Floats of 32 bits arrive with the digits of 64.
    number = _single_text if kind == "FLOAT" else repr

    def text(value: Any) -> str:
        if value is None:
            return ""
        if address:
            value = address_value(value)
        if isinstance(value, bytes):
            return value.hex(" ")
        if isinstance(value, float):
            return number(value)
        if isinstance(value, list):
            return "[" + ", ".join(str(item) for item in value) + "]"
        return str(value)

    return text


def _single_text(value: float) -> str:
    """The shortest decimal number that a float of 32 bits reads as this value."""
    single = struct.pack("f", value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return repr(float(next((text for text in texts if struct.pack("f", float(text)) == single), value)))


def _through_pipe(relation: DuckDBRelation, write: Callable[[str], None], out: IO[bytes]) -> None:
    """Lets DuckDB write to an open file, or to standard output.

    DuckDB writes to file names only, and only in the directory of its temporary files: it writes into a named pipe
    there, and a thread copies the pipe to the output.
    """
    from perfuse.query import writable_directory

    directory = writable_directory(relation)
    pipe = directory / f"result-{threading.get_ident()}"
    os.mkfifo(pipe, 0o600)
    failed: list[OSError | UsageError] = []
    try:
        # Opening either end waits for the other one, unless it need not wait.
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        # Kept open until DuckDB has ended, because the pipe ends with its last writer.
        writer = os.open(pipe, os.O_WRONLY)
        os.set_blocking(reader, True)

        def pump() -> None:
            with open(reader, "rb", buffering=0) as source:  # noqa: PTH123 - a descriptor, not a path
                try:
                    shutil.copyfileobj(source, out, 1 << 20)
                    out.flush()
                except (OSError, UsageError) as error:
                    failed.append(error)

        thread = threading.Thread(target=pump)
        thread.start()
        try:
            write(str(pipe))
        except Exception:
            # Where copying failed, its error is the cause.
            if not failed:
                raise
        finally:
            os.close(writer)
            thread.join()
    finally:
        pipe.unlink(missing_ok=True)
        with suppress(OSError):  # not empty where the database has temporary files
            directory.rmdir()
    if failed:
        raise failed[0]

"""`perfuse query`"""

from __future__ import annotations

import click

from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import files_and_text, limit, output, profile_options, stack_filters
from perfuse.cli.result import FORMATS, form_of_file, write_result
from perfuse.cli.verbs import verb
from perfuse.errors import UsageError


@verb(
    "query",
    examples=[
        'perfuse query jit-2345.dump "SELECT tier, count(*) FROM code_objects GROUP BY ALL"',
        'perfuse query perf.data jit-2345.dump "FROM samples" --format csv --limit 0',
        'perfuse query jit-2345.dump "FROM line_rows" -o lines.parquet',
        'perfuse query jit-2345.dump "FROM functions" -o functions.csv.gz',
        'perfuse query xray-log.server.uocuES "SELECT function_id, count(*) FROM slices GROUP BY ALL" --memory 1GB',
    ],
)
@click.argument("files_and_sql", nargs=-1, required=True, metavar="FILE... SQL")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    metavar="FORM",
    help=f"{', '.join(FORMATS)}. [by the name of OUT, or table]",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json: an array with one object per row.")
@limit(None, "rows [50 as a table on standard output]")
@click.option(
    "--allow-files", is_flag=True, help="The SQL may read and write files, load extensions and change settings."
)
@output("File to write")
@profile_options
@stack_filters
def command(
    console: Console,
    files_and_sql: tuple[str, ...],
    form: str | None,
    as_json: bool,
    limit: int | None,
    allow_files: bool,
    output: str | None,
    how: ProfileOptions,
) -> int:
    """The SQL dialect is DuckDB's. `perfuse tables FILE` lists the tables; only those that a query names are built.

    --between, --thread and --process select rows of `samples`. Other tables are whole: the SQL selects their rows.
    """
    from perfuse.query import tables_in

    files, sql = files_and_text(files_and_sql, "SQL")
    if as_json:
        form = "json"
    if form is None:
        form = form_of_file(output) if output and output != "-" else "table"
    selects_samples = (how.between, how.process, how.thread) != (None, None, None)
    if selects_samples and "samples" not in tables_in(sql):
        raise UsageError(
            f"{how.selection_text} selects rows of samples, which the SQL does not read",
            hint="select rows of other tables in the SQL, such as WHERE thread_id = 3 AND ts_ns < 1e9",
        )
    profile = open_profile(console, files, how)
    if how.stack_filter:
        # A filter that matches nothing is an error, also where the SQL names other tables.
        profile.tables["stacks"].to_arrow()
    relation = profile.sql(sql, allow_files=allow_files)
    if relation is None:
        raise click.UsageError("the SQL returns no rows: it must be a SELECT, or FROM a table")
    write_result(console, relation, form, None if output == "-" else output, limit)
    return note_data_loss(console, profile.diagnostics)

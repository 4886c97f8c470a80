"""What of a program was run at all: statements, by method, class and assembly."""

from dataclasses import dataclass

from perfuse.analysis.runtime import Managed

_METHODS = """
    SELECT assembly::VARCHAR AS assembly, class::VARCHAR AS class, method::VARCHAR AS method,
        signature::VARCHAR AS signature, any_value(path::VARCHAR) AS path, token,
        count(il_offset) AS num_statements, count(*) FILTER (num_runs > 0) AS num_run,
        min(line) FILTER (num_runs = 0) AS first_missed
    FROM coverage GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Covered:
    """An assembly, a class or a method.

    Attributes:
        assembly: The assembly.
        class_name: The class; None for an assembly.
        method: The method with its signature; None for an assembly or a class.
        num_methods: Methods that have statements.
        num_whole: Of them, those of which every statement ran.
        num_partial: Of them, those of which some did.
        num_statements: Statements.
        num_run: Of them, those that ran.
        missed_line: First line of a method that did not run; None where all did, or it is not about a method.
        path: Source file, of a method.
    """

    assembly: str
    class_name: str | None
    method: str | None
    num_methods: int
    num_whole: int
    num_partial: int
    num_statements: int
    num_run: int
    missed_line: int | None
    path: str | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of assemblies, classes and methods, those with most left out first."""

    assemblies: list[Covered]
    classes: list[Covered]
    methods: list[Covered]


def coverage(profile: Managed) -> Coverage:
    """Coverage of everything that was counted."""
    levels = {
        "assemblies": "assembly, NULL::VARCHAR, NULL::VARCHAR",
        "classes": "assembly, class, NULL::VARCHAR",
        "methods": "assembly, class, method || ' (' || signature || ')'",
    }
    found = {}
    for name, key in levels.items():
        of_method = "min(first_missed), any_value(path)" if name == "methods" else "NULL, NULL"
        rows = profile.sql(f"""
            SELECT {key}, count(*) FILTER (num_statements > 0),
                count(*) FILTER (num_statements > 0 AND num_run = num_statements),
                count(*) FILTER (num_run > 0 AND num_run < num_statements),
                sum(num_statements)::BIGINT AS statements, sum(num_run)::BIGINT AS run, {of_method}
            FROM ({_METHODS}) GROUP BY 1, 2, 3 ORDER BY statements - run DESC, 1, 2, 3
        """).fetchall()
        found[name] = [Covered(*row) for row in rows]
    return Coverage(**found)

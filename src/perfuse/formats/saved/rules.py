"""What each rule about saved profiles means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "SP001": Explanation(
        title="bytes of a member are damaged",
        meaning="The checksum of a file in the saved profile is not that of its bytes.",
        action="Copy the file again, or save the profile again: `perfuse pack FILES -o OUT.perfuse`.",
    ),
    "SP002": Explanation(
        title="a table cannot be read",
        meaning="A Parquet file is damaged, or its columns are not those that the table is declared with.",
        action="Save the profile again with `perfuse pack`. A table that other tools changed is not read.",
    ),
    "SP003": Explanation(
        title="a table has columns of a later version",
        meaning="A later version of perfuse saved the profile; this version ignores columns that it does not know.",
        action="No action is needed.",
    ),
}

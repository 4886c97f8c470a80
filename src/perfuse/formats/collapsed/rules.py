"""What each rule about collapsed stacks means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "CS001": Explanation(
        title="a line has no count",
        meaning="The last word of the line is not a number, so the line is not a stack.",
        action="The line is not in the tables; remove it, or check what wrote it.",
    ),
    "CS002": Explanation(
        title="a count is not representable",
        meaning="The count needs more than 64 bits.",
        action="The line is not in the tables; check what wrote it.",
    ),
    "CS003": Explanation(
        title="a count has decimals",
        meaning="Some tools write averages. The count was rounded to a whole number.",
        action="No action is needed if rounding is acceptable.",
    ),
    "CS004": Explanation(
        title="a name is not UTF-8",
        meaning="Bytes that are not UTF-8 are shown as U+FFFD.",
        action="No action is needed.",
    ),
    "CS005": Explanation(
        title="a frame has no name",
        meaning=(
            "Two separators follow each other, or a line begins or ends with one. The frame is shown without a name."
        ),
        action="No action is needed.",
    ),
    "CS006": Explanation(
        title="every line has two counts",
        meaning=(
            "difffolded.pl writes the counts of two recordings on each line. The last number was read as the count, "
            "the first as part of the innermost frame's name."
        ),
        action="Compare the two recordings with `perfuse diff` instead.",
    ),
    "CS007": Explanation(
        title="the file ends without a line break",
        meaning="The last line may be cut. It was read as it is.",
        action="Copy the file again if it was truncated.",
    ),
}

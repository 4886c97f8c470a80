"""The one list of verbs: a verb is a line here and a file of that name beside it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VerbEntry:
    """What `perfuse --help` tells of a verb without importing it."""

    name: str
    usage: str
    purpose: str
    chapter: str


LOOK = "Look into files"
TRUST = "Trust them"
UNDERSTAND = "Understand what was recorded"
MACHINE = "This machine"

VERBS = {
    entry.name: entry
    for entry in (
        VerbEntry("info", "info FILE...", "Tell what files are: format, producer, health.", LOOK),
        VerbEntry("records", "records FILE", "List records, each with its offset and fields.", LOOK),
        VerbEntry("tables", "tables FILE... [TABLE]", "List the common tables of files, or show one.", LOOK),
        VerbEntry("query", "query FILE... SQL", "Answer a question in SQL over the common tables.", LOOK),
        VerbEntry("check", "check FILE...", "Report every departure from the specification.", TRUST),
        VerbEntry("explain", "explain [CODE...]", "Explain what a diagnostic means and what to do.", TRUST),
        VerbEntry("repair", "repair FILE -o OUT", "Write the longest valid file that can be saved.", TRUST),
        VerbEntry("report", "report FILE...", "Report where the time went, or what code was made.", UNDERSTAND),
        VerbEntry("diff", "diff A B", "Tell what changed from one recording to another.", UNDERSTAND),
        VerbEntry("flame", "flame FILE... -o OUT", "Draw a flame graph as one HTML or SVG file.", UNDERSTAND),
        VerbEntry("convert", "convert FILE... -o OUT", "Write a profile in another tool's format.", UNDERSTAND),
        VerbEntry("sframe", "sframe ACTION FILE", "Make, shrink, merge, convert unwind tables.", UNDERSTAND),
        VerbEntry("watch", "watch FILE", "Follow a file that is still being written.", MACHINE),
        VerbEntry("mono", "mono heapshot [LOG]", "Ask a running Mono for a heap shot.", MACHINE),
        VerbEntry("doctor", "doctor", "Tell which producers and viewers this machine has.", MACHINE),
        VerbEntry("help", "help [VERB]", "Show the help of a verb.", MACHINE),
    )
}

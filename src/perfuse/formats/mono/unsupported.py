"""Texts for items that a conversion of Mono logs cannot write unchanged, by their code. A count follows each text."""

from collections.abc import Mapping

UNSUPPORTED: Mapping[str, str] = {
    "header_fields": "header fields that the data version does not have",
    "times": "times of events that were omitted: the data version has none for them",
    "unknown_times": "events without a time of their own, written with that of the previous event",
    "counter_times": "times of counters that were rounded down to milliseconds",
    "backtraces": "backtraces that were omitted",
    "sizes": "sizes of allocations that were rounded up to a multiple of 8 bytes, as all profilers but the first do",
    "made_vtables": "vtables that were added for classes, at the address of the class and without a domain",
    "unknown_vtables": "objects with a vtable that is not described, written in place of the class",
    "assembly_images": "assemblies whose image was omitted, or is unknown and written as 0",
    "mvids": "images whose module version id was omitted, or is unknown and written as empty",
    "clause_objects": "exception clauses whose exception was omitted, or is unknown and written as 0",
    "generations": "objects whose generation was omitted, or is unknown and written as 255",
    "reference_offsets": "references whose offset was omitted, or is unknown and written as 0",
    "root_slots": "roots whose address was omitted, or is unknown and written as 0",
    "root_kinds": "roots whose kind was omitted: the data version derives it from their address",
    "root_flags": "roots whose flags (pinning, weak, interior) were omitted",
    "collections": "numbers of collections so far that were omitted, or are unknown and written as 0",
    "sample_types": "samples whose type was omitted",
    "sample_stacks": "samples whose managed stack was omitted",
    "sample_places": "frames of samples whose position in the method was omitted, or is unknown (IL offset -1)",
    "counters": "counters, or values of counters, that were omitted",
    "counter_units": "counters whose unit and variance were omitted",
    "helper_names": "names of helpers that were omitted",
    "flags": "flags of names and backtraces that were omitted",
    "copies": "buffers that several logs contain, written once",
    "repeated": "definitions that several logs contain, written once",
    "damaged": "buffers that end before an unreadable event",
}
"""The text for each code in `WriteSummary.unsupported`."""

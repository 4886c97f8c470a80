//! Rules about XRay's instrumentation map, a section of programs rather than a recording of its own. What departs from them
//! is found by the engine, which reads programs.

use perfuse_wire::rules;

rules! {
    PARTIAL_ENTRY = "XM001", DataLoss, "";
    BEYOND_FILE = "XM002", DataLoss, "";
    OUTSIDE_CODE = "XM003", Warning, "";
    UNKNOWN_KIND = "XM004", Warning, "";
    UNKNOWN_VERSION = "XM005", Warning, "";
    UNRELOCATED = "XM006", Warning, "";
    UNFIT_INDEX = "XM007", Warning, "";
    RENUMBERED = "XM008", Info, "";
    OVERLAPPING = "XM009", Warning, "";
    UNREADABLE_SLICE = "XM010", Warning, "";
    SEVERAL_SLICES = "XM011", Info, "";
    ALIASED_OBJECTS = "XM012", Warning, "";
    UNMAPPED_OBJECT = "XM013", Warning, "";
    UNKNOWN_FUNCTION = "XM014", Warning, "";
    UNNAMED = "XM015", Warning, "";
}

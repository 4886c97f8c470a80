//! Codes of what `check` finds in a saved profile.

use perfuse_wire::rules;

rules! {
    MEMBER_CHECKSUM = "SP001", Error, "";
    NOT_A_TABLE = "SP002", Error, "";
    UNKNOWN_COLUMN = "SP003", Info, "";
}

//! r
use perfuse_wire::rules;
rules! {
    DATA_VERSION = "ML001", Warning, "x", "x", "x", "x";
}

//! Every way a section departs from its specification.

use perfuse_wire::rules;

rules! {
    VERSION = "SF001", Error, "Header", "version is not known",
        "Versions 1, 2 and 3 exist.",
        "Nothing of the section can be read.";
}

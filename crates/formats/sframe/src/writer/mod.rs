//! Changes and writes sections: contents as values, their encoding, and the ELF files they are put into.

mod add;
mod contents;
mod convert;
mod elf;
mod elf_image;
mod encode;
mod merge;
mod unsupported;

pub use add::{Checkpoint, NewFunction, row_of};
pub use contents::{OwnedFre, SectionContents, SectionFunction, WriteError};
pub use convert::UnrepresentableItem;
pub use elf::{append_section, replace_section, write_to_elf};
pub use merge::{MergedSection, merge};
pub use unsupported::Unsupported;

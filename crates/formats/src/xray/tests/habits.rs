use super::assemble::*;

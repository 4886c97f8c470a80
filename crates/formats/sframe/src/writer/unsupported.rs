//! What a version or the kind of a function's rows cannot represent.

/// What a version or the kind of a function's rows cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The flag SFRAME_F_FRAME_POINTER.
    FramePointerFlag,
    /// Rows shared with a function that is left out.
    SharedRows,
    /// The mark of a signal frame, which only version 3 has.
    SignalFrame,
    /// s390x, which version 1 does not support.
    Machine,
    /// A repeating block whose size is not 16 bytes.
    RepeatSize,
    /// The size of a repeating block; readers of version 1 take it as 16 bytes.
    RepeatField,
    /// More than 65535 rows.
    TooManyRows,
    /// A function without rows, which version 3 reads as the outermost frame.
    NoRows,
    /// The outermost frame, which version 1 has no row for.
    Outermost,
    /// A row that cannot be read.
    UnreadableRow,
    /// A row that cannot be interpreted.
    InvalidRow,
    /// An offset of more than 32 bits.
    OffsetSize,
    /// A CFA offset that is not a multiple of 8.
    CfaScale,
    /// A CFA that is not relative to stack or frame pointer.
    CfaBase,
    /// A CFA that is relative to itself.
    CfaOfItself,
    /// A register whose value is the CFA.
    RegisterOfCfa,
    /// A register that is not saved at an offset from the CFA.
    RegisterPlace,
    /// A register that is not at the fixed offset in the header.
    FixedOffset,
    /// A frame pointer that is saved while the return address is not.
    FpWithoutRa,
    /// An ABI whose registers are unknown.
    UnknownRegisters,
    /// A return address that is an address of the stack.
    RaOnStack,
}

impl Unsupported {
    /// The name by which Python has a text for it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::FramePointerFlag => "frame_pointer_flag",
            Self::SharedRows => "shared_rows",
            Self::SignalFrame => "signal_frame",
            Self::Machine => "machine",
            Self::RepeatSize => "repeat_size",
            Self::RepeatField => "repeat_field",
            Self::TooManyRows => "too_many_rows",
            Self::NoRows => "no_rows",
            Self::Outermost => "outermost",
            Self::UnreadableRow => "unreadable_row",
            Self::InvalidRow => "invalid_row",
            Self::OffsetSize => "offset_size",
            Self::CfaScale => "cfa_scale",
            Self::CfaBase => "cfa_base",
            Self::CfaOfItself => "cfa_of_itself",
            Self::RegisterOfCfa => "register_of_cfa",
            Self::RegisterPlace => "register_place",
            Self::FixedOffset => "fixed_offset",
            Self::FpWithoutRa => "fp_without_ra",
            Self::UnknownRegisters => "unknown_registers",
            Self::RaOnStack => "ra_on_stack",
        }
    }
}

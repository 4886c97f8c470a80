use std::fmt;

/// What a sled is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SledKind(pub u8);

impl SledKind {
    /// Entry of a function.
    pub const FUNCTION_ENTER: Self = Self(0);
    /// Return from a function.
    pub const FUNCTION_EXIT: Self = Self(1);
    /// Jump to another function in place of a call and a return.
    pub const TAIL_EXIT: Self = Self(2);
    /// Entry of a function whose first argument is logged.
    pub const LOG_ARGS_ENTER: Self = Self(3);
    /// `__xray_customevent`.
    pub const CUSTOM_EVENT: Self = Self(4);
    /// `__xray_typedevent`.
    pub const TYPED_EVENT: Self = Self(5);

    /// What `llvm-xray extract` calls it; `None` for kinds nobody defined.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let names =
            ["function-enter", "function-exit", "tail-exit", "log-args-enter", "custom-event", "typed-event"];
        names.get(usize::from(self.0)).copied()
    }
}

impl fmt::Display for SledKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => out.write_str(name),
            None => write!(out, "unknown-{}", self.0),
        }
    }
}

//! Which files on this machine a recording may make us open.

/// Which files that the content of a recording names are opened. Files that the user names are opened always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// Files at the paths in the recording, and what [`Follow::Named`] opens.
    #[default]
    All,
    /// Files in the directories that the user names; files of a recorded build id in the directories for those, and the
    /// running kernel where it is the recorded one. Never a path from the recording.
    Named,
    /// None.
    Nothing,
}

impl Follow {
    /// The policy of that name: `all`, `named`, `none`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "all" => Some(Self::All),
            "named" => Some(Self::Named),
            "none" => Some(Self::Nothing),
            _ => None,
        }
    }

    /// Why a file was not searched at its recorded path; `None` where it was.
    pub(crate) fn refusal(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Named => {
                Some("not in the directories of --symbols, and --follow named opens no recorded path")
            }
            Self::Nothing => Some("--follow none opens no file that a recording names"),
        }
    }
}

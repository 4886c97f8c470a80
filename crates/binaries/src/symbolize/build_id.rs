use std::fmt;

use object::Object;

/// The id a linker gives a file, from its `NT_GNU_BUILD_ID` note.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct BuildId(Vec<u8>);

/// perf keeps 20 bytes whatever the id's length, and fills up with zeros.
const PERF_BYTES: usize = 20;

impl BuildId {
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty() && bytes.iter().any(|&byte| byte != 0)).then(|| Self(bytes.to_vec()))
    }

    /// The id in an ELF file's notes.
    pub(crate) fn of(elf: &object::File<'_>) -> Option<Self> {
        Self::new(elf.build_id().ok()??)
    }

    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        if !hex.len().is_multiple_of(2) {
            return None;
        }
        let digits: Option<Vec<u8>> =
            hex.bytes().map(|digit| char::from(digit).to_digit(16).map(|value| value as u8)).collect();
        let bytes: Vec<u8> = digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        Self::new(&bytes)
    }

    /// Whether both name the same file: one may be the other filled up with zeros.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        let (short, long) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        let (head, rest) = long.0.split_at(short.0.len());
        head == short.0 && rest.iter().all(|&byte| byte == 0)
    }

    /// The spellings under which build-id directories may have it: as it is, and without perf's filling.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let mut spellings = vec![self.to_string()];
        if self.0.len() == PERF_BYTES && self.0[16..].iter().all(|&byte| byte == 0) {
            spellings.push(Self(self.0[..16].to_vec()).to_string());
        } else if self.0.len() < PERF_BYTES {
            let mut filled = self.0.clone();
            filled.resize(PERF_BYTES, 0);
            spellings.push(Self(filled).to_string());
        }
        spellings
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::BuildId;

    #[test]
    fn an_id_filled_up_with_zeros_is_the_same_id() {
        let md5 = BuildId::from_hex("00112233445566778899aabbccddeeff").expect("hex");
        let filled = BuildId::from_hex("00112233445566778899aabbccddeeff00000000").expect("hex");
        assert!(md5.matches(&filled) && filled.matches(&md5));
        assert_eq!(filled.spellings()[1], md5.to_string());
        assert_eq!(md5.spellings()[1], filled.to_string());
        assert!(!md5.matches(&BuildId::from_hex("00112233445566778899aabbccddeefe").expect("hex")));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        assert_eq!(BuildId::from_hex("abc"), None);
        assert_eq!(BuildId::from_hex("zz"), None);
        assert_eq!(BuildId::from_hex(""), None);
        assert_eq!(BuildId::from_hex("0000"), None, "an all-zero id is how perf says there is none");
    }
}

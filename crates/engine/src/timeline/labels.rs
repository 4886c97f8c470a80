//! Labels of slices that are not calls: a name, and for compiled code its function and tier.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// The label of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SliceLabel {
    /// Its name; empty for code, which has that of its function.
    pub name: Arc<str>,
    /// Function of code.
    pub function_id: Option<u32>,
    /// Thread, of times on a processor; the name is empty then.
    pub thread_id: Option<u32>,
    /// Tier of code, or its kind where it has none.
    pub tier: Option<Arc<str>>,
}

/// Labels, each with a number.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    ids: FxHashMap<SliceLabel, u32>,
    all: Vec<SliceLabel>,
    texts: FxHashMap<String, Arc<str>>,
}

impl Labels {
    /// Number of a name.
    pub(super) fn id(&mut self, name: &str, tier: Option<&str>) -> u32 {
        let (name, tier) = (self.text(name), tier.map(|tier| self.text(tier)));
        self.add(SliceLabel { name, function_id: None, thread_id: None, tier })
    }

    /// Number of code of a function in a tier.
    pub(super) fn code(&mut self, function_id: u32, tier: Option<&str>) -> u32 {
        let (name, tier) = (self.text(""), tier.map(|tier| self.text(tier)));
        self.add(SliceLabel { name, function_id: Some(function_id), thread_id: None, tier })
    }

    /// Number of a thread.
    pub(super) fn thread(&mut self, thread_id: u32) -> u32 {
        let name = self.text("");
        self.add(SliceLabel { name, function_id: None, thread_id: Some(thread_id), tier: None })
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.texts.insert(text.to_owned(), Arc::clone(&new));
        new
    }

    fn add(&mut self, label: SliceLabel) -> u32 {
        let next = self.all.len() as u32;
        *self.ids.entry(label.clone()).or_insert_with(|| {
            self.all.push(label);
            next
        })
    }

    /// All labels, in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[SliceLabel] {
        &self.all
    }
}

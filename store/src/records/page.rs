//! Pages of lists: by the last id seen, never by an offset.

/// The most rows a page holds.
pub const PAGE_MAX: u16 = 100;

/// A part of a list, in the order of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    after: String,
    limit: u16,
}

impl Page {
    /// At most `limit` rows (and at most [`PAGE_MAX`]) after the row with the id `after`.
    pub fn new(after: Option<String>, limit: u16) -> Self {
        // Every id sorts after the empty text.
        Self {
            after: after.unwrap_or_default(),
            limit: limit.clamp(1, PAGE_MAX),
        }
    }

    /// The first page, as long as pages get.
    pub fn first() -> Self {
        Self::new(None, PAGE_MAX)
    }

    pub(in crate::records) fn after(&self) -> &str {
        &self.after
    }

    pub(in crate::records) fn limit(&self) -> i64 {
        self.limit.into()
    }
}

//! The limit of the whole document. The largest entry loses its detail first, again and again; only when
//! no detail is left that is worth it, entries are dropped from the end.

use std::collections::BinaryHeap;

use super::Piece;
use crate::Reason;
use crate::buffer::{Buffer, Full};

/// The two lists of the document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    Resources,
    Outputs,
}

/// Entries whose sum stays within a limit while they are added, so that no more is held than fits.
/// Taking the largest away early gives what taking it away at the end would: what is too large among
/// some entries is too large among more of them.
pub(super) struct Budget {
    limit: usize,
    used: usize,
    lists: [Vec<Piece>; 2],
    /// Entries with a detail, by size; of two of one size the later goes first.
    by_size: BinaryHeap<(usize, List, usize)>,
}

impl Budget {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            used: 0,
            lists: [Vec::new(), Vec::new()],
            by_size: BinaryHeap::new(),
        }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn len(&self, list: List) -> usize {
        self.lists[list as usize].len()
    }

    pub fn push(&mut self, list: List, piece: Piece) {
        self.used += piece.len();
        let entries = &mut self.lists[list as usize];
        if piece.can_shrink() {
            self.by_size.push((piece.len(), list, entries.len()));
        }
        entries.push(piece);
        while self.used > self.limit
            && let Some((size, list, index)) = self.by_size.pop()
        {
            let piece = &mut self.lists[list as usize][index];
            piece.withhold(Reason::TooLarge);
            self.used = self.used - size + piece.len();
        }
    }

    /// Drops entries from the end of a list until everything fits; says how many.
    pub fn drop_trailing(&mut self, list: List) -> usize {
        let entries = &mut self.lists[list as usize];
        let before = entries.len();
        while self.used > self.limit
            && let Some(piece) = entries.pop()
        {
            self.used -= piece.len();
        }
        before - entries.len()
    }

    /// How many entries have no detail for want of room.
    pub fn withheld(&self) -> usize {
        let entries = self.lists.iter().flatten();
        entries
            .filter(|piece| piece.withheld() == Some(Reason::TooLarge))
            .count()
    }

    pub fn write(&self, list: List, out: &mut Buffer) -> Result<(), Full> {
        out.raw("[")?;
        for piece in &self.lists[list as usize] {
            piece.write(out)?;
        }
        out.raw("]")
    }
}

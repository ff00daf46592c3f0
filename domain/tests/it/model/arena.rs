//! Each distinct value once, so that a state of the world is a handful of small numbers.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Which value of its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref(u16);

#[derive(Debug)]
pub struct Arena<T> {
    values: Vec<Arc<T>>,
    /// By what the value says of itself: the derived text shows every field.
    known: HashMap<String, Ref>,
}

impl<T: Debug> Arena<T> {
    pub fn new() -> Self {
        Self {
            values: Vec::new(),
            known: HashMap::new(),
        }
    }

    pub fn intern(&mut self, value: T) -> Ref {
        let text = format!("{value:?}");
        if let Some(known) = self.known.get(&text) {
            return *known;
        }
        let new = Ref(u16::try_from(self.values.len()).expect("few values are distinct"));
        self.values.push(Arc::new(value));
        self.known.insert(text, new);
        new
    }

    pub fn get(&self, which: Ref) -> Arc<T> {
        Arc::clone(&self.values[usize::from(which.0)])
    }
}

//! Each distinct value once, so that a state of the world is a handful of small numbers.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Which value of its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref(u16);

impl Ref {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Values, each with what others want to know of it.
#[derive(Debug)]
pub struct Arena<T, V> {
    values: Vec<Arc<T>>,
    views: Vec<V>,
    view: fn(&T) -> V,
    /// By what the value says of itself: the derived text shows every field.
    known: HashMap<String, Ref>,
}

impl<T: Debug, V: Copy> Arena<T, V> {
    pub fn new(view: fn(&T) -> V) -> Self {
        Self {
            values: Vec::new(),
            views: Vec::new(),
            view,
            known: HashMap::new(),
        }
    }

    pub fn intern(&mut self, value: T) -> Ref {
        let text = format!("{value:?}");
        if let Some(known) = self.known.get(&text) {
            return *known;
        }
        let new = Ref(u16::try_from(self.values.len()).expect("few values are distinct"));
        self.views.push((self.view)(&value));
        self.values.push(Arc::new(value));
        self.known.insert(text, new);
        new
    }

    pub fn get(&self, which: Ref) -> Arc<T> {
        Arc::clone(&self.values[which.index()])
    }

    pub fn view(&self, which: Ref) -> V {
        self.views[which.index()]
    }
}

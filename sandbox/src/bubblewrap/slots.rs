//! A bounded number of places, each with its own host user.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The free places.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Mutex<Vec<u16>>>,
    permits: Arc<Semaphore>,
}

/// A taken place; free again when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    number: u16,
    free: Arc<Mutex<Vec<u16>>>,
    _permit: OwnedSemaphorePermit,
}

impl Slots {
    pub(super) fn new(count: u16) -> Self {
        Self {
            free: Arc::new(Mutex::new((0..count).rev().collect())),
            permits: Arc::new(Semaphore::new(count.into())),
        }
    }

    /// Waits for a place.
    pub(super) async fn take(&self) -> Slot {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        let number = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        Slot {
            number: number.expect("a permit stands for a free place"),
            free: Arc::clone(&self.free),
            _permit: permit,
        }
    }
}

impl Slot {
    pub(super) const fn number(&self) -> u16 {
        self.number
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Fields are dropped after this, so the place is back before its permit is.
        self.free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.number);
    }
}

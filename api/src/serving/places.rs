//! A bound on connections that a crowd of idle ones cannot turn against everybody else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// All places for connections.
pub(super) struct Places {
    seats: Mutex<Vec<Arc<Seat>>>,
    seats_max: usize,
    /// A place is free, or somebody has become idle who may be asked to leave.
    moved: Arc<Notify>,
    stop: CancellationToken,
}

/// What is known of one connection.
pub(super) struct Seat {
    /// Since when no request has been at hand; none while one is.
    idle_since: Mutex<Option<Instant>>,
    /// Whether the peer still has to take a part of an answer.
    owes: AtomicBool,
    /// See [`Places::moved`].
    moved: Arc<Notify>,
    /// Ends when the connection has to go: its place is needed, or the server stops.
    pub(super) leave: CancellationToken,
}

/// One place, taken until it is dropped.
pub(super) struct Place {
    pub(super) seat: Arc<Seat>,
    places: Arc<Places>,
}

/// A request is at hand until this is dropped.
pub(super) struct Busy {
    seat: Arc<Seat>,
    places: Arc<Places>,
}

impl Places {
    pub(super) fn new(seats_max: usize, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            seats: Mutex::default(),
            seats_max,
            moved: Arc::default(),
            stop,
        })
    }

    /// A place, as soon as there is one. Only one caller waits here at a time.
    pub(super) async fn take(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.try_take() {
                return place;
            }
            self.moved.notified().await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Place> {
        let mut seats = lock(&self.seats);
        if seats.len() >= self.seats_max {
            ask_longest_idle(&seats);
            return None;
        }
        let seat = Arc::new(Seat {
            idle_since: Mutex::new(Some(Instant::now())),
            owes: AtomicBool::new(false),
            moved: Arc::clone(&self.moved),
            leave: self.stop.child_token(),
        });
        seats.push(Arc::clone(&seat));
        show_taken(seats.len());
        Some(Place {
            seat,
            places: Arc::clone(self),
        })
    }
}

/// Asks whoever has waited longest for a request to leave; one that was asked before still counts, so
/// that no second one has to go for the same newcomer.
fn ask_longest_idle(seats: &[Arc<Seat>]) {
    let idle = seats
        .iter()
        .filter_map(|seat| Some((seat.idle_since()?, seat)));
    if let Some((_, seat)) = idle.min_by_key(|(since, _)| *since)
        && !seat.leave.is_cancelled()
    {
        metrics::counter!("stackship_http_connections_crowded_out_total").increment(1);
        seat.leave.cancel();
    }
}

fn show_taken(places: usize) {
    let places = u32::try_from(places).unwrap_or(u32::MAX);
    metrics::gauge!("stackship_http_connections").set(places);
}

impl Seat {
    fn idle_since(&self) -> Option<Instant> {
        lock(&self.idle_since).filter(|_| !self.owes.load(Ordering::Acquire))
    }

    /// Whether the connection can go without cutting off a request or an answer.
    pub(super) fn is_idle(&self) -> bool {
        self.idle_since().is_some()
    }

    /// Says whether the peer still has to take a part of an answer.
    pub(super) fn owes(&self, owes: bool) {
        let before = self.owes.swap(owes, Ordering::AcqRel);
        // The request itself may long be over, and with it the last that would have told.
        if before && !owes {
            self.moved.notify_one();
        }
    }
}

impl Place {
    /// A request has come.
    pub(super) fn busy(&self) -> Busy {
        *lock(&self.seat.idle_since) = None;
        Busy {
            seat: Arc::clone(&self.seat),
            places: Arc::clone(&self.places),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *lock(&self.seat.idle_since) = Some(Instant::now());
        self.places.moved.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut seats = lock(&self.places.seats);
        seats.retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        show_taken(seats.len());
        drop(seats);
        self.places.moved.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

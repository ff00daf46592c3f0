//! A bound on connections that a crowd of idle ones cannot turn against everybody else, and neither one
//! peer nor one credential.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::shares::{Account, Crowded, Entry, Ledger, connections_of_peer, peer_of};

/// All places for connections.
pub(super) struct Places {
    seats: Mutex<Vec<Arc<Seat>>>,
    seats_max: usize,
    /// A place is free, or somebody has become idle who may be asked to leave.
    moved: Arc<Notify>,
    stop: CancellationToken,
    ledger: Arc<Ledger>,
}

/// What is known of one connection.
pub(super) struct Seat {
    /// Whose it is, where addresses tell peers apart.
    peer: Option<IpAddr>,
    /// On whose account its request is at hand, once that is known.
    entry: Mutex<Option<Entry>>,
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
            ledger: Ledger::new(seats_max),
        })
    }

    /// A place, as soon as there is one; none for a peer that has its share of them. Only one caller
    /// waits here at a time.
    pub(super) async fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let peer = peer_of(address);
        loop {
            match self.try_take(peer) {
                Tried::Taken(place) => return Some(place),
                Tried::OverShare => return None,
                Tried::Full => self.moved.notified().await,
            }
        }
    }

    fn try_take(self: &Arc<Self>, peer: Option<IpAddr>) -> Tried {
        let mut seats = lock(&self.seats);
        let of_peer = |seat: &&Arc<Seat>| peer.is_some() && seat.peer == peer;
        // Whoever was asked to leave is gone in a moment, and with it the overshoot.
        let is_staying = |seat: &&Arc<Seat>| !seat.leave.is_cancelled();
        let staying = seats.iter().filter(of_peer).filter(is_staying).count();
        if staying >= connections_of_peer(self.seats_max)
            && !ask_longest_idle(seats.iter().filter(of_peer).filter(is_staying))
        {
            metrics::counter!("stackship_http_connections_turned_away_total").increment(1);
            return Tried::OverShare;
        }
        if seats.len() >= self.seats_max {
            ask_longest_idle(seats.iter());
            return Tried::Full;
        }
        let seat = Arc::new(Seat {
            peer,
            entry: Mutex::default(),
            idle_since: Mutex::new(Some(Instant::now())),
            owes: AtomicBool::new(false),
            moved: Arc::clone(&self.moved),
            leave: self.stop.child_token(),
        });
        seats.push(Arc::clone(&seat));
        show_taken(seats.len());
        Tried::Taken(Place {
            seat,
            places: Arc::clone(self),
        })
    }
}

/// What came of asking for a place.
enum Tried {
    Taken(Place),
    /// All are taken.
    Full,
    /// The peer has its share, and a request on each of its connections.
    OverShare,
}

/// Asks whoever has waited longest for a request to leave, and says whether there is such a one; one
/// that was asked before still counts, so that no second one has to go for the same newcomer.
fn ask_longest_idle<'a>(seats: impl Iterator<Item = &'a Arc<Seat>>) -> bool {
    let idle = seats.filter_map(|seat| Some((seat.idle_since()?, seat)));
    let Some((_, seat)) = idle.min_by_key(|(since, _)| *since) else {
        return false;
    };
    if !seat.leave.is_cancelled() {
        metrics::counter!("stackship_http_connections_crowded_out_total").increment(1);
        seat.leave.cancel();
    }
    true
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

    /// All that was to be written is. If the request is over too, so is what it counted for.
    pub(super) fn wrote_all(&self) {
        if self.is_idle() {
            *lock(&self.entry) = None;
        }
    }
}

/// The request at hand, as its connection knows it; a handler learns whose it is, and says so here.
/// Without a connection, as in a test of a router alone, nothing is counted.
#[derive(Clone, Default)]
pub struct AtHand(Option<(Arc<Seat>, Arc<Ledger>)>);

impl AtHand {
    /// Counts the request for this account until its answer is taken.
    pub fn is_of(&self, account: Account) -> Result<(), Crowded> {
        let Some((seat, ledger)) = &self.0 else {
            return Ok(());
        };
        let mut entry = lock(&seat.entry);
        // A connection has one request at a time: what the one before counted for is over.
        *entry = None;
        *entry = Some(ledger.enter(account)?);
        Ok(())
    }
}

impl<S: Sync> FromRequestParts<S> for AtHand {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

impl Place {
    /// What a handler gets to know of the connection.
    pub(super) fn at_hand(&self) -> AtHand {
        AtHand(Some((
            Arc::clone(&self.seat),
            Arc::clone(&self.places.ledger),
        )))
    }

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
        // A task that outlives the connection may still know the seat.
        *lock(&self.seat.entry) = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: usize = 8;
    /// Three quarters of them.
    const OF_PEER: usize = 6;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    async fn taken(places: &Arc<Places>, from: &str, amount: usize) -> Vec<Place> {
        let mut taken = Vec::new();
        for _ in 0..amount {
            taken.push(places.take(address(from)).await.expect("there is room"));
        }
        taken
    }

    #[tokio::test]
    async fn an_address_does_not_get_all_places_with_requests_at_hand() {
        let places = Places::new(PLACES, CancellationToken::new());
        let crowd = taken(&places, "203.0.113.7", OF_PEER).await;
        let mut busy: Vec<_> = crowd.iter().map(Place::busy).collect();
        assert!(places.take(address("203.0.113.7")).await.is_none());
        let _others = taken(&places, "203.0.113.8", PLACES - OF_PEER - 1).await;
        // Who is done with a request makes room for the next connection of the same peer.
        drop(busy.pop());
        let _last = taken(&places, "203.0.113.7", 1).await;
        let leaving = crowd.iter().filter(|place| place.seat.leave.is_cancelled());
        assert_eq!(leaving.count(), 1);
    }

    #[tokio::test]
    async fn a_proxy_on_this_machine_may_have_all_places() {
        let places = Places::new(PLACES, CancellationToken::new());
        let crowd = taken(&places, "127.0.0.1", PLACES).await;
        assert_eq!(crowd.len(), PLACES);
    }

    #[tokio::test]
    async fn a_request_counts_until_its_answer_is_written() {
        use stackship_domain::run::samples::id;

        let places = Places::new(4, CancellationToken::new());
        let taken = taken(&places, "127.0.0.1", 2).await;
        let (one, other) = (&taken[0], &taken[1]);
        let account = Account::User(id(1), id(2));
        let busy = one.busy();
        one.at_hand().is_of(account).unwrap();
        assert_eq!(other.at_hand().is_of(account), Err(Crowded));
        one.seat.owes(true);
        drop(busy);
        one.seat.wrote_all();
        assert_eq!(other.at_hand().is_of(account), Err(Crowded), "it owes");
        one.seat.owes(false);
        one.seat.wrote_all();
        assert_eq!(other.at_hand().is_of(account), Ok(()));
    }
}

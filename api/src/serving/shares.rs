//! How many of the places for connections one of many may take, so that no peer and no credential gets
//! all of them.
//!
//! An address is bounded by its open connections, before anything was said. Behind a reverse proxy all
//! peers have one address, so whoever has a credential is bounded by requests at hand as well: from the
//! moment the credential is known until the answer is taken, whether the time goes into a body that
//! drips, into a handler that waits, or into an answer that nobody takes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackship_domain::ids::{OrganizationId, RunId, UserId};

/// A part of all places.
#[derive(Debug, Clone, Copy)]
struct Share {
    parts: usize,
    of: usize,
}

/// What one user's requests take at once, whichever of the user's tokens they come with, and what the
/// requests of one run's token take.
const ONE_SHARE: Share = Share { parts: 1, of: 4 };
/// What the requests of one organization take at once, its runs included.
const ORGANIZATION_SHARE: Share = Share { parts: 3, of: 4 };
/// What the requests of all organizations take at once: runners, whose leases end when they are not
/// heard, find a place whatever everybody else does.
const EVERYBODY_SHARE: Share = Share { parts: 7, of: 8 };
/// The open connections of one address.
const ADDRESS_SHARE: Share = Share { parts: 3, of: 4 };
/// The leading bits of an IPv6 address that make one peer: a single host is given as many addresses.
const IPV6_PEER_BITS: u32 = 64;

impl Share {
    fn of(self, places: usize) -> usize {
        (places.saturating_mul(self.parts) / self.of).max(1)
    }
}

/// The open connections that a peer may have, of so many places.
pub(super) fn connections_of_peer(places: usize) -> usize {
    ADDRESS_SHARE.of(places)
}

/// As whose an address counts; nobody's where peers cannot be told apart by it. A proxy on the same
/// machine, the runner in this process and every sandbox come from the loopback address.
pub(super) fn peer_of(address: IpAddr) -> Option<IpAddr> {
    let host = address.to_canonical();
    if host.is_loopback() {
        return None;
    }
    Some(match host {
        IpAddr::V4(_) => host,
        IpAddr::V6(host) => {
            let network = host.to_bits() & (u128::MAX << (u128::BITS - IPV6_PEER_BITS));
            Ipv6Addr::from_bits(network).into()
        }
    })
}

/// On whose account a request is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Account {
    /// A user of an organization.
    User(OrganizationId, UserId),
    /// A run of an organization.
    Run(OrganizationId, RunId),
}

impl Account {
    const fn organization(self) -> OrganizationId {
        match self {
            Self::User(organization, _) | Self::Run(organization, _) => organization,
        }
    }
}

/// Too many requests of the same account are at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowded;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    One(Account),
    Organization(OrganizationId),
    Everybody,
}

impl Counted {
    const fn all(account: Account) -> [Self; 3] {
        let organization = Self::Organization(account.organization());
        [Self::One(account), organization, Self::Everybody]
    }

    const fn share(self) -> Share {
        match self {
            Self::One(_) => ONE_SHARE,
            Self::Organization(_) => ORGANIZATION_SHARE,
            Self::Everybody => EVERYBODY_SHARE,
        }
    }
}

/// The requests at hand, by whose they are.
#[derive(Debug)]
pub(super) struct Ledger {
    counts: Mutex<HashMap<Counted, usize>>,
    places: usize,
}

/// One request at hand on an account, until this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    account: Account,
    ledger: Arc<Ledger>,
}

impl Ledger {
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self {
            counts: Mutex::default(),
            places,
        })
    }

    /// Enters a request on an account, unless that or what it belongs to has its share.
    pub(super) fn enter(self: &Arc<Self>, account: Account) -> Result<Entry, Crowded> {
        let mut counts = self.counts();
        let has_room = |counted: &Counted| {
            let at_hand = counts.get(counted).copied().unwrap_or_default();
            at_hand < counted.share().of(self.places)
        };
        if !Counted::all(account).iter().all(has_room) {
            return Err(Crowded);
        }
        for counted in Counted::all(account) {
            *counts.entry(counted).or_default() += 1;
        }
        Ok(Entry {
            account,
            ledger: Arc::clone(self),
        })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Counted, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut counts = self.ledger.counts();
        for counted in Counted::all(self.account) {
            if let Some(at_hand) = counts.get_mut(&counted) {
                *at_hand = at_hand.saturating_sub(1);
                if *at_hand == 0 {
                    counts.remove(&counted);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackship_domain::run::samples::id;

    const PLACES: usize = 16;

    fn user(organization: u128, user: u128) -> Account {
        Account::User(id(organization), id(user))
    }

    /// Enters until it is refused.
    fn fill(ledger: &Arc<Ledger>, account: Account) -> Vec<Entry> {
        std::iter::from_fn(|| ledger.enter(account).ok()).collect()
    }

    #[test]
    fn a_user_leaves_room_for_others_and_an_organization_for_other_organizations() {
        let ledger = Ledger::new(PLACES);
        let one = fill(&ledger, user(1, 1));
        assert_eq!(one.len(), 4);
        let others: Vec<_> = (2..9)
            .flat_map(|other| fill(&ledger, user(1, other)))
            .collect();
        assert_eq!(one.len() + others.len(), 12);
        let run = Account::Run(id(1), id(5));
        assert_eq!(ledger.enter(run).err(), Some(Crowded), "a run of the same");
        let foreign = fill(&ledger, user(2, 1));
        assert_eq!(foreign.len(), 2, "two places are left for runners");
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let ledger = Ledger::new(PLACES);
        let entries = fill(&ledger, user(1, 1));
        assert!(ledger.enter(user(1, 1)).is_err());
        drop(entries);
        assert!(ledger.counts().is_empty());
        assert!(ledger.enter(user(1, 1)).is_ok());
    }

    #[test]
    fn even_one_place_can_be_used() {
        assert!(Ledger::new(1).enter(user(1, 1)).is_ok());
        assert_eq!(connections_of_peer(1), 1);
    }

    #[test]
    fn peers_are_told_apart_by_what_one_host_cannot_change() {
        let peer = |text: &str| peer_of(text.parse().unwrap());
        for own in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(peer(own), None, "{own}");
        }
        assert_eq!(peer("203.0.113.7"), peer("::ffff:203.0.113.7"));
        assert_ne!(peer("203.0.113.7"), peer("203.0.113.8"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    }
}

//! Keeps signed heads outside the database, where whoever rewrites the database does not reach them.

use std::path::Path;
use std::time::Duration;

use sqlx::PgPool;
use stackship_domain::Timestamp;
use stackship_projections::ProjectionError;
use stackship_projections::audit::{ChainHead, SignedHead, audit_heads_after, audit_on_disk};
use stackship_store::clock;
use tokio_util::sync::CancellationToken;

use super::heads::{HeadsError, HeadsFile};
use crate::Failure;

/// After how many new entries of an organization its head is signed at once.
const SIGN_AFTER_ENTRIES: i64 = 1_000;
/// The longest that a new entry waits for a signed head behind it.
const SIGN_AFTER: Duration = Duration::from_mins(1);
/// How often heads are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How many heads are read, and signed, at once.
const PART_HEADS_MAX: i64 = 500;

/// Why a look at the heads failed.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Read(#[from] ProjectionError),
    #[error(transparent)]
    Heads(#[from] HeadsError),
}

/// Signs heads.
pub struct Keeper {
    heads: HeadsFile,
    pool: PgPool,
}

/// What a head that was read says beside the last one that was signed.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// It is to be signed now.
    Due,
    /// It is the same, or is signed soon.
    Rests,
    /// It can never have followed what was signed: the chain was cut or written anew.
    Broken,
}

impl Keeper {
    /// Opens the file of heads in the data directory.
    pub fn open(data_dir: &Path, pool: PgPool) -> Result<Self, Failure> {
        let key = super::signing_key(data_dir)?;
        let heads = HeadsFile::open(&super::heads_file(data_dir), key)?;
        Ok(Self { heads, pool })
    }

    /// Signs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut clock = tokio::time::interval(LOOK_EVERY);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = clock.tick() => {}
            }
            self.look(SIGN_AFTER).await;
        }
        // What is new at the end of the server is signed before it is left alone.
        self.look(Duration::ZERO).await;
    }

    async fn look(&mut self, sign_after: Duration) {
        if let Err(error) = self.sign_due(sign_after, clock::now()).await {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(error = %error, error.cause = cause, "Heads of the audit could not be signed");
        }
    }

    async fn sign_due(&mut self, sign_after: Duration, now: Timestamp) -> Result<(), KeepError> {
        let mut after = String::new();
        loop {
            let read = audit_heads_after(&self.pool, &after, PART_HEADS_MAX).await?;
            let Some(last) = read.last() else {
                return Ok(());
            };
            after.clone_from(&last.organization);
            let mut due = Vec::new();
            for head in read {
                let signed = self.heads.newest(&head.organization);
                match standing(&head, signed, sign_after, now) {
                    Standing::Due => due.push(head),
                    Standing::Rests => {}
                    Standing::Broken => alarm(&head, signed),
                }
            }
            if !due.is_empty() {
                audit_on_disk(&self.pool).await?;
                // Waits for the disk, once in a while.
                tokio::task::block_in_place(|| self.heads.append(due, now))?;
            }
        }
    }
}

fn standing(
    head: &ChainHead,
    signed: Option<&SignedHead>,
    sign_after: Duration,
    now: Timestamp,
) -> Standing {
    let Some(signed) = signed else {
        return Standing::Due;
    };
    let fresh = head.number - signed.position;
    if fresh < 0 || (fresh == 0 && head.hash != signed.hash) {
        return Standing::Broken;
    }
    let is_old = now.duration_since(signed.time).unsigned_abs() >= sign_after;
    if fresh >= SIGN_AFTER_ENTRIES || (fresh > 0 && is_old) {
        Standing::Due
    } else {
        Standing::Rests
    }
}

fn alarm(head: &ChainHead, signed: Option<&SignedHead>) {
    metrics::counter!("stackship_audit_broken_total").increment(1);
    tracing::error!(
        organization = head.organization,
        audit.entries = head.number,
        audit.signed = signed.map(|signed| signed.position),
        alarm = "audit_broken",
        "The audit no longer holds what was signed: it was cut or written anew; run `stackship audit verify`"
    );
}

#[cfg(test)]
mod tests {
    use stackship_domain::Sha256Digest;
    use stackship_projections::audit::HeadKey;

    use super::*;

    fn hash(number: i64) -> Sha256Digest {
        Sha256Digest::of(number.to_string().as_bytes())
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn stands(number: i64, hash: Sha256Digest, seconds: i64) -> Standing {
        let organization = "org-a".to_owned();
        let signed = (organization.clone(), 10, self::hash(10));
        let signed = HeadKey::from_seed(&[1; 32]).sign(signed, at(0), None);
        let head = ChainHead {
            organization,
            number,
            hash,
        };
        standing(&head, Some(&signed), SIGN_AFTER, at(seconds))
    }

    #[test]
    fn a_head_is_signed_when_it_is_far_or_old_enough_and_never_when_it_went_back() {
        let far = 10 + SIGN_AFTER_ENTRIES;
        for (number, seconds, expected) in [
            (10, 3_600, Standing::Rests),
            (11, 59, Standing::Rests),
            (11, 60, Standing::Due),
            (far - 1, 1, Standing::Rests),
            (far, 1, Standing::Due),
            (9, 60, Standing::Broken),
        ] {
            let found = stands(number, hash(number), seconds);
            assert_eq!(found, expected, "{number} after {seconds} s");
        }
        assert_eq!(stands(10, hash(11), 60), Standing::Broken);
    }
}

//! The doors through which time and fresh ids come in. Nothing else in this room asks the machine.

use stackship_domain::Timestamp;
use stackship_domain::ids::Id;

/// The time now, cut to the microsecond that every record keeps.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the door through which time comes in"
)]
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

/// A fresh id; ids of one kind sort by their time of creation.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the door through which ids come in"
)]
pub fn fresh<T: Id>() -> T {
    T::from_uuid(uuid::Uuid::now_v7())
}

/// A fresh id for a request or a command that arrived without one.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the door through which ids come in"
)]
pub fn fresh_text() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

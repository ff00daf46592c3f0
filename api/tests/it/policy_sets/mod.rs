//! Policy sets: what is taken, what is refused, and where it applies.

mod places;
mod uploads;

//! Room `projections`.

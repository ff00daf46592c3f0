//! Promises of the whole system, kept against the real server: the tests are in `tests/it`.

//! Room `workflow`.

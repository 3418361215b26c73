//! End-to-end tests: what they share.

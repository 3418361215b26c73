//! A profile as files.

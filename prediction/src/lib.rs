//! prediction

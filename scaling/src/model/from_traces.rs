//! Formulae from traces.

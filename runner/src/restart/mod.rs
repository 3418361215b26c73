//! Signatures with images and the executor that restarts them: what is saved and measured ([`windows`], chosen by
//! [`plan`]), saving it ([`save`]) as the base run was ([`recorded`]), restarting ([`replay`]) what there is time for
//! ([`schedule`]) until the answer is known well enough ([`predict`]), the check on the base machine ([`verify`]) and of
//! a target ([`preflight`]).
mod held;
pub mod host;
pub mod manifest;
pub mod plan;
pub mod predict;
pub mod preflight;
pub mod processor;
pub mod recorded;
pub mod replay;
pub mod save;
mod schedule;
pub mod verify;
mod waiting;
pub mod windows;

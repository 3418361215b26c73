//! What is seen of a link between two ranks, and the link that comes of it.
use super::LONGEST;
use super::samples::{Samples, rounded};
use crate::machine::{Costs, Link, Place};
use std::collections::BTreeMap;

/// The length at which an exchange and its overlap are measured.
pub const EXCHANGED: u64 = 1 << 20;

/// What has been seen of a link.
pub struct Seen {
    pub place: Place,
    pub partner: u32,
    pub eager: Option<u64>,
    /// By length, in the order of [`Link::columns`].
    pub columns: BTreeMap<u64, [Samples; 7]>,
    pub exchange: Samples,
    pub overlapped: Samples,
    pub compute_ns: u64,
}

pub const SEND: usize = 0;
pub const RECEIVE: usize = 1;
pub const ISEND: usize = 2;
pub const IRECV: usize = 3;
pub const WAIT: usize = 4;
pub const WAIT_SEND: usize = 5;
pub const TRANSFER: usize = 6;

impl Seen {
    /// What comes of it; `smooth`: times rise with the length.
    pub fn link(&self, smooth: bool) -> Link {
        let costs = |column: usize| Costs(self.columns.iter().map(|(&b, of)| of[column].cost(b)).collect());
        let transfer = if smooth { costs(TRANSFER).rising() } else { costs(TRANSFER) };
        let seconds = |bytes| transfer.seconds(bytes).unwrap_or(0.0);
        let slope = (seconds(LONGEST) - seconds(LONGEST / 4)) / (LONGEST - LONGEST / 4) as f64;
        let bandwidth = if slope > 0.0 { 1.0 / slope } else { LONGEST as f64 / seconds(LONGEST).max(1e-9) };
        let exchange = self.exchange.median();
        let hidden = (exchange + self.compute_ns as f64 - self.overlapped.median()) / exchange.max(1.0);
        let times = exchange * 1e-9 / seconds(EXCHANGED).max(1e-9);
        Link {
            place: self.place,
            latency_s: seconds(0),
            bandwidth: rounded(bandwidth),
            eager_bytes: self.eager,
            overlap: rounded(hidden.clamp(0.0, 1.0)),
            contention: Some(rounded(times.max(1.0))),
            send: costs(SEND),
            receive: costs(RECEIVE),
            isend: costs(ISEND),
            irecv: costs(IRECV),
            wait: costs(WAIT),
            wait_send: costs(WAIT_SEND),
            transfer,
        }
    }
}

//! Acts on their way to the sink: one by one, or in a row of their like whose order means nothing.
use super::Walk;
use crate::steps::acts::{Act, Sink};

impl<S: Sink> Walk<'_, S> {
    /// An act whose place among its like means nothing.
    pub(super) fn in_row(&mut self, act: Act, took: u64) {
        let like = |other: &Act| std::mem::discriminant(other) == std::mem::discriminant(&act);
        if self.row.first().is_some_and(|(other, ..)| !like(other)) {
            self.end_row();
        }
        self.met.as_it_comes += 1;
        let (compute, wait) = (std::mem::take(&mut self.compute), std::mem::take(&mut self.wait));
        self.row.push((act, compute, took + wait));
    }

    fn end_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by_key(|&at| match &row[at].0 {
            Act::Receive(got, ..) => (Some(*got), 0),
            Act::Wait(slots) => (None, slots.first().copied().unwrap_or(0)),
            _ => (None, 0),
        });
        for (place, &at) in order.iter().enumerate() {
            let token = self.sink.step(row[place].1, row[place].2);
            let act = std::mem::replace(&mut row[at].0, Act::End);
            self.sink.settle(token, act);
        }
        row.clear();
        self.row = row;
    }

    pub(super) fn step(&mut self, took: u64) -> S::Token {
        if !self.row.is_empty() {
            self.end_row();
        }
        self.sink.step(std::mem::take(&mut self.compute), took + std::mem::take(&mut self.wait))
    }

    pub(super) fn emit(&mut self, act: Act, took: u64) {
        let token = self.step(took);
        self.sink.settle(token, act);
    }
}

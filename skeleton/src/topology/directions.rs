//! Directions: by the topology where a pair of ranks lies in it, else such that ranks share as few as possible.
//!
//! Pairs outside the topology (or all, if none was recognised) are covered greedily: of all steps in the mesh, constant
//! differences of ranks, exclusive-ors of ranks and fixed ranks, the one that covers most of the pairs left comes next.
use super::matrix::Matrix;
use super::mesh::Mesh;
use super::recognise::Recognition;
use super::shapes::Topology;
use crate::logical::Direction;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Directions, and which of them leads from a rank to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Directions {
    /// The directions; those of the topology come first.
    pub all: Vec<Direction>,
    /// How many are the topology's.
    pub of_topology: u16,
    #[serde(skip)]
    from: Vec<BTreeMap<u32, u16>>,
}

impl Directions {
    /// The direction that leads from a rank to another: one for each pair with messages, either way.
    pub fn index(&self, rank: u32, peer: u32) -> Option<u16> {
        self.from.get(rank as usize)?.get(&peer).copied()
    }

    /// Who lies in a direction of a rank.
    pub fn peer(&self, rank: u32, direction: u16) -> Option<u32> {
        *self.all.get(direction as usize)?.peer.get(rank as usize)?
    }

    /// The direction in which a rank lies from the one that lies in `direction` of it.
    pub fn back(&self, rank: u32, direction: u16) -> Option<u16> {
        self.index(self.peer(rank, direction)?, rank)
    }

    /// Adds a direction with these peers. The first direction that leads to a peer is the one that is used.
    fn push(&mut self, name: String, peer: Vec<Option<u32>>) {
        let index = self.all.len() as u16;
        for (rank, to) in peer.iter().enumerate() {
            if let Some(to) = to {
                self.from[rank].entry(*to).or_insert(index);
            }
        }
        self.all.push(Direction { name, peer });
    }
}

/// Names a direction for each pair of ranks that exchange messages; also for a rank that sends to itself.
pub fn directions(matrix: &Matrix, recognition: &Recognition) -> Directions {
    let ranks = matrix.ranks();
    let mut wanted: BTreeSet<(u32, u32)> = BTreeSet::new();
    for (from, to, _) in matrix.pairs() {
        wanted.extend([(from, to), (to, from)]);
    }
    let mut directions = Directions { from: vec![BTreeMap::new(); ranks as usize], ..Directions::default() };
    let mut mesh = None;
    if let Some(placed) = &recognition.topology {
        let at = placed.ranks();
        let size = placed.topology.positions();
        for (name, to) in placed.topology.directions() {
            let mut peer = vec![None; ranks as usize];
            for (position, &rank) in at.iter().enumerate() {
                let (copy, position) = (position as u32 / size, position as u32 % size);
                let there = to[position as usize].map(|to| at[(copy * size + to) as usize]);
                peer[rank as usize] = there.filter(|&there| wanted.contains(&(rank, there)));
            }
            if peer.iter().any(Option::is_some) {
                directions.push(name, peer);
            }
        }
        if let Topology::Mesh(found) = &placed.topology {
            mesh = Some((found, &placed.position[..]));
        }
    }
    directions.of_topology = directions.all.len() as u16;
    wanted.retain(|&(rank, peer)| directions.index(rank, peer).is_none());
    cover(ranks, mesh, wanted, &mut directions);
    directions
}

/// What ranks may share. The order decides between those that cover as many pairs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// A step in the mesh, after its length.
    Step(u32, Vec<i32>),
    /// How many ranks away the peer is on the circle of all ranks, and whether downward.
    Offset(u32, bool),
    /// The peer's rank exclusive-or the own one.
    Xor(u32),
    /// A peer.
    Fixed(u32),
}

struct Cover<'a> {
    ranks: u32,
    mesh: Option<(&'a Mesh, &'a [Option<u32>])>,
    /// The rank at each position of the mesh and its copies.
    at: BTreeMap<u32, u32>,
}

impl Cover<'_> {
    /// All that lead from a rank to a peer.
    fn shared(&self, rank: u32, peer: u32) -> Vec<Shared> {
        let circle = i64::from(self.ranks);
        let up = (i64::from(peer) - i64::from(rank)).rem_euclid(circle);
        let down = 2 * up > circle;
        let offset = Shared::Offset(if down { circle - up } else { up } as u32, down);
        let mut shared = vec![offset, Shared::Xor(rank ^ peer), Shared::Fixed(peer)];
        if let Some((mesh, position)) = self.mesh
            && let (Some(a), Some(b)) = (position[rank as usize], position[peer as usize])
            && a / mesh.positions() == b / mesh.positions()
        {
            let step = mesh.between(a % mesh.positions(), b % mesh.positions());
            shared.push(Shared::Step(step.iter().map(|by| by.unsigned_abs()).sum(), step));
        }
        shared
    }

    /// Where it leads from a rank.
    fn peer(&self, shared: &Shared, rank: u32) -> Option<u32> {
        match shared {
            Shared::Offset(by, down) => {
                let by = u64::from(if *down { self.ranks - by } else { *by });
                Some(((u64::from(rank) + by) % u64::from(self.ranks)) as u32)
            }
            Shared::Xor(mask) => Some(rank ^ mask).filter(|&peer| peer < self.ranks),
            Shared::Fixed(peer) => Some(*peer),
            Shared::Step(_, step) => {
                let (mesh, position) = self.mesh?;
                let (copy, at) =
                    (position[rank as usize]? / mesh.positions(), position[rank as usize]? % mesh.positions());
                self.at.get(&(copy * mesh.positions() + mesh.moved(at, step)?)).copied()
            }
        }
    }

    fn name(&self, shared: &Shared) -> String {
        match shared {
            Shared::Offset(0, _) | Shared::Xor(0) => "SELF".into(),
            Shared::Offset(by, down) => format!("RANK_{}_{by}", if *down { "MINUS" } else { "PLUS" }),
            Shared::Xor(mask) => format!("RANK_XOR_{mask}"),
            Shared::Fixed(peer) => format!("RANK_{peer}"),
            Shared::Step(_, step) => match self.mesh {
                Some((mesh, _)) if step.iter().any(|&by| by != 0) => mesh.step_name(step),
                _ => "SELF".into(),
            },
        }
    }
}

/// Adds directions until each of the pairs `left` has one.
fn cover(
    ranks: u32,
    mesh: Option<(&Mesh, &[Option<u32>])>,
    mut left: BTreeSet<(u32, u32)>,
    directions: &mut Directions,
) {
    let place = |(rank, position): (usize, &Option<u32>)| position.map(|position| (position, rank as u32));
    let at = mesh.map(|(_, position)| position.iter().enumerate().filter_map(place).collect()).unwrap_or_default();
    let cover = Cover { ranks, mesh, at };
    let mut counts: BTreeMap<Shared, u32> = BTreeMap::new();
    for &(rank, peer) in &left {
        cover.shared(rank, peer).into_iter().for_each(|shared| *counts.entry(shared).or_default() += 1);
    }
    let mut heap: BinaryHeap<(u32, Reverse<Shared>)> =
        counts.iter().map(|(shared, &count)| (count, Reverse(shared.clone()))).collect();
    while let Some((count, Reverse(shared))) = heap.pop() {
        let now = counts[&shared];
        if now < count {
            heap.extend((now > 0).then_some((now, Reverse(shared))));
            continue;
        }
        let mut peers = vec![None; ranks as usize];
        for rank in 0..ranks {
            if let Some(peer) = cover.peer(&shared, rank)
                && left.remove(&(rank, peer))
            {
                peers[rank as usize] = Some(peer);
                for other in cover.shared(rank, peer) {
                    counts.entry(other).and_modify(|count| *count -= 1);
                }
            }
        }
        directions.push(cover.name(&shared), peers);
    }
}

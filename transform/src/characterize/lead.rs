//! Rank 0: rounds over all that is measured, and the machine that comes of it.
use super::command::{Command, What};
use super::hosts::{Host, hosts, processors};
use super::links::{EXCHANGED, IRECV, ISEND, RECEIVE, SEND, Seen, TRANSFER, WAIT, WAIT_SEND};
use super::mpi::{Comm, Mpi};
use super::pairs::Pair;
use super::samples::Samples;
use super::{Data, Effort, PROGRESS, clock, collectives, kernels, stops};
use crate::machine::{Collective, Costs, FORMAT, Identity, Kernel, Machine, Place, STOPPED, Stops};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Passes of a kernel in a round for a repetition of the longest messages.
const PASSES: u64 = 2;
/// So often progress is told.
const TELL: Duration = Duration::from_millis(100);
/// How often in a round all kernels are done among the messages of a link, and among the collectives.
const KERNELS: usize = 3;
/// Further rounds where a disturbance has spoilt a table.
const MORE: u32 = 8;
/// How long ranks are watched for stops: at first, and where there are many.
const WATCHED: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(3)];

/// Which collective among how many ranks.
type Which = (usize, u32);

struct Lead<'a> {
    mpi: &'a Mpi,
    comms: &'a [Comm],
    data: &'a mut Data,
    effort: &'a Effort,
    reading: i64,
    begun: Instant,
    links: Vec<Seen>,
    /// Ranks whose clock is another.
    foreign: Vec<u32>,
    collectives: BTreeMap<Which, BTreeMap<u64, [Samples; 3]>>,
    kernels: [Samples; kernels::ALL.len()],
    made: kernels::Made,
    stops: Option<Stops>,
    progress: Progress,
}

/// Measures everything. The others follow.
pub fn lead(mpi: &Mpi, comms: &[Comm], data: &mut Data, folder: &Path, effort: &Effort) -> Result<Machine, String> {
    Command::new(What::Hosts).tell_all(mpi, mpi.world.size);
    let hosts = hosts(mpi);
    let partner = |place, near: bool| {
        let rank = hosts.iter().skip(1).position(|host| (host.0 == hosts[0].0) == near)? as u32 + 1;
        let (exchange, overlapped) = (Samples::default(), Samples::default());
        let columns = grid().into_iter().map(|bytes| (bytes, Default::default())).collect();
        Some(Seen { place, partner: rank, eager: None, columns, exchange, overlapped, compute_ns: 0 })
    };
    let links = [partner(Place::Within, true), partner(Place::Between, false)].into_iter().flatten().collect();
    let foreign = (1..mpi.world.size).filter(|&rank| hosts[rank as usize].1 != hosts[0].1).collect();
    let collectives = comms.iter().flat_map(|comm| (0..collectives::ALL.len()).map(|which| (which, comm.size)));
    let collectives = collectives
        .map(|(which, ranks)| {
            let lengths = collectives::lengths(collectives::ALL[which].0, ranks);
            ((which, ranks), lengths.into_iter().map(|bytes| (bytes, Default::default())).collect())
        })
        .collect();
    let mut lead = Lead {
        mpi,
        comms,
        data,
        effort,
        reading: clock::reading(),
        begun: Instant::now(),
        links,
        foreign,
        collectives,
        kernels: Default::default(),
        made: kernels::Made::default(),
        stops: None,
        progress: Progress { path: folder.join(PROGRESS), done: 0, of: 0, told: Instant::now() },
    };
    lead.progress.of = lead.blocks() * u64::from(effort.rounds);
    lead.watch(&hosts);
    // To look for stops takes most of the time that a short measurement has.
    lead.begun = Instant::now();
    for round in 0..effort.rounds {
        lead.round(round);
    }
    let mut more = 0;
    loop {
        let machine = lead.machine(&hosts, false);
        match machine.check() {
            Ok(()) => return Ok(machine),
            Err((key, what)) if more == MORE => {
                let smooth = lead.machine(&hosts, true);
                if smooth.check().is_ok() {
                    eprintln!(
                        "phasecast: {key} {what}, after {MORE} further rounds. Transfers are smoothed so that they rise."
                    );
                    return Ok(smooth);
                }
                return Err(format!(
                    "after {} rounds {key} still {what}: something else disturbs this machine. Try again when it is quiet.",
                    effort.rounds + more
                ));
            }
            Err(_) => {
                more += 1;
                for link in 0..lead.links.len() {
                    lead.lengths(link).into_iter().for_each(|bytes| lead.messages(link, bytes));
                    lead.exchanges(link);
                }
            }
        }
    }
}

/// The lengths of messages, but for those around the eager limit.
fn grid() -> Vec<u64> {
    [0, 8, 64].into_iter().chain((8..=22).map(|power| 1 << power)).collect()
}

impl Lead<'_> {
    fn blocks(&self) -> u64 {
        let messages: usize = self.links.iter().map(|link| 5 * link.columns.len() + 2).sum();
        let collectives: usize = self.collectives.values().map(BTreeMap::len).sum();
        (messages + collectives + KERNELS * (self.links.len() + 1) * kernels::ALL.len()) as u64
    }

    /// Whether time is up; the first round is made all the same.
    fn late(&self, round: u32) -> bool {
        round > 0 && self.begun.elapsed().as_secs_f64() > self.effort.limit_s
    }

    fn round(&mut self, round: u32) {
        for link in 0..self.links.len() {
            if round == 0 {
                self.step(link);
            }
            // In parts, with all kernels before each: K is of them alone, and a slow moment must not be where most of them are.
            let lengths = self.lengths(link);
            for part in lengths.chunks(lengths.len().div_ceil(KERNELS)) {
                if !self.kernels(round) {
                    return;
                }
                part.iter().for_each(|&bytes| self.messages(link, bytes));
            }
            self.exchanges(link);
        }
        let all: Vec<Which> = self.collectives.keys().copied().collect();
        for part in all.chunks(all.len().div_ceil(KERNELS).max(1)) {
            if !self.kernels(round) {
                return;
            }
            for &which in part {
                if self.late(round) {
                    return;
                }
                self.collective(which);
            }
        }
    }

    fn lengths(&self, link: usize) -> Vec<u64> {
        self.links[link].columns.keys().copied().collect()
    }

    fn pair(&mut self, link: usize) -> Pair<'_> {
        Pair { mpi: self.mpi, partner: self.links[link].partner, data: self.data }
    }

    /// How often to do what takes so long, in ns.
    fn repetitions(&self, ns: f64) -> u64 {
        let (fewest, most) = self.effort.repetitions;
        ((self.effort.point_s * 1e9 / ns.max(1.0)) as u64).clamp(fewest, most)
    }

    /// Finds the eager limit, and first what transfers take.
    fn step(&mut self, link: usize) {
        for bytes in self.lengths(link) {
            self.transfer(link, bytes);
        }
        let transfers: Vec<(u64, f64)> =
            self.links[link].columns.iter().map(|(&bytes, of)| (bytes, of[TRANSFER].median())).collect();
        // The next longer one's: no line is drawn over a step that is not known yet.
        let transfer = |bytes: u64| transfers.iter().find(|of| of.0 >= bytes).map_or(0, |of| of.1 as u64);
        let eager = self.pair(link).eager(&transfer);
        let seen = &mut self.links[link];
        seen.eager = eager;
        for bytes in eager.into_iter().flat_map(|bytes| [bytes, bytes + 1]) {
            seen.columns.entry(bytes).or_default();
        }
    }

    fn transfer(&mut self, link: usize, bytes: u64) {
        let warm = self.pair(link).round_trips(bytes, 2);
        let expected = warm[1];
        let repetitions = self.repetitions(expected as f64 + 5e3);
        let trips = self.pair(link).round_trips(bytes, repetitions);
        let reading = self.reading;
        if let Some(columns) = self.links[link].columns.get_mut(&bytes) {
            // The time of a transfer is in doubled form until here.
            columns[TRANSFER].add(trips.into_iter().map(|trip| (trip - reading) / 2), 0);
        }
    }

    /// All that is measured of messages of one length.
    fn messages(&mut self, link: usize, bytes: u64) {
        let reading = self.reading;
        self.transfer(link, bytes);
        let transfer_ns = self.links[link].columns[&bytes][TRANSFER].median() as u64;
        let repetitions = self.repetitions(5e4 + 4.0 * transfer_ns as f64);
        let mut pair = self.pair(link);
        let sends = pair.sends(bytes, repetitions);
        let receives = pair.receives(bytes, repetitions, transfer_ns);
        let (isends, wait_sends) = pair.isends(bytes, repetitions, transfer_ns);
        let (irecvs, waits) = pair.irecvs(bytes, repetitions, transfer_ns);
        if let Some(columns) = self.links[link].columns.get_mut(&bytes) {
            for (column, times) in [
                (SEND, sends),
                (RECEIVE, receives),
                (ISEND, isends),
                (IRECV, irecvs),
                (WAIT, waits),
                (WAIT_SEND, wait_sends),
            ] {
                columns[column].add(times, reading);
            }
        }
        self.progress.more(5);
    }

    /// Exchanges, and computation meanwhile.
    fn exchanges(&mut self, link: usize) {
        let reading = self.reading;
        let transfer_ns = self.links[link].columns[&EXCHANGED][TRANSFER].median();
        let repetitions = self.repetitions(4.0 * transfer_ns);
        let times = self.pair(link).exchanges(EXCHANGED, repetitions, 0);
        self.links[link].exchange.add(times, reading);
        let compute_ns = self.links[link].exchange.median();
        let times = self.pair(link).exchanges(EXCHANGED, repetitions, compute_ns as u64);
        self.links[link].compute_ns = compute_ns as u64;
        self.links[link].overlapped.add(times, reading);
        self.progress.more(2);
    }

    /// Watches for stops: for a moment, and longer where there are many. Ranks that share processors stop each other.
    fn watch(&mut self, hosts: &[Host]) {
        let most = hosts.iter().map(|host| hosts.iter().filter(|other| other.0 == host.0).count()).max();
        if most.unwrap_or(1) > processors().1 as usize {
            return;
        }
        let watched = |time: Duration| {
            let (compute_ns, repetitions) = (time.as_nanos() as u64, stops::MOST as u64);
            let command = Command { compute_ns, repetitions, ..Command::new(What::Watch) };
            command.tell_all(self.mpi, self.mpi.world.size);
            Some(stops::take_part(self.mpi, &command)).filter(|stops| stops.share() > STOPPED)
        };
        self.stops = watched(WATCHED[0]).and_then(|_| watched(WATCHED[1]));
    }

    /// All kernels, unless time is up: then it yields false.
    fn kernels(&mut self, round: u32) -> bool {
        (0..kernels::ALL.len()).all(|which| {
            let there_is_time = !self.late(round);
            if there_is_time {
                self.kernel(which);
            }
            there_is_time
        })
    }

    fn kernel(&mut self, which: usize) {
        let repetitions = PASSES * self.effort.repetitions.0;
        // Stops are told apart: then a kernel's time is that of the processor.
        let compute_ns = u64::from(self.stops.is_some());
        let command = Command { which: which as u64, repetitions, compute_ns, ..Command::new(What::Kernel) };
        command.tell_all(self.mpi, self.mpi.world.size);
        let times = kernels::take_part(self.mpi, &command, &mut self.made);
        self.kernels[which].add(times, self.reading);
        self.progress.more(1);
    }

    fn collective(&mut self, which: Which) {
        let (index, ranks) = which;
        let lengths: Vec<u64> = self.collectives[&which].keys().copied().collect();
        for (at, &bytes) in lengths.iter().enumerate() {
            // Where ranks share processors a block takes long: then of the first round only every fourth length.
            let last = at + 1 == lengths.len();
            if self.begun.elapsed().as_secs_f64() > self.effort.limit_s && at % 4 != 0 && !last {
                continue;
            }
            let known = self.collectives[&which][&bytes][0].median();
            // Besides the collective a repetition has a barrier, the naming of the start and the time until then.
            let repetitions = if known > 0.0 { self.repetitions(2.0 * known + 3e4) } else { self.effort.repetitions.0 };
            for &rank in self.foreign.iter().filter(|&&rank| rank < ranks) {
                Command::new(What::Clocks).tell(self.mpi, rank);
                clock::lead(self.mpi, rank);
            }
            let (which_word, comm) = (index as u64, u64::from(ranks));
            let command = Command { bytes, repetitions, which: which_word, comm, ..Command::new(What::Collective) };
            command.tell_all(self.mpi, ranks);
            let times = collectives::take_part(self.mpi, &command, self.comms, self.data, 0);
            if let Some([all, root, others]) = self.collectives.get_mut(&which).and_then(|of| of.get_mut(&bytes)) {
                all.add(times.all, self.reading);
                root.add(times.root, self.reading);
                others.add(times.others, self.reading);
            }
            self.progress.more(1);
        }
    }

    /// What was seen as a machine; `smooth` makes transfers take no less time for a longer message.
    fn machine(&self, hosts: &[Host], smooth: bool) -> Machine {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in hosts {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let (cpu, cores) = processors();
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let collectives = self.collectives.iter().map(|(&(which, ranks), points)| {
            let (_, name, rooted) = collectives::ALL[which];
            let seen = points.iter().filter(|(_, samples)| !samples[0].is_empty());
            let costs = |of: usize| Costs(seen.clone().map(|(&bytes, samples)| samples[of].cost(bytes)).collect());
            let (root, others) = if rooted { (costs(1), costs(2)) } else { Default::default() };
            Collective { name: name.to_owned(), ranks, costs: costs(0), root, others }
        });
        let kernels = kernels::ALL.iter().zip(&self.kernels).map(|(kernel, samples)| {
            let cost = samples.cost(0);
            Kernel { name: kernel.name.to_owned(), seconds: cost.seconds, spread: cost.spread }
        });
        Machine {
            format: FORMAT,
            created,
            identity: Identity { hosts: names, cpu, cores, mpi: self.mpi.version.clone(), ranks: self.mpi.world.size },
            life: None,
            links: self.links.iter().map(|link| link.link(smooth)).collect(),
            collectives: collectives.collect(),
            kernels: kernels.collect(),
            stops: self.stops.clone(),
        }
    }
}

/// Blocks done and to do, told in a file.
struct Progress {
    path: PathBuf,
    done: u64,
    of: u64,
    told: Instant,
}

impl Progress {
    fn more(&mut self, blocks: u64) {
        self.done += blocks;
        if self.told.elapsed() > TELL {
            self.told = Instant::now();
            // Whoever reads it finds a line that is cut at worst.
            let _ = fs::write(&self.path, format!("{} {}\n", self.done, self.of.max(self.done)));
        }
    }
}

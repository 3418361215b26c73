//! Machine files: what is written is read back, whatever is read never panics, and what is wrong is said with its place.
use phasecast_transform::machine::{
    Collective, Cost, Costs, FORMAT, Identity, Kernel, Life, Link, Machine, MachineError, Place, Stops, changes, ratio,
};
use proptest::prelude::*;
use std::path::Path;

fn times() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 1e-9..1e-3, 1e-3..1e5]
}

fn costs(least: usize) -> impl Strategy<Value = Costs> {
    let points = prop::collection::btree_map(0..1u64 << 40, (times(), times()), least..6);
    points.prop_map(|points| {
        Costs(points.into_iter().map(|(bytes, (seconds, spread))| Cost { bytes, seconds, spread }).collect())
    })
}

/// Costs that only rise.
fn rising() -> impl Strategy<Value = Costs> {
    costs(1).prop_map(|Costs(mut points)| {
        let mut seconds: Vec<f64> = points.iter().map(|point| point.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        points.iter_mut().zip(seconds).for_each(|(point, seconds)| point.seconds = seconds);
        Costs(points)
    })
}

fn link(place: Place) -> impl Strategy<Value = Link> {
    let numbers = (times(), 1e3..1e12, prop::option::of(0..1u64 << 30), 0.0..=1.0, prop::option::of(1.0..3.0));
    let columns = (costs(1), costs(1), costs(1), costs(1), costs(1), costs(0), rising());
    (numbers, columns).prop_map(move |(numbers, columns)| {
        let (latency_s, bandwidth, eager_bytes, overlap, contention) = numbers;
        let (send, receive, isend, irecv, wait, wait_send, transfer) = columns;
        Link {
            place,
            latency_s,
            bandwidth,
            eager_bytes,
            overlap,
            contention,
            send,
            receive,
            isend,
            irecv,
            wait,
            wait_send,
            transfer,
        }
    })
}

prop_compose! {
    fn identity()(hosts in prop::collection::vec(".{0,8}", 0..3), cpu in ".{0,12}", mpi in ".{0,12}", cores in 0..512u32, ranks in 0..512u32) -> Identity {
        Identity { hosts, cpu, cores, mpi, ranks }
    }
}

fn stops() -> impl Strategy<Value = Stops> {
    let of_rank = prop::collection::vec((0.0..1.0, 1e-6..1.0), 0..5);
    (prop::collection::vec(of_rank, 1..4), 1e-3..1.0).prop_map(|(ranks, rest)| {
        let mut span_s: f64 = 0.0;
        let of_rank = |gaps: Vec<(f64, f64)>| {
            let mut at = 0.0;
            let stop = |(gap, length)| {
                let begin = at + gap;
                at = begin + length;
                [begin, length]
            };
            let stops = gaps.into_iter().map(stop).collect();
            span_s = span_s.max(at);
            stops
        };
        let ranks = ranks.into_iter().map(of_rank).collect();
        Stops { span_s: span_s + rest, ranks }
    })
}

fn machine() -> impl Strategy<Value = Machine> {
    let collectives = prop::collection::btree_map((".{1,8}", 2..64u32), (costs(1), costs(0), costs(0)), 0..4);
    let kernels = prop::collection::btree_map(".{1,8}", (1e-6..1.0, times()), 0..4);
    let links = (prop::option::of(link(Place::Within)), prop::option::of(link(Place::Between)));
    let life = (0.0..10.0, 0.0..10.0, 0.0..10.0, 0.0..10.0).prop_map(|(launch_s, init_s, finalize_s, spread_s)| Life {
        launch_s,
        init_s,
        finalize_s,
        spread_s,
    });
    let stops = prop::option::of(stops());
    (identity(), 0..1u64 << 40, prop::option::of(life), links, collectives, kernels, stops).prop_map(
        |(identity, created, life, (within, between), collectives, kernels, stops)| Machine {
            format: FORMAT,
            created,
            identity,
            life,
            links: within.into_iter().chain(between).collect(),
            collectives: collectives
                .into_iter()
                .map(|((name, ranks), (costs, root, others))| Collective { name, ranks, costs, root, others })
                .collect(),
            kernels: kernels.into_iter().map(|(name, (seconds, spread))| Kernel { name, seconds, spread }).collect(),
            stops,
        },
    )
}

fn parse(text: &str) -> Result<Machine, MachineError> {
    Machine::parse(Path::new("m.toml"), text.as_bytes())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(machine in machine()) {
        prop_assert_eq!(machine.check(), Ok(()));
        let text = machine.text();
        prop_assert_eq!(parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?, machine);
    }

    #[test]
    fn a_machine_has_not_changed_since_itself(machine in machine()) {
        prop_assert!(changes(&machine, &machine).iter().all(|change| !change.changed));
        if let Some(same) = ratio(&machine, &machine) {
            prop_assert!((same.k - 1.0).abs() < 1e-12 && (same.factor - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn costs_lie_between_their_points(costs in costs(1), bytes in 0..1u64 << 41) {
        let seconds = costs.seconds(bytes).expect("there are points");
        let most = costs.0.iter().map(|cost| cost.seconds).fold(0.0, f64::max);
        prop_assert!(seconds >= 0.0 && (bytes > costs.0.last().expect("a point").bytes || seconds <= most * (1.0 + 1e-12)));
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Machine::parse(Path::new("m.toml"), &bytes);
    }

    #[test]
    fn a_damaged_file_never_panics(machine in machine(), cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = machine.text().into_bytes();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            match byte {
                0..64 => bytes.truncate(at + 1),
                64..128 => { bytes.remove(at); bytes.push(b'\n'); }
                _ => bytes[at] = byte & 0x7f,
            }
        }
        if let Ok(read) = Machine::parse(Path::new("m.toml"), &bytes) {
            prop_assert_eq!(read.check(), Ok(()));
            let _ = (changes(&machine, &read), ratio(&machine, &read), read.text());
        }
    }
}

const LINK: &str = "format = 1
[[links]]
place = \"within\"
latency_s = 1e-6
bandwidth = 1e9
overlap = 0.5
send = [{ bytes = 0, seconds = 1e-6 }]
receive = [{ bytes = 0, seconds = 1e-6 }]
isend = [{ bytes = 0, seconds = 1e-6 }]
irecv = [{ bytes = 0, seconds = 1e-6 }]
wait = [{ bytes = 0, seconds = 1e-6 }]
transfer = [{ bytes = 0, seconds = 1e-6 }, { bytes = 1000, seconds = 2e-6 }]
";

#[test]
fn a_file_by_hand_needs_no_more_than_this() {
    let machine = parse(LINK).expect("the parts that are needed are there");
    assert_eq!(machine.links[0].transfer.seconds(500), Some(1.5e-6));
    assert_eq!(parse("format = 1\n").map(|machine| machine == Machine::empty()).ok(), Some(true));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases = [
        ("", "", "no key `format`"),
        ("format = 1", "format = 2", "format 2 of machine files"),
        ("format = 1", "format = \"1\"", "no whole number"),
        ("overlap = 0.5\n", "", "missing field `overlap`"),
        ("latency_s = 1e-6", "latency_s = -1e-6", "links[0].latency_s is negative"),
        ("overlap = 0.5", "overlap = 1.5", "links[0].overlap is no share"),
        ("bandwidth = 1e9", "bandwidth = 0.0", "links[0].bandwidth"),
        ("bandwidth = 1e9", "bandwith = 1e9", "unknown field `bandwith`"),
        ("seconds = 2e-6", "seconds = nan", "links[0].transfer[1].seconds is NaN"),
        ("seconds = 2e-6", "seconds = inf", "links[0].transfer[1].seconds is inf"),
        ("seconds = 2e-6", "seconds = 4e-7", "less than half of what 0 bytes take"),
        ("bytes = 1000", "bytes = 0", "links[0].transfer[1].bytes is 0, not more"),
        ("bytes = 1000", "bytes = -1", "invalid value"),
        ("send = [{ bytes = 0, seconds = 1e-6 }]\nreceive", "send = []\nreceive", "links[0].send has no points"),
        ("place = \"within\"", "place = \"inside\"", "unknown variant `inside`"),
        ("overlap = 0.5", "overlap = 0.5\noverlap = 0.5", "duplicate key"),
    ];
    for (from, to, word) in cases {
        let text = if from.is_empty() { String::new() } else { LINK.replacen(from, to, 1) };
        let error = parse(&text).expect_err(word);
        let said = error.to_string();
        assert!(said.contains(word) && said.starts_with("m.toml") && error.is_input(), "{word}: {said}");
        assert!(!said.contains('\n') && said.contains("phasecast characterize"), "{said}");
    }
    for (stops, word) in [
        ("span_s = 0.0\nranks = [[]]", "stops.span_s is no time above 0"),
        ("span_s = 1.0\nranks = []", "stops.ranks is empty"),
        ("span_s = 1.0\nranks = [[], [[0.1, 0.2], [0.2, 0.1]]]", "stops.ranks[1][1] begins before"),
        ("span_s = 1.0\nranks = [[[0.1, nan]]]", "stops.ranks[0][0] begins before"),
        ("span_s = 1.0\nranks = [[[0.5, 0.6]]]", "stops.ranks[0][0] ends after"),
        ("span_s = 1.0\nranks = [[[0.0, 1.0]]]", "stops.ranks[0] leaves no time"),
    ] {
        let said = parse(&format!("{LINK}[stops]\n{stops}\n")).expect_err(word).to_string();
        assert!(said.contains(word), "{said}");
    }
    let at_line = parse(&LINK.replace("bandwidth = 1e9", "bandwidth = [")).expect_err("it is no TOML").to_string();
    assert!(at_line.contains("(line 5)") || at_line.contains("(line 6)"), "{at_line}");
    let twice = format!("{LINK}{}", LINK.replace("format = 1\n", ""));
    let said = parse(&twice).expect_err("two links of one place").to_string();
    assert!(said.contains("links[1].place is that of a link before it"), "{said}");
    let absent = Machine::read(Path::new("/nonexistent/m.toml")).expect_err("there is none");
    assert!(absent.is_input(), "{absent}");
}

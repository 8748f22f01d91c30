//! Decisions with given inputs.
#![forbid(unsafe_code)]

use super::*;
use crate::policy::{Direction, PlacementKind, Prediction};
use crate::request::Flags;
use crate::units::SectorIndex;

const COSTS: Costs = Costs {
    encrypt_ns_per_byte: 0.2,
    decrypt_ns_per_byte: 0.2,
    handoff_awake_ns: 200.0,
    handoff_asleep_ns: 30_000.0,
    handoff_self_ns: 150.0,
    wake_self_ns: 3_000.0,
    write_ns_per_byte: 0.0,
    device_ns: 0.0,
};

fn job(len_bytes: u32, flags: Flags) -> Job {
    Job {
        direction: Direction::Decrypt,
        flags,
        sector: SectorIndex::new(0),
        len_bytes,
        max_parts: (len_bytes / 4096).clamp(1, 255) as u8,
    }
}

/// One queue and its workers, each with a core.
fn load(usable: u32, awake: u32) -> Load {
    Load {
        depth: 32,
        in_flight: 32,
        workers: usable,
        usable_workers: usable,
        idle_workers: usable,
        awake_workers: awake,
        costs: COSTS,
        ..Load::default()
    }
}

fn place(policy: &mut Adaptive, jobs: &[Job], load: &Load) -> Vec<Placement> {
    let mut placements = vec![Placement::Inline; jobs.len()];
    policy.place(jobs, load, &mut placements);
    placements
}

fn offloaded(placements: &[Placement]) -> usize {
    placements
        .iter()
        .filter(|&&p| p == Placement::Offload)
        .count()
}

fn parts(placement: Placement) -> u8 {
    match placement {
        Placement::Split(parts) => parts.get(),
        Placement::Inline | Placement::Offload => 0,
    }
}

#[test]
fn one_small_request_stays_inline_whoever_is_awake() {
    for awake in 0..=4 {
        for len in [512, 4096] {
            let placed = place(
                &mut Adaptive::default(),
                &[job(len, Flags::empty())],
                &load(4, awake),
            );
            assert_eq!(placed, [Placement::Inline], "{len} {awake}");
        }
    }
}

#[test]
fn a_large_request_is_split_over_awake_and_sleeping_workers() {
    let large = [job(1 << 20, Flags::empty())];
    let asleep = parts(place(&mut Adaptive::default(), &large, &load(1, 0))[0]);
    assert!((4..=16).contains(&asleep), "{asleep}");
    let awake = parts(place(&mut Adaptive::default(), &large, &load(8, 8))[0]);
    assert!(awake >= 9, "{awake}");
    assert!(
        parts(
            place(
                &mut Adaptive::default(),
                &[job(1 << 20, Flags::HIPRI)],
                &load(8, 8)
            )[0]
        ) >= 8
    );
}

#[test]
fn a_request_that_ends_before_a_sleeper_begins_is_not_split() {
    let placed = place(
        &mut Adaptive::default(),
        &[job(128 << 10, Flags::empty())],
        &load(4, 0),
    );
    assert_eq!(placed, [Placement::Inline]);
    let placed = place(
        &mut Adaptive::default(),
        &[job(128 << 10, Flags::empty())],
        &load(4, 2),
    );
    assert!(parts(placed[0]) >= 3, "{placed:?}");
}

#[test]
fn without_a_core_for_workers_everything_is_inline() {
    let mut load = load(4, 0);
    (load.usable_workers, load.idle_workers) = (0, 0);
    let jobs = [job(1 << 20, Flags::empty()), job(4096, Flags::READAHEAD)];
    assert_eq!(
        place(&mut Adaptive::default(), &jobs, &load),
        [Placement::Inline; 2]
    );
}

#[test]
fn an_awake_worker_takes_its_share_of_a_backlog() {
    let jobs = [job(4096, Flags::empty()); 32];
    let handed_off = offloaded(&place(&mut Adaptive::default(), &jobs, &load(1, 1)));
    assert!((13..=18).contains(&handed_off), "{handed_off}");
    let mut behind = load(1, 1);
    behind.queued_bytes = 32 * 4096;
    assert_eq!(
        offloaded(&place(&mut Adaptive::default(), &jobs, &behind)),
        0
    );
    let four = offloaded(&place(&mut Adaptive::default(), &jobs, &load(4, 4)));
    assert!((28..=31).contains(&four), "{four}");
}

#[test]
fn jobs_cheaper_than_a_hand_off_are_never_handed_off() {
    let jobs = [job(512, Flags::empty()); 32];
    assert_eq!(
        offloaded(&place(&mut Adaptive::default(), &jobs, &load(4, 4))),
        0
    );
}

#[test]
fn a_lasting_backlog_wakes_a_worker_and_a_single_one_does_not() {
    let jobs = [job(4096, Flags::empty()); 32];
    let mut policy = Adaptive::default();
    let mut asleep = load(1, 0);
    assert_eq!(offloaded(&place(&mut policy, &jobs, &asleep)), 0);
    let mut woken_after = 0;
    while offloaded(&place(&mut policy, &jobs, &asleep)) == 0 {
        asleep.now_ns += 30_000;
        woken_after += 1;
        assert!(woken_after < 20);
    }
}

#[test]
fn lasting_middle_sized_requests_wake_a_worker_to_be_split() {
    let jobs = [job(128 << 10, Flags::empty())];
    let (mut policy, mut asleep) = (Adaptive::default(), load(1, 0));
    asleep.in_flight = 1;
    assert_eq!(parts(place(&mut policy, &jobs, &asleep)[0]), 0);
    let split_after = (0..20).find(|_| {
        asleep.now_ns += 40_000;
        parts(place(&mut policy, &jobs, &asleep)[0]) > 0
    });
    assert!(split_after.is_some());
}

#[test]
fn a_thread_with_much_else_to_do_hands_off_more() {
    let jobs = [job(8192, Flags::empty()); 4];
    let handed_off = |saturated| {
        let (mut policy, mut awake) = (Adaptive::default(), load(1, 1));
        awake.saturated = saturated;
        let mut placed = Vec::new();
        for _ in 0..10 {
            placed = place(&mut policy, &jobs, &awake);
            let handed_off = offloaded(&placed) as u64;
            // 1638 ns of cipher and 13,000 ns of other work per job.
            awake.now_ns += 4 * 13_000 + (4 - handed_off) * 1_638 + handed_off * 200;
        }
        offloaded(&placed)
    };
    assert_eq!(handed_off(false), 2);
    assert_eq!(handed_off(true), 4);
}

#[test]
fn hand_offs_that_cost_the_thread_more_than_the_job_come_to_an_end() {
    let jobs = [job(4096, Flags::empty()); 32];
    let (mut policy, mut awake) = (Adaptive::default(), load(1, 1));
    awake.saturated = true;
    let mut handed_off = 0;
    for _ in 0..1000 {
        let now = offloaded(&place(&mut policy, &jobs, &awake)) as u64;
        // 819 ns of cipher, and as much again to get the data back from the other core.
        awake.now_ns += 32 * 400 + (32 - now) * 819 + now * 1_200;
        handed_off += now;
    }
    assert!((1..=32 * 50).contains(&handed_off), "{handed_off}");
}

#[test]
fn read_ahead_leaves_the_queue_thread_where_that_saves_it_time() {
    let ahead = |len, load: &Load| {
        place(
            &mut Adaptive::default(),
            &[job(len, Flags::READAHEAD)],
            load,
        )[0]
    };
    assert_eq!(ahead(4096, &load(2, 1)), Placement::Offload);
    assert_eq!(ahead(4096, &load(2, 0)), Placement::Inline);
    assert_eq!(ahead(128 << 10, &load(2, 0)), Placement::Offload);
    assert_eq!(ahead(512, &load(2, 2)), Placement::Inline);
}

#[test]
fn the_device_s_part_counts_for_writes_that_workers_can_do() {
    let weighed = Load {
        costs: Costs {
            write_ns_per_byte: 1.0,
            ..COSTS
        },
        ..load(1, 0)
    };
    let read = job(128 << 10, Flags::empty());
    let write = Job {
        direction: Direction::Encrypt,
        ..read
    };
    let is_split = |job, load: &Load| parts(place(&mut Adaptive::default(), &[job], load)[0]) > 0;
    // 26 us of cipher end before a sleeper begins; with 131 us of copying it is in time.
    assert!(!is_split(write, &load(1, 0)));
    assert!(is_split(write, &weighed));
    assert!(!is_split(read, &weighed));
}

#[test]
fn costs_that_are_unknown_keep_everything_inline() {
    let never = f32::INFINITY;
    let unmeasured = Costs {
        encrypt_ns_per_byte: 0.2,
        decrypt_ns_per_byte: 0.2,
        handoff_awake_ns: never,
        handoff_asleep_ns: never,
        handoff_self_ns: never,
        wake_self_ns: never,
        device_ns: 0.0,
        write_ns_per_byte: 0.0,
    };
    for costs in [Costs::default(), unmeasured] {
        let load = Load {
            costs,
            ..load(4, 2)
        };
        let jobs = [job(1 << 20, Flags::empty()); 4];
        assert_eq!(
            place(&mut Adaptive::default(), &jobs, &load),
            [Placement::Inline; 4]
        );
    }
}

fn policy(flags: &str) -> Adaptive {
    Adaptive::new(AdaptiveOptions::parse(flags).unwrap())
}

#[test]
fn a_request_that_a_split_shortens_a_little_is_split_where_only_time_counts() {
    // 13.1 us alone, and 11.6 us with a worker that is awake but starts late.
    let mut slow_start = load(1, 1);
    slow_start.costs.handoff_awake_ns = 2_800.0;
    slow_start.in_flight = 1;
    let placed = |flags| {
        place(
            &mut policy(flags),
            &[job(64 << 10, Flags::empty())],
            &slow_start,
        )
    };
    assert_eq!(parts(placed("balanced")[0]), 0);
    assert!(parts(placed("latency")[0]) >= 2);
    assert_eq!(parts(placed("efficiency")[0]), 0);
}

#[test]
fn jobs_hardly_dearer_than_their_hand_off_are_handed_off_where_only_time_counts() {
    // 205 ns of cipher against 150 of hand-off.
    let jobs = [job(1024, Flags::empty()); 32];
    let handed_off = |flags| offloaded(&place(&mut policy(flags), &jobs, &load(4, 4)));
    assert_eq!(handed_off("balanced"), 0);
    assert!(handed_off("latency") > 16);
    assert!(handed_off("throughput") > 16);
}

#[test]
fn many_large_requests_in_flight_are_not_each_split_where_the_sum_counts() {
    let jobs = [job(1 << 20, Flags::empty()); 32];
    let placed = place(&mut policy("throughput"), &jobs, &load(31, 31));
    assert!(placed.iter().all(|&placement| parts(placement) == 0));
    assert!((29..=31).contains(&offloaded(&placed)), "{placed:?}");
    let placed = place(&mut policy("latency"), &jobs, &load(31, 31));
    assert!(placed.iter().all(|&placement| parts(placement) >= 32));
    // Alone in flight, a request has all workers for itself.
    let mut alone = load(31, 31);
    alone.in_flight = 1;
    let placed = place(&mut policy("throughput"), &jobs[..1], &alone);
    assert!(parts(placed[0]) >= 32);
}

#[test]
fn nothing_is_handed_off_where_cpu_time_counts_most() {
    for (len, flags) in [
        (1 << 20, Flags::empty()),
        (1 << 20, Flags::READAHEAD),
        (1 << 20, Flags::HIPRI),
        (4096, Flags::empty()),
    ] {
        let jobs = [job(len, flags); 32];
        let placed = place(&mut policy("efficiency"), &jobs, &load(63, 63));
        assert!(
            placed
                .iter()
                .all(|&placement| placement == Placement::Inline)
        );
    }
}

#[test]
fn a_wake_up_is_paid_for_sooner_where_cpu_time_costs_less() {
    let jobs = [job(4096, Flags::empty()); 32];
    let woken_after = |flags| {
        let (mut policy, mut asleep) = (policy(flags), load(1, 0));
        let mut batches = 0;
        while offloaded(&place(&mut policy, &jobs, &asleep)) == 0 {
            asleep.now_ns += 30_000;
            batches += 1;
            assert!(batches < 20);
        }
        batches
    };
    assert!(woken_after("latency") < woken_after("balanced"));
}

#[test]
fn no_more_workers_are_counted_on_than_the_limit() {
    let large = [job(1 << 20, Flags::empty())];
    assert!(parts(place(&mut policy("balanced"), &large, &load(8, 8))[0]) > 8);
    assert_eq!(
        parts(place(&mut policy("max_workers=3"), &large, &load(8, 8))[0]),
        3
    );
    assert_eq!(
        place(&mut policy("max_workers=1"), &large, &load(8, 8)),
        [Placement::Inline]
    );
    let small = [job(4096, Flags::empty()); 32];
    assert_eq!(
        offloaded(&place(&mut policy("max_workers=3"), &small, &load(8, 8))),
        3
    );
    // A pool that is no larger needs no limit.
    assert!(parts(place(&mut policy("max_workers=8"), &large, &load(8, 8))[0]) > 8);
}

/// What is at the workers, each with the time that it will have taken.
type Out = Vec<(Job, Placement, u64)>;

/// One batch under a policy with limits, then the end of the `ended` oldest jobs that are out.
fn turn(policy: &mut Adaptive, jobs: &[Job], load: &Load, out: &mut Out, ended: usize) -> u64 {
    let placed = place(policy, jobs, load);
    for (job, placement) in jobs.iter().zip(placed) {
        if placement != Placement::Inline {
            out.push((*job, placement, load.costs.cipher_ns(job) as u64));
        }
    }
    let ended = ended.min(out.len());
    let mut used_ns = 0;
    for (job, placement, cipher_ns) in out.drain(..ended) {
        used_ns += cipher_ns;
        policy.observe(&Outcome {
            job,
            placement,
            cipher_ns,
            device_ns: 0,
            wait_ns: 0,
            total_ns: cipher_ns,
        });
    }
    used_ns
}

proptest::proptest! {
    #[test]
    fn limits_hold_whatever_comes(
        turns in proptest::collection::vec((1_usize..40, 9_u32..22, 0_usize..40, 0_u64..3_000_000), 1..80),
        objective in proptest::sample::select(vec!["balanced", "latency", "throughput"]),
        workers in 1_u32..6,
        percent in 1_u32..=100,
    ) {
        let mut policy = policy(&format!("{objective},max_workers={workers},max_cpu={percent}"));
        let (mut out, mut used_ns, mut load) = (Out::new(), 0, load(8, 8));
        load.now_ns = 1;
        for (jobs, bits, ended, passed_ns) in turns {
            load.at_workers = out.len() as u32;
            load.in_flight = load.at_workers + jobs as u32;
            let jobs = vec![job(1 << bits, Flags::empty()); jobs];
            used_ns += turn(&mut policy, &jobs, &load, &mut out, ended);
            let parts_out: u32 = out.iter().map(|(_, placement, _)| match placement {
                Placement::Split(parts) => u32::from(parts.get()),
                _ => 1,
            }).sum();
            proptest::prop_assert!(parts_out <= workers, "{}", parts_out);
            let out_ns: u64 = out.iter().map(|(_, _, ns)| ns).sum();
            let most_ns = f64::from(percent) / 100.0 * 8.0 * (load.now_ns as f64 + 10e6);
            proptest::prop_assert!((used_ns + out_ns) as f64 <= 1.001 * most_ns, "{} {}", used_ns, most_ns);
            load.now_ns += passed_ns;
        }
    }
}

#[test]
fn a_share_that_is_used_up_fills_again() {
    let large = [job(1 << 20, Flags::empty())];
    let (mut policy, mut load, mut out) = (policy("max_cpu=10"), load(2, 2), Out::new());
    let mut split = |now_ns, turns| {
        load.now_ns = now_ns;
        (0..turns)
            .filter(|_| turn(&mut policy, &large, &load, &mut out, 1) > 0)
            .count()
    };
    // 2 ms of the two workers are 9 jobs of 210 us.
    assert_eq!(split(1 << 40, 20), 9);
    assert_eq!(split((1 << 40) + 5_000_000, 20), 5);
}

#[test]
fn splits_that_take_longer_than_predicted_come_to_an_end_and_are_tried_again() {
    let large = [job(128 << 10, Flags::empty())];
    let mut load = load(1, 1);
    load.in_flight = 1;
    // 26.2 us alone, 14.5 predicted for a split, of which each really takes 24.
    let mut policy = Adaptive::default();
    let mut splits = |jobs: u32| {
        let mut count = 0;
        for _ in 0..jobs {
            let placement = place(&mut policy, &large, &load)[0];
            let total_ns = if parts(placement) > 0 { 24_000 } else { 26_200 };
            count += u32::from(parts(placement) > 0);
            load.now_ns += total_ns;
            policy.observe(&Outcome {
                job: large[0],
                placement,
                cipher_ns: 26_200,
                device_ns: 0,
                wait_ns: 0,
                total_ns,
            });
        }
        count
    };
    let (first, later) = (splits(100), splits(20_000));
    assert!((3..=30).contains(&first), "{first}");
    assert!((1..=400).contains(&later), "{later}");
}

/// Why the jobs of one batch went where they went, each reason with its number of jobs.
fn reasons(policy: &mut Adaptive, jobs: &[Job], load: &Load) -> Vec<(&'static str, u64)> {
    let before = *policy.explanation().unwrap();
    let placed = place(policy, jobs, load);
    let since = policy.explanation().unwrap().since(&before);
    for kind in PlacementKind::ALL {
        let of_kind = since.decisions().filter(|d| d.placement == kind);
        let placed = placed.iter().filter(|&&p| PlacementKind::from(p) == kind);
        assert_eq!(of_kind.map(|d| d.jobs).sum::<u64>(), placed.count() as u64);
    }
    since.decisions().map(|d| (d.reason, d.jobs)).collect()
}

#[test]
fn every_reason_is_told() {
    let told = |flags, jobs: &[Job], load: &Load| {
        let reasons = reasons(&mut policy(flags), jobs, load);
        reasons
            .into_iter()
            .map(|(reason, _)| reason)
            .collect::<Vec<_>>()
    };
    let one = |len| [job(len, Flags::empty())];
    let alone = |usable, awake| Load {
        in_flight: 1,
        ..load(usable, awake)
    };
    let many = [job(4096, Flags::empty()); 32];
    let behind = Load {
        queued_bytes: 32 * 4096,
        ..load(1, 1)
    };
    let no_costs = Load {
        costs: Costs {
            handoff_awake_ns: 0.0,
            ..COSTS
        },
        ..load(1, 1)
    };
    let no_core = load(0, 0);
    for (jobs, load, expected) in [
        (
            &many[..],
            &Load {
                workers: 2,
                ..no_core
            },
            "no_worker",
        ),
        (&many, &no_costs, "unknown_costs"),
        (&one(512), &load(4, 4), "small"),
        (&[job(32 << 10, Flags::HIPRI)], &load(1, 1), "hipri"),
        (&one(128 << 10), &alone(1, 0), "asleep"),
        (&one(4096), &alone(1, 1), "alone"),
        (&one(4096), &load(1, 1), "single"),
        (&many, &behind, "behind"),
        (&many, &load(1, 0), "asleep"),
        (&[job(4096, Flags::READAHEAD)], &load(1, 1), "readahead"),
        (&one(1 << 20), &load(4, 4), "awake_workers"),
        (&one(1 << 20), &load(4, 0), "waking_workers"),
    ] {
        assert_eq!(told("balanced", jobs, load), [expected], "{load:?}");
    }
    assert_eq!(
        told("balanced", &many, &load(1, 1)),
        ["own_share", "backlog"]
    );
    let large = [job(64 << 10, Flags::empty()); 32];
    assert_eq!(
        told("throughput", &large, &load(1, 0)),
        ["own_share", "waking"]
    );
    assert_eq!(
        told("max_workers=1", &many, &load(2, 2)),
        ["own_share", "limit", "backlog"]
    );
    assert_eq!(told("max_cpu=1", &one(1 << 20), &load(2, 2)), ["limit"]);
}

#[test]
fn a_thread_that_is_the_bottleneck_says_so_and_explores() {
    let jobs = [job(8192, Flags::empty()); 4];
    let (mut policy, mut awake) = (Adaptive::default(), load(1, 1));
    awake.saturated = true;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..600 {
        seen.extend(
            reasons(&mut policy, &jobs, &awake)
                .into_iter()
                .map(|(reason, _)| reason),
        );
        awake.now_ns += 20_000;
    }
    assert!(
        seen.contains("bottleneck") && seen.contains("exploring"),
        "{seen:?}"
    );
}

#[test]
fn what_is_predicted_is_what_the_equations_say() {
    let predicted = |jobs: &[Job], load: &Load| {
        let mut policy = Adaptive::default();
        place(&mut policy, jobs, load);
        let of = |p: Prediction| (p.placement, p.jobs, p.predicted_ns as u64);
        policy
            .explanation()
            .unwrap()
            .predictions()
            .map(of)
            .collect::<Vec<_>>()
    };
    // 819.2 ns each, one after the other.
    let two = [job(4096, Flags::empty()); 2];
    let behind = Load {
        queued_bytes: 1 << 20,
        ..load(1, 1)
    };
    assert_eq!(
        predicted(&two, &behind),
        [(PlacementKind::Inline, 2, 819 + 1638)]
    );
    // The first after 150 + 200 + 819 ns on the worker, the other after 150 + 819 ns here.
    let expected = [
        (PlacementKind::Inline, 1, 969),
        (PlacementKind::Offload, 1, 1169),
    ];
    assert_eq!(predicted(&two, &load(1, 1)), expected);
    // T + s + h = (209,715 + 200 + 16 * 150) / 2 + 350, and its own hand-off.
    let large = [job(1 << 20, Flags::empty())];
    assert_eq!(
        predicted(&large, &load(1, 1)),
        [(PlacementKind::Split, 1, 106_157 + 350 + 150)]
    );
}

#[test]
fn what_a_job_took_is_counted_where_it_ran() {
    let mut policy = Adaptive::default();
    for (placement, total_ns) in [(Placement::Inline, 1_000), (Placement::Offload, 9_000)] {
        policy.observe(&Outcome {
            job: job(4096, Flags::empty()),
            placement,
            cipher_ns: 800,
            device_ns: 0,
            wait_ns: 0,
            total_ns,
        });
    }
    let took: Vec<_> = policy
        .explanation()
        .unwrap()
        .predictions()
        .map(|p| (p.placement, p.ended, p.taken_ns))
        .collect();
    let expected = [
        (PlacementKind::Inline, 1, 1_000),
        (PlacementKind::Offload, 1, 9_000),
    ];
    assert_eq!(took, expected);
}

#[test]
fn a_job_that_others_follow_is_split_no_further_than_there_are_hands() {
    let jobs = [job(128 << 10, Flags::empty()); 4];
    let split = |load: &Load| {
        let placed = place(&mut Adaptive::default(), &jobs, load);
        placed.into_iter().map(parts).collect::<Vec<_>>()
    };
    assert_eq!(split(&load(3, 3))[..3], [4, 4, 4]);
    assert!(
        split(&load(3, 3))[3] > 4,
        "nothing fills the gap at the end"
    );
    let mut follows = load(3, 3);
    follows.at_workers = 2;
    assert_eq!(split(&follows), [4; 4]);
}

#[test]
fn nothing_is_handed_off_for_a_small_part_of_a_request_s_time() {
    let jobs = [job(128 << 10, Flags::empty()); 2];
    let handed_off = |device_ns, saturated| {
        let (mut policy, mut busy) = (Adaptive::default(), load(1, 1));
        (busy.costs.device_ns, busy.saturated) = (device_ns, saturated);
        busy.at_device = 16;
        let mut placed = Vec::new();
        for _ in 0..20 {
            placed = place(&mut policy, &jobs, &busy);
            busy.now_ns += 100_000;
        }
        placed
            .iter()
            .any(|placement| *placement != Placement::Inline)
    };
    // Two jobs of 26 us each.
    assert!(handed_off(100_000.0, false));
    assert!(!handed_off(1_000_000.0, false));
    assert!(
        handed_off(1_000_000.0, true),
        "the thread is the bottleneck"
    );
}

#[test]
fn small_jobs_are_kept_without_a_look_at_the_workers() {
    let keeps = |len, flags, in_flight| {
        let glance = Glance {
            in_flight,
            costs: COSTS,
        };
        Adaptive::default().keeps(&[job(len, flags); 2], &glance)
    };
    assert!(keeps(512, Flags::empty(), 32));
    assert!(!keeps(2048, Flags::empty(), 32), "410 ns against 150");
    assert!(keeps(2048, Flags::empty(), 1), "it could be split only");
    assert!(keeps(2048, Flags::HIPRI, 32));
    assert!(!keeps(4096, Flags::HIPRI, 32));
    assert!(!keeps(2048, Flags::READAHEAD, 1));
    let mut policy = Adaptive::default();
    let glance = Glance::default();
    assert!(
        !policy.keeps(&[job(512, Flags::empty())], &glance),
        "nothing is known"
    );
}

//! What every policy promises, checked for every policy and every combination of flags.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::num::{NonZeroU8, NonZeroU16};

use crypt_core::policy::{
    AdaptiveOptions, Costs, Direction, Job, Load, Objective, Outcome, Placement, Policy,
    PolicySpec, WorkqueueFlags,
};
use crypt_core::request::Flags;
use crypt_core::units::SectorIndex;
use proptest::prelude::*;

/// Every policy there is: those without flags, each set of dm-crypt's flags, and each objective with and
/// without limits.
fn registry() -> Vec<PolicySpec> {
    let sets = 1..=WorkqueueFlags::all().bits();
    let flagged = sets.map(|bits| PolicySpec::Workqueue(WorkqueueFlags::from_bits_retain(bits)));
    let objectives = Objective::ALL
        .into_iter()
        .map(|objective| AdaptiveOptions::new().with_objective(objective));
    let adaptive = objectives.flat_map(|options| {
        let workers = options.with_max_workers(NonZeroU16::MIN);
        let share = NonZeroU8::new(30).and_then(|share| workers.with_max_cpu_percent(share));
        [Some(options), Some(workers), share]
    });
    let adaptive = adaptive.flatten().map(PolicySpec::Adaptive);
    let known = PolicySpec::ALL.into_iter();
    known.chain(flagged).chain(adaptive.skip(1)).collect()
}

fn any_job() -> impl Strategy<Value = Job> {
    let lens = prop::sample::select(vec![512, 4096, 65536, 1 << 20, u32::MAX - 511]);
    (any::<bool>(), 0_u8..16, any::<u32>(), lens, 1_u8..).prop_map(
        |(encrypt, flags, sector, len_bytes, max_parts)| Job {
            direction: if encrypt {
                Direction::Encrypt
            } else {
                Direction::Decrypt
            },
            flags: Flags::from_bits_truncate(flags),
            sector: SectorIndex::new(u64::from(sector)),
            len_bytes,
            max_parts,
        },
    )
}

/// Costs as they are, and as they must not be but could.
fn any_cost() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => 0.01_f32..100_000.0,
        1 => prop::sample::select(vec![0.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE, -1.0]),
    ]
}

fn any_costs() -> impl Strategy<Value = Costs> {
    [
        any_cost(),
        any_cost(),
        any_cost(),
        any_cost(),
        any_cost(),
        any_cost(),
        any_cost(),
        any_cost(),
    ]
    .prop_map(|c| Costs {
        encrypt_ns_per_byte: c[0],
        decrypt_ns_per_byte: c[1],
        handoff_awake_ns: c[2],
        handoff_asleep_ns: c[3],
        handoff_self_ns: c[4],
        wake_self_ns: c[5],
        write_ns_per_byte: c[6],
        device_ns: c[7],
    })
}

fn any_load() -> impl Strategy<Value = Load> {
    let counts = [0_u32..70, 0..70, 0..70, 0..70];
    (any::<u64>(), 1_u32..300, any::<u64>(), any_costs(), counts).prop_map(
        |(now_ns, depth, queued_bytes, costs, [workers, usable, idle, awake])| Load {
            now_ns,
            depth,
            in_flight: depth,
            at_device: 0,
            at_workers: depth / 2,
            workers,
            usable_workers: usable.min(workers),
            idle_workers: idle.min(usable).min(workers),
            awake_workers: awake.min(idle).min(usable).min(workers),
            queued_bytes,
            saturated: depth % 2 == 0,
            costs,
        },
    )
}

fn place(policy: &mut dyn Policy, jobs: &[Job], load: &Load) -> Vec<Placement> {
    let mut placements = vec![Placement::Inline; jobs.len()];
    policy.place(jobs, load, &mut placements);
    placements
}

fn outcome(job: Job, placement: Placement) -> Outcome {
    Outcome {
        job,
        placement,
        cipher_ns: u64::from(job.len_bytes) / 5,
        device_ns: 0,
        wait_ns: 300,
        total_ns: u64::from(job.len_bytes),
    }
}

proptest! {
    #[test]
    fn parts_never_exceed_what_the_job_allows(
        batches in prop::collection::vec((prop::collection::vec(any_job(), 0..40), any_load()), 1..6),
    ) {
        for spec in registry() {
            let mut policy = spec.build();
            for (jobs, load) in &batches {
                let placements = place(&mut *policy, jobs, load);
                for (job, placement) in jobs.iter().zip(placements) {
                    if let Placement::Split(parts) = placement {
                        prop_assert!((2..=job.max_parts).contains(&parts.get()), "{spec} {parts}");
                    }
                    policy.observe(&outcome(*job, placement));
                }
            }
        }
    }

    #[test]
    fn without_workers_everything_is_inline(
        jobs in prop::collection::vec(any_job(), 0..40),
        mut load in any_load(),
    ) {
        (load.workers, load.usable_workers, load.idle_workers, load.awake_workers) = (0, 0, 0, 0);
        for spec in registry() {
            let placements = place(&mut *spec.build(), &jobs, &load);
            prop_assert!(placements.iter().all(|&p| p == Placement::Inline), "{spec}");
        }
    }

    #[test]
    fn the_same_inputs_give_the_same_answers(
        batches in prop::collection::vec((prop::collection::vec(any_job(), 0..40), any_load()), 1..6),
    ) {
        for spec in registry() {
            let run = || {
                let mut policy = spec.build();
                let mut all = Vec::new();
                for (jobs, load) in &batches {
                    let placements = place(&mut *policy, jobs, load);
                    for (job, placement) in jobs.iter().zip(&placements) {
                        policy.observe(&outcome(*job, *placement));
                    }
                    all.push(placements);
                }
                all
            };
            prop_assert_eq!(run(), run(), "{}", spec);
        }
    }
}

#[test]
fn an_empty_batch_is_no_work() {
    for spec in registry() {
        assert!(
            place(&mut *spec.build(), &[], &Load::default()).is_empty(),
            "{spec}"
        );
    }
}

#[test]
fn names_parse_back_to_the_policy_and_differ() {
    let specs: BTreeSet<_> = registry().iter().map(PolicySpec::to_string).collect();
    let names: BTreeSet<_> = registry().iter().map(|spec| spec.build().name()).collect();
    assert_eq!(specs, names);
    // 3 policies, the sets of 5 flags but the empty one, and 4 objectives in 3 ways but the default.
    assert_eq!(specs.len(), 3 + 31 + 11);
    assert_eq!(specs.len(), registry().len());
    for name in &names {
        assert_eq!(name.parse::<PolicySpec>().unwrap().to_string(), *name);
    }
}

#[test]
fn rules_are_those_of_the_specification_and_never_change() {
    let busy = Load {
        workers: 2,
        usable_workers: 2,
        idle_workers: 2,
        ..Load::default()
    };
    let job = Job {
        direction: Direction::Encrypt,
        flags: Flags::empty(),
        sector: SectorIndex::new(0),
        len_bytes: 1 << 20,
        max_parts: 255,
    };
    for spec in registry() {
        let mut policy = spec.build();
        assert_eq!(policy.offload_rules(), spec.rules(), "{spec}");
        let placed = place(&mut *policy, &[job], &busy);
        policy.observe(&outcome(job, placed[0]));
        assert_eq!(policy.offload_rules(), spec.rules(), "{spec}");
        if !spec.needs_workers() {
            assert_eq!(placed, [Placement::Inline], "{spec}");
        }
    }
}

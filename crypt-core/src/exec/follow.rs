//! Whether the adaptive policy follows a machine that changes: a queue, its workers and a device in virtual
//! time, with the real policy and the real trackers of costs.
//!
//! What counts is what gets done: 100 ms after a step the policy must be within 3 % of one that was started
//! with the new costs. The queue keeps a depth of reads in flight. Its thread and the workers have a core each, a
//! worker that had nothing to do for [`world::SPIN_NS`] sleeps, and everything takes exactly as long as [`Truth`] says.
#![forbid(unsafe_code)]

mod world;

use self::world::{MEASURED_NS, SETTLE_NS, START_NS, Truth, USUAL, Workload, World};
use super::latency::Before;

const WORKLOADS: [Workload; 4] = [
    Workload {
        depth: 32,
        len_bytes: 4096,
        workers: 1,
    },
    Workload {
        depth: 32,
        len_bytes: 4096,
        workers: 3,
    },
    Workload {
        depth: 1,
        len_bytes: 1 << 20,
        workers: 3,
    },
    Workload {
        depth: 4,
        len_bytes: 128 << 10,
        workers: 3,
    },
];

/// What a policy reaches 100 ms after the last of `steps`, as a share of what one does that takes its place at that
/// moment and knows the costs.
fn reached(steps: &[Truth], workload: Workload, learns: bool) -> f64 {
    let [own, other] = [false, true].map(|is_replaced| {
        let mut world = World::new(steps[0], workload, learns);
        for &truth in &steps[1..] {
            world.run_for(SETTLE_NS + MEASURED_NS);
            world.truth = truth;
        }
        if is_replaced {
            world.know();
        }
        world.throughput() as f64
    });
    own / other
}

/// There and back again, each within 3 % of a policy that knows.
fn is_followed(changed: Truth) {
    for workload in WORKLOADS {
        let there = reached(&[USUAL, changed], workload, true);
        let back = reached(&[USUAL, changed, USUAL], workload, true);
        assert!(
            there >= 0.97 && back >= 0.97,
            "{workload:?}: {there} {back}"
        );
    }
}

/// A core at a fifth of its speed.
const SLOW_CORE: Truth = Truth {
    cipher_ns_per_byte: 5.0 * USUAL.cipher_ns_per_byte,
    ..USUAL
};
const DEAR_HAND_OFFS: Truth = Truth {
    handoff_awake_ns: 10 * USUAL.handoff_awake_ns,
    handoff_asleep_ns: 10 * USUAL.handoff_asleep_ns,
    handoff_self_ns: 10 * USUAL.handoff_self_ns,
    ..USUAL
};
const SLOW_DEVICE: Truth = Truth {
    device_ns: 10 * USUAL.device_ns,
    ..USUAL
};

#[test]
fn a_core_that_becomes_five_times_slower_and_recovers() {
    is_followed(SLOW_CORE);
}

#[test]
fn hand_offs_that_become_ten_times_dearer_and_recover() {
    is_followed(DEAR_HAND_OFFS);
}

#[test]
fn a_device_that_becomes_ten_times_slower_and_recovers() {
    is_followed(SLOW_DEVICE);
}

/// As calibration finds them where the machine is busy, or both threads are on one CPU.
#[test]
fn hand_offs_that_were_thought_far_too_dear_are_tried_again() {
    for workload in WORKLOADS {
        let [own, other] = [4_000_000, USUAL.handoff_awake_ns].map(|awake_ns| {
            let mut world = World::new(USUAL, workload, true);
            let latency = &world.latency;
            latency.learn(Before::Awake, awake_ns, START_NS);
            latency.learn(Before::Asleep, USUAL.handoff_asleep_ns, START_NS);
            world.throughput() as f64
        });
        assert!(own >= 0.97 * other, "{workload:?}: {own} {other}");
    }
}

#[test]
fn a_policy_that_learns_nothing_is_left_behind() {
    for steps in [[SLOW_CORE, USUAL], [USUAL, DEAR_HAND_OFFS]] {
        let shares = WORKLOADS.map(|workload| reached(&steps, workload, false));
        assert!(shares.iter().any(|share| *share < 0.9), "{shares:?}");
    }
}

#[test]
fn the_same_steps_give_the_same_figures() {
    let steps = [USUAL, SLOW_CORE, USUAL];
    let shares = [(); 2].map(|()| reached(&steps, WORKLOADS[1], true).to_bits());
    assert_eq!(shares[0], shares[1]);
}

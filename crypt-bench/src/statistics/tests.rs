//! The whole procedure on data whose truth is known: how much of what it calls a change is none, and how many of
//! the changes it finds.

#![forbid(unsafe_code)]

use super::power::{noise, repeats_for};
use super::*;
use crate::generate::Random;
use crate::testing::normal;

/// Cells of a matrix.
const CELLS: usize = 24;

/// How repeats vary, by the logarithm of their figures. Each has a deviation of about 2 %.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// A normal distribution.
    Normal,
    /// Student's t with two degrees of freedom: no variance at all.
    HeavyTails,
    /// Never faster than a bound, and now and then much slower.
    Skewed,
    /// Two speeds, 6 % apart, one of them for some repeats on end.
    TwoModes,
    /// A sum of what came before: repeats close in time are alike.
    Autocorrelated,
    /// The machine becomes slower all the time.
    Drift,
}

impl Noise {
    const ALL: [Self; 6] = [
        Self::Normal,
        Self::HeavyTails,
        Self::Skewed,
        Self::TwoModes,
        Self::Autocorrelated,
        Self::Drift,
    ];

    /// The logarithms of `len` figures, one after the other in time.
    fn draw(self, random: &mut Random, len: usize) -> Vec<f64> {
        let mut state = normal(random);
        let mut slow = random.below(2) == 1;
        (0..len)
            .map(|at| match self {
                Self::Normal => 0.02 * normal(random),
                Self::HeavyTails => {
                    let scale = (-random.unit().max(1e-9).ln()).sqrt().max(1e-6);
                    0.02 * normal(random) / scale
                }
                Self::Skewed => 0.02 * random.unit().max(1e-9).ln(),
                Self::TwoModes => {
                    slow ^= random.below(5) == 0;
                    0.005 * normal(random) - if slow { 0.06 } else { 0.0 }
                }
                Self::Autocorrelated => {
                    state = 0.9 * state + 0.44 * normal(random);
                    0.02 * state
                }
                Self::Drift => 0.005 * normal(random) - 0.08 * at as f64 / len as f64,
            })
            .collect()
    }
}

/// One cell as a gate sees it: both sides take turns, and the second one is off by `truth`.
fn interleaved(noise: Noise, blocks: usize, truth: f64, random: &mut Random) -> Vec<(f64, f64)> {
    let logs = noise.draw(random, 2 * blocks);
    let block = |(at, pair): (usize, &[f64])| {
        // A B B A: which side is first changes from block to block.
        let (first, second) = if at % 2 == 0 {
            (pair[0], pair[1])
        } else {
            (pair[1], pair[0])
        };
        (1e9 * first.exp(), 1e9 * truth * second.exp())
    };
    logs.chunks(2).enumerate().map(block).collect()
}

/// What is called, cell by cell, where the sides are off by `truths` and up to `share` is allowed.
fn calls(
    noise: Noise,
    blocks: usize,
    truths: &[f64],
    share: f64,
    random: &mut Random,
) -> Vec<Call> {
    let samples: Vec<_> = truths
        .iter()
        .map(|truth| interleaved(noise, blocks, *truth, random))
        .collect();
    let shifts: Vec<Shift> = samples
        .iter()
        .map(|pairs| Shift::of(&Sample::Interleaved(pairs), truths.len()).unwrap())
        .collect();
    let p_values: Vec<f64> = shifts.iter().map(|shift| shift.p_value).collect();
    let limit = Limit::of_share(share, true);
    let all = shifts.iter().zip(adjusted(&p_values));
    all.map(|(shift, p)| limit.judge(shift, p)).collect()
}

/// Discoveries over `matrices`, with changes of 30 % in a quarter of the cells: false ones and true ones; and the
/// number of other matrices, without any change, in which something is called.
fn discoveries(noise: Noise, matrices: usize, share: f64) -> [usize; 3] {
    let mut random = Random::new(11);
    let [mut wrong, mut right, mut alarms] = [0; 3];
    let mut truths = [1.0; CELLS];
    truths[..CELLS / 4].fill(0.7);
    for _ in 0..matrices {
        for (truth, call) in truths
            .iter()
            .zip(calls(noise, 10, &truths, share, &mut random))
        {
            match call {
                Call::Worse if *truth < 1.0 => right += 1,
                Call::Worse | Call::Better => wrong += 1,
                Call::Level | Call::Open => {}
            }
        }
        let quiet = calls(noise, 10, &[1.0; CELLS], share, &mut random);
        let is_alarm = |call: &Call| matches!(call, Call::Worse | Call::Better);
        alarms += usize::from(quiet.iter().any(is_alarm));
    }
    [wrong, right, alarms]
}

/// Of everything that is called a change, at most 1 % is none, in the mean over matrices. With a limit of 0
/// that is all that keeps false alarms away.
#[test]
fn false_discoveries_are_at_most_one_percent() {
    let matrices = 40;
    let [mut wrong, mut right, mut alarms] = [0; 3];
    for noise in Noise::ALL {
        let found = discoveries(noise, matrices, 0.0);
        println!(
            "{noise:?}: {} wrong, {} right, {} alarms of {matrices}",
            found[0], found[1], found[2]
        );
        // 2.4 are 1 % of all changes, with a standard deviation of 1.6.
        assert!(found[0] <= 7, "{noise:?}: {found:?}");
        assert!(
            20 * found[1] >= 19 * matrices * CELLS / 4,
            "{noise:?}: {found:?}"
        );
        (wrong, right, alarms) = (wrong + found[0], right + found[1], alarms + found[2]);
    }
    assert!(100 * wrong <= wrong + right, "{wrong} wrong, {right} right");
    assert!(
        100 * alarms <= Noise::ALL.len() * matrices,
        "{alarms} alarms"
    );
}

/// With a gate's limit of 5 %, there are none at all here.
#[test]
fn a_gate_makes_no_false_discoveries() {
    for noise in Noise::ALL {
        let found = discoveries(noise, 20, 0.05);
        assert_eq!((found[0], found[2]), (0, 0), "{noise:?}");
        assert!(found[1] > 100, "{noise:?}: {} of 120", found[1]);
    }
}

/// With a limit of 5 %, changes below it are not called either, however certain they are.
#[test]
fn changes_within_the_limit_are_no_regressions() {
    for noise in Noise::ALL {
        let mut random = Random::new(5);
        let found = (0..40).flat_map(|_| calls(noise, 14, &[0.955; CELLS], 0.05, &mut random));
        let called = found.filter(|call| *call == Call::Worse).count();
        assert!(called <= 2, "{noise:?}: {called} of 960");
    }
}

/// A slow-down of 10 % in one cell is found in 95 %, one of 5 % in 80 %, with as many repeats as the noise of that
/// matrix takes, by its own measurement.
#[test]
fn what_is_to_be_found_is_found_with_the_repeats_that_are_advised() {
    for (effect, share, least) in [(0.10, 0.05, 95), (0.05, 0.0, 80)] {
        for noise_kind in [
            Noise::Normal,
            Noise::Skewed,
            Noise::TwoModes,
            Noise::Autocorrelated,
        ] {
            let mut random = Random::new(23);
            let limit = Limit::of_share(share, true);
            let pilot = interleaved(noise_kind, 60, 1.0, &mut random);
            let pilot = Shift::of(&Sample::Interleaved(&pilot), CELLS).unwrap();
            let repeats = repeats_for(
                1.0 / (1.0 - effect),
                noise(&pilot).unwrap(),
                CELLS,
                limit.factor,
            );
            let repeats = repeats.unwrap();
            let mut truths = [1.0; CELLS];
            truths[3] = 1.0 - effect;
            let trials = 40;
            let found = (0..trials)
                .filter(|_| {
                    calls(noise_kind, repeats, &truths, share, &mut random)[3] == Call::Worse
                })
                .count();
            println!("{effect} {noise_kind:?}: {found} of {trials} with {repeats} repeats");
            assert!(
                100 * found >= least * trials,
                "{effect} {noise_kind:?}: {found} with {repeats}"
            );
        }
    }
}

/// The truth is in the interval as often as it says.
#[test]
fn intervals_hold_as_often_as_they_say() {
    for noise in Noise::ALL {
        let mut random = Random::new(3);
        let trials = 300;
        let outside = (0..trials).filter(|_| {
            let pairs = interleaved(noise, 12, 0.9, &mut random);
            let shift = Shift::of(&Sample::Interleaved(&pairs), 1).unwrap();
            let (low, high) = shift.interval.unwrap();
            low > 0.9 || high < 0.9
        });
        // 1 % of 300 is 3, with a standard deviation of 1.7.
        let outside = outside.count();
        assert!(outside <= 9, "{noise:?}: {outside} of {trials}");
    }
}

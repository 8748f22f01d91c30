//! The requests of a job of a job file: patterns, lengths, offsets and flushes as fio has them, with
//! an end.
//!
//! Offsets of random patterns come from a permutation of the range, each block once per pass, unless
//! they may repeat or have a distribution. Sequential offsets go on per direction and start again behind
//! the last block. Memory: a few hundred bytes, whatever the range is.

#![forbid(unsafe_code)]

use crypt_core::request::Op;

use super::cursor::Move;
use super::files::Files;
use super::{Mix, Random, Run, Script, Step};

/// The requests of one thread.
#[derive(Clone, Debug)]
pub struct Stream {
    script: Script,
    mix: Mix,
    files: Files,
    random: Random,
    /// Requests left to the next random offset.
    run_left: u64,
    unflushed: u64,
    bytes: u64,
    ios: u64,
}

impl Stream {
    /// The stream of this seed.
    #[must_use]
    pub fn new(script: Script, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            mix: Mix::of(
                script.rw,
                script.rwmixread_percent,
                Random::new(random.next()),
            ),
            files: Files::new(&script, &mut random),
            random,
            run_left: 0,
            unflushed: 0,
            bytes: 0,
            ios: 0,
            script,
        }
    }

    /// Counts bytes and requests from here on: what came before was a warm-up.
    pub fn restart_count(&mut self) {
        (self.bytes, self.ios) = (0, 0);
    }

    /// The same requests from here on, without an end.
    #[must_use]
    pub fn endless(mut self) -> Self {
        (self.script.total_bytes, self.script.total_ios) = (None, None);
        self
    }

    /// The next request; `None` at the end.
    #[inline(always)]
    pub fn next_step(&mut self) -> Option<Step> {
        if self.script.flush_every > 0 && self.unflushed >= self.script.flush_every {
            self.unflushed = 0;
            return Some(Step {
                op: Op::Flush,
                offset_bytes: 0,
                len_bytes: 0,
            });
        }
        let ended = |count: u64, total: Option<u64>| total.is_some_and(|total| count >= total);
        if ended(self.bytes, self.script.total_bytes) || ended(self.ios, self.script.total_ios) {
            return None;
        }
        let write = self.mix.next_is_write();
        let direction = usize::from(write);
        let len_bytes = self.script.lengths[direction].draw(&mut self.random);
        let how = self.next_move(direction);
        let offset_bytes = self.files.next_offset(direction, len_bytes, how);
        self.unflushed += direction as u64;
        self.bytes += len_bytes;
        self.ios += 1;
        Some(Step {
            op: if write { Op::Write } else { Op::Read },
            offset_bytes,
            len_bytes,
        })
    }

    fn next_move(&mut self, direction: usize) -> Move {
        if !self.script.rw.is_random() {
            return Move::On;
        }
        if self.run_left > 0 {
            self.run_left -= 1;
            return match self.script.run {
                Run::Sequential => Move::On,
                Run::Identical => Move::Stay,
            };
        }
        let percent = u32::from(self.script.random_percent[direction]);
        if percent < 100 && self.random.below(100) >= percent {
            return Move::On;
        }
        self.run_left = self.script.run_ios.saturating_sub(1);
        Move::Jump
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Lengths, Span, Spread, Strides, Zone, ZoneSize};
    use crate::result::Rw;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn script(rw: Rw) -> Script {
        Script {
            spans: vec![Span {
                start_bytes: 8192,
                len_bytes: 64 * 4096,
            }],
            total_bytes: Some(64 * 4096),
            ..crate::testing::script(rw)
        }
    }

    fn steps(script: &Script) -> Vec<Step> {
        let mut stream = Stream::new(script.clone(), 7);
        std::iter::from_fn(|| stream.next_step())
            .take(10_000)
            .collect()
    }

    #[test]
    fn a_pass_touches_each_block_once_and_ends() {
        for rw in [Rw::Read, Rw::RandRead, Rw::RandWrite, Rw::RandRw] {
            let offsets: HashSet<u64> = steps(&script(rw))
                .iter()
                .map(|step| step.offset_bytes)
                .collect();
            let expected: HashSet<u64> = (0..64).map(|block| 8192 + block * 4096).collect();
            assert_eq!(offsets, expected, "{rw:?}");
        }
    }

    #[test]
    fn directions_of_a_sequential_mix_go_on_by_themselves() {
        let steps = steps(&script(Rw::ReadWrite));
        for op in [Op::Read, Op::Write] {
            let offsets = steps
                .iter()
                .filter(|step| step.op == op)
                .map(|step| step.offset_bytes);
            assert!(
                offsets
                    .enumerate()
                    .all(|(n, offset)| offset == 8192 + 4096 * n as u64)
            );
        }
    }

    #[test]
    fn flushes_come_after_so_many_writes() {
        let steps = steps(&Script {
            flush_every: 4,
            ..script(Rw::Write)
        });
        let ops: Vec<bool> = steps.iter().map(|step| step.op == Op::Flush).collect();
        assert_eq!(
            ops[..10],
            [
                false, false, false, false, true, false, false, false, false, true
            ]
        );
        assert_eq!(ops.iter().filter(|flush| **flush).count(), 16);
    }

    #[test]
    fn runs_gaps_and_limits() {
        let run = steps(&Script {
            run_ios: 4,
            ..script(Rw::RandRead)
        });
        let follows = |pair: &[Step]| pair[1].offset_bytes == pair[0].offset_bytes + 4096;
        assert!(run.windows(2).filter(|pair| follows(pair)).count() >= 40);
        let gaps = steps(&Script {
            step_bytes: 4096,
            total_ios: Some(3),
            ..script(Rw::Read)
        });
        let offsets: Vec<u64> = gaps.iter().map(|step| step.offset_bytes).collect();
        assert_eq!(offsets, [8192, 16384, 24576]);
        let half = steps(&Script {
            random_percent: [50, 50],
            total_bytes: None,
            ..script(Rw::RandRead)
        });
        let share = half.windows(2).filter(|pair| follows(pair)).count();
        assert!((4500..5600).contains(&share), "{share}");
    }

    #[test]
    fn a_warm_up_does_not_count() {
        let mut stream = Stream::new(script(Rw::RandRead), 1);
        for _ in 0..10 {
            stream.next_step();
        }
        stream.restart_count();
        assert_eq!(std::iter::from_fn(|| stream.next_step()).count(), 64);
    }

    fn offsets_kib(script: Script) -> Vec<u64> {
        let script = Script {
            spans: vec![Span {
                start_bytes: 0,
                len_bytes: 100 << 10,
            }],
            ..script
        };
        let steps = steps(&script);
        steps.iter().map(|step| step.offset_bytes >> 10).collect()
    }

    /// What fio 3.33 does with a file of 100k (`--debug=io`).
    #[test]
    fn backward_and_strided_sequences_are_those_of_fio() {
        let backwards = offsets_kib(Script {
            step_bytes: -8192,
            ..script(Rw::Read)
        });
        assert_eq!(backwards[..6], [0, 92, 88, 84, 80, 76]);
        assert_eq!(backwards[22..27], [8, 4, 0, 92, 88]);
        let still = offsets_kib(Script {
            step_bytes: -4096,
            ..script(Rw::Read)
        });
        assert!(still.iter().all(|offset| *offset == 0));
        let strided = |transfer_kib: u64, zone_kib: u64, skip_kib: u64, rw| {
            offsets_kib(Script {
                strides: Some(Strides {
                    transfer_bytes: transfer_kib << 10,
                    zone_bytes: zone_kib << 10,
                    skip_bytes: skip_kib << 10,
                }),
                ..script(rw)
            })
        };
        let short = strided(8, 16, 4, Rw::Read);
        assert_eq!(short[..12], [0, 4, 20, 24, 40, 44, 60, 64, 80, 84, 0, 4]);
        let long = strided(16, 8, 4, Rw::Read);
        assert_eq!(long[..9], [0, 4, 0, 4, 12, 16, 12, 16, 24]);
        let random = strided(16, 16, 4, Rw::RandRead);
        for (zone, offsets) in random.chunks(4).take(10).enumerate() {
            let mut sorted = offsets.to_vec();
            sorted.sort_unstable();
            let start = zone as u64 % 5 * 20;
            assert_eq!(sorted, [start, start + 4, start + 8, start + 12]);
        }
    }

    #[test]
    fn runs_may_stay_at_an_offset() {
        let offsets = offsets_kib(Script {
            run_ios: 3,
            run: Run::Identical,
            ..script(Rw::RandRead)
        });
        let starts: HashSet<u64> = offsets.iter().step_by(3).copied().collect();
        assert_eq!(starts.len(), offsets.len().div_ceil(3));
        assert!(
            offsets
                .chunks(3)
                .all(|run| run.iter().all(|offset| *offset == run[0]))
        );
    }

    #[test]
    fn offsets_are_aligned_per_direction() {
        let aligned = |align_bytes, rw| {
            offsets_kib(Script {
                align_bytes,
                repeats: true,
                total_bytes: Some(8 << 20),
                ..script(rw)
            })
        };
        let finer = aligned([2048; 2], Rw::RandRead);
        assert!(finer.iter().any(|offset| offset % 4 == 2) && finer.contains(&96));
        assert!(finer.iter().all(|offset| *offset <= 96 && offset % 2 == 0));
        let coarser = aligned([8192; 2], Rw::RandWrite);
        assert!(
            coarser
                .iter()
                .all(|offset| *offset <= 88 && offset % 8 == 0)
        );
        let sequential = aligned([8192; 2], Rw::Read);
        assert_eq!(sequential[..3], [0, 4, 8]);
        let mixed = steps(&Script {
            lengths: [Lengths::Fixed(4096), Lengths::Fixed(16384)],
            align_bytes: [4096, 16384],
            spans: vec![Span {
                start_bytes: 0,
                len_bytes: 64 * 4096,
            }],
            ..script(Rw::RandRw)
        });
        for step in mixed {
            assert!(step.offset_bytes.is_multiple_of(step.len_bytes));
        }
    }

    fn any_spread() -> impl Strategy<Value = Spread> {
        let center = || proptest::option::of(0.0..=1.0);
        let zone = |share_percent, percent| Zone {
            share_percent,
            size: ZoneSize::Percent(percent),
        };
        let zones: Box<[Zone]> = [zone(10, 50), zone(90, 50)].into();
        prop_oneof![
            Just(Spread::Even),
            (0.0..3.0, center()).prop_map(|(theta, center)| Spread::Zipf { theta, center }),
            (0.01..0.99, center()).prop_map(|(h, center)| Spread::Pareto { h, center }),
            (0.0..99.0, center()).prop_map(|(width_percent, center)| Spread::Normal {
                width_percent,
                center
            }),
            Just(Spread::Zones([Some(zones), None])),
        ]
    }

    proptest! {
        #[test]
        fn every_request_is_inside_the_range(
            rw in proptest::sample::select(Rw::ALL.to_vec()), units in 64_u64..300, tail in 0_u64..512,
            repeats: bool, run_ios in 1_u64..4, step in -40_i64..40, seed: u64,
            spread in any_spread(), identical: bool, strided: bool, skip in 0_u64..9,
        ) {
            let script = Script {
                lengths: [
                    Lengths::Range { min: 512, max: 8192 },
                    Lengths::Split(vec![(1024, 50), (3072, 50)].into()),
                ],
                random_percent: [80, 20],
                repeats,
                run_ios,
                align_bytes: [512, 1024],
                step_bytes: step * 512,
                spread,
                run: if identical { Run::Identical } else { Run::Sequential },
                strides: strided.then_some(Strides {
                    transfer_bytes: 6000,
                    zone_bytes: 9000,
                    skip_bytes: skip * 512,
                }),
                spans: vec![Span {
                    start_bytes: 8192,
                    len_bytes: units * 512 + tail,
                }],
                total_bytes: Some(1 << 20),
                ..script(rw)
            };
            let (start, end) = (8192, 8192 + script.spans[0].len_bytes);
            let mut stream = Stream::new(script, seed);
            let mut bytes = 0;
            while let Some(step) = stream.next_step() {
                prop_assert!(step.offset_bytes >= start && step.offset_bytes + step.len_bytes <= end);
                prop_assert!(strided || step.offset_bytes.is_multiple_of(512) && step.len_bytes.is_multiple_of(512));
                bytes += step.len_bytes;
            }
            prop_assert!((1 << 20..(1 << 20) + 8192).contains(&bytes));
        }
    }
}

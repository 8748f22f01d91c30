//! The requests of a job of a job file: patterns, lengths, offsets and flushes as fio has them, with
//! an end.
//!
//! Offsets of random patterns come from a permutation of the range, each block once per pass, unless
//! they may repeat. Sequential offsets go on per direction and start again behind the last block.

#![forbid(unsafe_code)]

use crypt_core::request::Op;

use super::{Lengths, Mix, Order, Random};
use crate::result::Rw;

/// What a stream is made of. All sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Direction and order.
    pub rw: Rw,
    /// Share of reads of a mix.
    pub rwmixread_percent: u8,
    /// Lengths of reads and of writes.
    pub lengths: [Lengths; 2],
    /// Share of random offsets of reads and of writes.
    pub random_percent: [u8; 2],
    /// Random offsets may repeat within a pass.
    pub repeats: bool,
    /// Random patterns: requests in sequence from each random offset, at least 1.
    pub run_ios: u64,
    /// Sequential patterns: bytes left out behind each request.
    pub gap_bytes: u64,
    /// First byte of the range.
    pub start_bytes: u64,
    /// Length of the range, at least the largest length.
    pub len_bytes: u64,
    /// Bytes to transfer; `None` for no end.
    pub total_bytes: Option<u64>,
    /// Requests to make; `None` for no end.
    pub total_ios: Option<u64>,
    /// Writes after which a flush comes; 0 for none.
    pub flush_every: u64,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// [`Op::Read`], [`Op::Write`] or [`Op::Flush`].
    pub op: Op,
    /// First byte.
    pub offset_bytes: u64,
    /// Length; 0 for a flush.
    pub len_bytes: u64,
}

/// The requests of one thread.
#[derive(Clone, Debug)]
pub struct Stream {
    script: Script,
    mix: Mix,
    order: Order,
    random: Random,
    unit_bytes: u64,
    blocks: u64,
    /// Next sequential offsets of reads and writes, from the start of the range.
    next_bytes: [u64; 2],
    /// Requests left in sequence from the last random offset.
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
        let used = |write: bool| {
            let used = if write {
                script.rw.writes()
            } else {
                script.rw.reads()
            };
            used.then(|| script.lengths[usize::from(write)].smallest())
        };
        let unit_bytes = used(false)
            .into_iter()
            .chain(used(true))
            .min()
            .unwrap_or(1)
            .max(1);
        let blocks = (script.len_bytes / unit_bytes).max(1);
        Self {
            mix: Mix::of(
                script.rw,
                script.rwmixread_percent,
                Random::new(random.next()),
            ),
            order: Order::random(blocks, random.next()),
            random,
            unit_bytes,
            blocks,
            next_bytes: [0; 2],
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

    /// The next request; `None` at the end.
    #[inline]
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
        let offset = self.next_offset(direction, len_bytes);
        self.next_bytes[direction] = offset + len_bytes + self.script.gap_bytes;
        self.unflushed += direction as u64;
        self.bytes += len_bytes;
        self.ios += 1;
        Some(Step {
            op: if write { Op::Write } else { Op::Read },
            offset_bytes: self.script.start_bytes + offset,
            len_bytes,
        })
    }

    /// Where it starts, from the start of the range.
    fn next_offset(&mut self, direction: usize, len_bytes: u64) -> u64 {
        let last = self.script.len_bytes.saturating_sub(len_bytes);
        if !self.jumps(direction) {
            let next = self.next_bytes[direction];
            return if next > last { 0 } else { next };
        }
        let block = if self.script.repeats {
            self.random.below_u64(self.blocks)
        } else {
            self.order.next_block()
        };
        // A long request at the end of the range begins earlier.
        let offset = (block * self.unit_bytes).min(last);
        offset - offset % self.unit_bytes
    }

    /// Whether the next request has a random offset.
    fn jumps(&mut self, direction: usize) -> bool {
        if !self.script.rw.is_random() {
            return false;
        }
        if self.run_left > 0 {
            self.run_left -= 1;
            return false;
        }
        let percent = u32::from(self.script.random_percent[direction]);
        if percent < 100 && self.random.below(100) >= percent {
            return false;
        }
        self.run_left = self.script.run_ios.saturating_sub(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn script(rw: Rw) -> Script {
        Script {
            start_bytes: 8192,
            len_bytes: 64 * 4096,
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
            gap_bytes: 4096,
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

    proptest! {
        #[test]
        fn every_request_is_inside_the_range(
            rw in proptest::sample::select(Rw::ALL.to_vec()), units in 64_u64..300, tail in 0_u64..512,
            repeats: bool, run_ios in 1_u64..4, gap in 0_u64..3, seed: u64,
        ) {
            let script = Script {
                lengths: [
                    Lengths::Range { min: 512, max: 8192 },
                    Lengths::Split(vec![(1024, 50), (3072, 50)].into()),
                ],
                random_percent: [80, 20],
                repeats,
                run_ios,
                gap_bytes: gap * 512,
                len_bytes: units * 512 + tail,
                total_bytes: Some(1 << 20),
                ..script(rw)
            };
            let (start, end) = (script.start_bytes, script.start_bytes + script.len_bytes);
            let mut stream = Stream::new(script, seed);
            let mut bytes = 0;
            while let Some(step) = stream.next_step() {
                prop_assert!(step.offset_bytes >= start && step.offset_bytes + step.len_bytes <= end);
                prop_assert!(step.offset_bytes.is_multiple_of(512) && step.len_bytes.is_multiple_of(512));
                bytes += step.len_bytes;
            }
            prop_assert!((1 << 20..(1 << 20) + 8192).contains(&bytes));
        }
    }
}

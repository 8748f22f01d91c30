//! Which requests a job makes: a pure, seeded stream of (direction, position).
//!
//! The same seed gives the same stream on every machine. Positions are multiples of the block size
//! inside the range; each pass over the range touches each block exactly once, in sequence or in
//! random order (fio's default, without its map: the order is computed, not remembered).

#![forbid(unsafe_code)]

mod blocks;
mod content;
mod cursor;
mod files;
#[cfg(test)]
mod fit;
mod lengths;
mod order;
mod random;
mod script;
mod spread;
mod stream;
mod zipf;

pub use blocks::Blocks;
pub use content::{BytePattern, Content, Each, Filler};
pub use lengths::Lengths;
pub use order::Order;
pub use random::Random;
pub use script::{Run, Script, Service, ServiceOrder, Span, Step, Strides};
pub use spread::{Spread, Zone, ZoneSize};
pub use stream::Stream;

use crate::result::Rw;

/// What to generate. All sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Direction and order.
    pub rw: Rw,
    /// Share of reads of the mixed patterns.
    pub rwmixread_percent: u8,
    /// Lengths of the requests.
    pub blocks: Blocks,
    /// Length of the range, at least the longest request; a partial block at its end is never touched
    /// where all requests are alike.
    pub size_bytes: u64,
}

/// One request to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Whether it writes.
    pub write: bool,
    /// Where it starts, in bytes from the start of the range.
    pub offset_bytes: u64,
    /// Its length in bytes.
    pub len_bytes: u64,
}

/// The stream of one job. Endless; never allocates.
#[derive(Clone, Debug)]
pub struct Generator {
    order: Order,
    mix: Mix,
    unit_bytes: u64,
    varied: Option<Box<Varied>>,
}

/// What requests of several lengths need.
#[derive(Clone, Debug)]
struct Varied {
    blocks: Blocks,
    size_bytes: u64,
    random: Random,
    /// Where the next sequential request starts.
    next_bytes: Option<u64>,
}

impl Generator {
    /// The stream of job number `job` of `jobs`. Sequential jobs start evenly spread over the range,
    /// random ones have an order of their own.
    #[must_use]
    pub fn new(workload: &Workload, seed: u64, job: u32, jobs: u32) -> Self {
        let mut random = Random::new(seed ^ u64::from(job).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let unit_bytes = workload.blocks.smallest(workload.rw).max(1);
        let blocks = (workload.size_bytes / unit_bytes).max(1);
        let order = if workload.rw.is_random() {
            Order::random(blocks, random.next())
        } else {
            let start = u128::from(blocks) * u128::from(job) / u128::from(jobs.max(1));
            Order::sequential(blocks, start as u64)
        };
        let varied = workload
            .blocks
            .only(workload.rw)
            .is_none()
            .then(|| Box::new(Varied::new(workload, &order, Random::new(random.next()))));
        Self {
            order,
            mix: Mix::of(workload.rw, workload.rwmixread_percent, random),
            unit_bytes,
            varied,
        }
    }

    /// The next request.
    #[inline]
    pub fn next_io(&mut self) -> Io {
        let write = self.mix.next_is_write();
        match &mut self.varied {
            None => Io {
                write,
                offset_bytes: self.order.next_block() * self.unit_bytes,
                len_bytes: self.unit_bytes,
            },
            Some(varied) => varied.next_io(write, &mut self.order, self.unit_bytes),
        }
    }
}

impl Varied {
    fn new(workload: &Workload, order: &Order, random: Random) -> Self {
        let unit_bytes = workload.blocks.smallest(workload.rw);
        Self {
            blocks: workload.blocks.clone(),
            size_bytes: workload.size_bytes,
            random,
            next_bytes: match order {
                Order::Sequential { next, .. } => Some(next * unit_bytes),
                Order::Random { .. } => None,
            },
        }
    }

    /// Sequential requests follow each other and start again at the beginning where the range ends; random
    /// ones start at a block of the shortest length, and begin earlier where they would reach beyond the end.
    fn next_io(&mut self, write: bool, order: &mut Order, unit_bytes: u64) -> Io {
        let len_bytes = self.blocks.lengths(write).draw(&mut self.random);
        let last = self.size_bytes.saturating_sub(len_bytes);
        let offset_bytes = match self.next_bytes {
            Some(next) if next > last => 0,
            Some(next) => next,
            None => {
                let offset = (order.next_block() * unit_bytes).min(last);
                offset - offset % unit_bytes
            }
        };
        self.next_bytes = self.next_bytes.map(|_| offset_bytes + len_bytes);
        Io {
            write,
            offset_bytes,
            len_bytes,
        }
    }
}

/// Requests after which the mix is exact.
const MIX_PERIOD: u32 = 100;

/// Which requests write: in random order, but exactly the share asked for in each hundred (selection
/// sampling, Knuth's algorithm S), so that a short run has its mix too.
#[derive(Clone, Debug)]
enum Mix {
    Reads,
    Writes,
    Mixed {
        reads_per_period: u32,
        reads_left: u32,
        left: u32,
        random: Random,
    },
}

impl Mix {
    fn of(rw: Rw, rwmixread_percent: u8, random: Random) -> Self {
        if !rw.writes() {
            return Self::Reads;
        }
        if !rw.reads() {
            return Self::Writes;
        }
        Self::Mixed {
            reads_per_period: u32::from(rwmixread_percent.min(100)),
            reads_left: 0,
            left: 0,
            random,
        }
    }

    #[inline]
    fn next_is_write(&mut self) -> bool {
        match self {
            Self::Reads => false,
            Self::Writes => true,
            Self::Mixed {
                reads_per_period,
                reads_left,
                left,
                random,
            } => {
                if *left == 0 {
                    (*left, *reads_left) = (MIX_PERIOD, *reads_per_period);
                }
                let read = random.below(*left) < *reads_left;
                *left -= 1;
                *reads_left -= u32::from(read);
                !read
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn workload(rw: Rw, percent: u8, block_size_bytes: u64, size_bytes: u64) -> Workload {
        Workload {
            rw,
            rwmixread_percent: percent,
            blocks: Blocks::fixed(block_size_bytes),
            size_bytes,
        }
    }

    fn any_rw() -> impl Strategy<Value = Rw> {
        proptest::sample::select(Rw::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn each_pass_touches_each_block_exactly_once(
            rw in any_rw(), blocks in 1_u64..700, tail in 0_u64..4096, seed: u64,
            job in 0_u32..4,
        ) {
            let workload = workload(rw, 50, 4096, blocks * 4096 + tail);
            let mut generator = Generator::new(&workload, seed, job, 4);
            for _pass in 0..3 {
                let offsets: HashSet<u64> =
                    (0..blocks).map(|_| generator.next_io().offset_bytes).collect();
                let expected: HashSet<u64> = (0..blocks).map(|block| block * 4096).collect();
                prop_assert_eq!(offsets, expected);
            }
        }

        #[test]
        fn every_hundred_requests_have_the_mix(percent in 0_u8..=100, seed: u64) {
            let workload = workload(Rw::RandRw, percent, 512, 1 << 20);
            let mut generator = Generator::new(&workload, seed, 0, 1);
            for _period in 0..3 {
                let reads = (0..100).filter(|_| !generator.next_io().write).count();
                prop_assert_eq!(reads, usize::from(percent));
            }
        }

        #[test]
        fn the_same_seed_gives_the_same_stream(rw in any_rw(), seed: u64) {
            let workload = workload(rw, 70, 4096, 1 << 20);
            let stream = |seed| {
                let mut generator = Generator::new(&workload, seed, 1, 2);
                (0..300).map(|_| generator.next_io()).collect::<Vec<_>>()
            };
            prop_assert_eq!(stream(seed), stream(seed));
            if rw.is_random() {
                prop_assert_ne!(stream(seed), stream(seed ^ 1));
            }
        }
    }

    #[test]
    fn random_order_has_few_neighbours() {
        for blocks in [1000_u64, 4096, 5000, 1 << 16] {
            let workload = workload(Rw::RandRead, 100, 1, blocks);
            let mut generator = Generator::new(&workload, 42, 0, 1);
            let order: Vec<u64> = (0..blocks)
                .map(|_| generator.next_io().offset_bytes)
                .collect();
            let close = order
                .windows(2)
                .filter(|pair| pair[0].abs_diff(pair[1]) <= blocks / 100)
                .count() as u64;
            // A random order has about 2 % of its steps within 1 % of the range.
            assert!(close < blocks * 4 / 100, "{close} of {blocks}");
            let rising = order.windows(2).filter(|pair| pair[0] < pair[1]).count() as u64;
            assert!(
                rising.abs_diff(blocks / 2) < blocks / 20,
                "{rising} of {blocks}"
            );
        }
    }

    #[test]
    fn sequential_jobs_start_spread_over_the_range() {
        let workload = workload(Rw::Read, 100, 4096, 4096 * 100);
        let starts: Vec<u64> = (0..4)
            .map(|job| Generator::new(&workload, 1, job, 4).next_io().offset_bytes / 4096)
            .collect();
        assert_eq!(starts, [0, 25, 50, 75]);
    }
}

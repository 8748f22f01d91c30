//! The order in which blocks are visited: in sequence, or a random permutation of each pass.
//!
//! The permutation is computed, not stored: a keyed bijection on the next power of two - odd
//! multiplications and shifted exclusive-ors, each invertible - walked along its cycle until it
//! lands inside the range (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). The
//! range is at least half of the power of two, so a step takes two rounds on average at worst.

#![forbid(unsafe_code)]

use super::random::Random;

/// An endless order of blocks.
#[derive(Clone, Debug)]
pub enum Order {
    /// 0, 1, 2, ... from some start, around the end.
    Sequential {
        /// Blocks in the range.
        blocks: u64,
        /// Next block.
        next: u64,
    },
    /// A new permutation for each pass.
    Random {
        /// Blocks in the range.
        blocks: u64,
        /// Position in the pass.
        position: u64,
        /// This pass's permutation.
        permutation: Permutation,
        /// Where the next pass's keys come from.
        random: Random,
    },
}

impl Order {
    /// In sequence from `start`, which is below `blocks`.
    #[must_use]
    pub const fn sequential(blocks: u64, start: u64) -> Self {
        Self::Sequential {
            blocks,
            next: start,
        }
    }

    /// In random order; `blocks` is at least 1.
    #[must_use]
    pub fn random(blocks: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self::Random {
            blocks,
            position: 0,
            permutation: Permutation::new(blocks, &mut random),
            random,
        }
    }

    /// Begins a new pass.
    pub fn restart(&mut self) {
        match self {
            Self::Sequential { next, .. } => *next = 0,
            Self::Random {
                blocks, position, ..
            } => *position = *blocks,
        }
    }

    /// The next block.
    #[inline]
    pub fn next_block(&mut self) -> u64 {
        match self {
            Self::Sequential { blocks, next } => {
                let block = *next;
                *next = if block + 1 == *blocks { 0 } else { block + 1 };
                block
            }
            Self::Random {
                blocks,
                position,
                permutation,
                random,
            } => {
                if *position == *blocks {
                    *position = 0;
                    *permutation = Permutation::new(*blocks, random);
                }
                let block = permutation.apply(*position);
                *position += 1;
                block
            }
        }
    }
}

/// A keyed permutation of `0..blocks`.
#[derive(Clone, Debug)]
pub struct Permutation {
    blocks: u64,
    mask: u64,
    shift: u32,
    add: u64,
    multipliers: [u64; 3],
}

impl Permutation {
    /// A random one of `0..blocks`.
    pub(super) fn new(blocks: u64, random: &mut Random) -> Self {
        let bits = (u64::BITS - blocks.saturating_sub(1).leading_zeros()).max(1);
        Self {
            blocks,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: (bits / 2).max(1),
            add: random.next(),
            multipliers: [(); 3].map(|()| random.next() | 1),
        }
    }

    /// What `position`, below `blocks`, becomes.
    #[inline]
    pub(super) fn apply(&self, position: u64) -> u64 {
        let mut block = position;
        loop {
            block = block.wrapping_add(self.add) & self.mask;
            for multiplier in self.multipliers {
                block = block.wrapping_mul(multiplier) & self.mask;
                block ^= block >> self.shift;
            }
            if block < self.blocks {
                return block;
            }
        }
    }
}

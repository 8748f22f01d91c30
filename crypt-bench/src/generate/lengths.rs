//! Lengths of requests: one, evenly from a range, or from a weighted list.

#![forbid(unsafe_code)]

use super::random::Random;

/// Which lengths requests have, in bytes, all over 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// All the same.
    Fixed(u64),
    /// Multiples of the smallest up to the largest, all alike.
    Range {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Lengths with weights that add up to 100.
    Split(Box<[(u64, u8)]>),
}

impl Lengths {
    /// The smallest.
    #[must_use]
    pub fn smallest(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, .. } => *min,
            Self::Split(parts) => parts.iter().map(|part| part.0).min().unwrap_or(1),
        }
    }

    /// The largest.
    #[must_use]
    pub fn largest(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, max } => max - max % min.max(&1),
            Self::Split(parts) => parts.iter().map(|part| part.0).max().unwrap_or(1),
        }
    }

    /// Whether all lengths are multiples of `unit`.
    #[must_use]
    pub fn are_multiples_of(&self, unit: u64) -> bool {
        match self {
            Self::Fixed(bytes) => bytes.is_multiple_of(unit),
            Self::Range { min, .. } => min.is_multiple_of(unit),
            Self::Split(parts) => parts.iter().all(|part| part.0.is_multiple_of(unit)),
        }
    }

    /// The next length.
    #[inline]
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, max } => min * (1 + random.below_u64(max / min.max(&1))),
            Self::Split(parts) => {
                let mut left = random.below(100);
                for (bytes, weight) in parts {
                    match left.checked_sub(u32::from(*weight)) {
                        Some(rest) => left = rest,
                        None => return *bytes,
                    }
                }
                self.largest()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_from_the_range_and_reach_its_ends() {
        let lengths = Lengths::Range {
            min: 4096,
            max: 10_000,
        };
        assert_eq!((lengths.smallest(), lengths.largest()), (4096, 8192));
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| lengths.draw(&mut random)).collect();
        let small = drawn.iter().filter(|&&bytes| bytes == 4096).count();
        assert!((400..600).contains(&small), "{small}");
        assert!(drawn.iter().all(|bytes| [4096, 8192].contains(bytes)));
    }

    #[test]
    fn splits_have_their_weights() {
        let lengths = Lengths::Split(vec![(512, 10), (4096, 90)].into());
        assert!(lengths.are_multiples_of(512) && !lengths.are_multiples_of(4096));
        let mut random = Random::new(7);
        let small = (0..10_000).filter(|_| lengths.draw(&mut random) == 512);
        let small = small.count();
        assert!((850..1150).contains(&small), "{small}");
    }
}

//! How random offsets are distributed over blocks: evenly, by fio's Zipf, Pareto and normal
//! distributions of ranks, or by zones.
//!
//! A [`Sampler`] holds a few numbers and one permutation, whatever the number of blocks is: no map, no
//! table of weights. Ranks (0 is the most frequent one of Zipf and Pareto) are scattered over the blocks
//! by the permutation, so that no two ranks share a block.

#![forbid(unsafe_code)]

use super::order::Permutation;
use super::random::Random;
use super::zipf::Zipf;

/// Numbers whose mean makes a normal rank.
const NORMAL_TERMS: u32 = 12;

/// How random offsets are distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// All blocks alike.
    Even,
    /// Rank k, from 1, has a share of `1 / k^theta`.
    Zipf {
        /// Not negative.
        theta: f64,
        /// Where the most frequent block is, from 0 to 1 of the range; random without.
        center: Option<f64>,
    },
    /// The first part x of the ranks has a share of `x^(ln(1-h) / ln h)`: with 0.2, a fifth has four
    /// fifths.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// As for Zipf.
        center: Option<f64>,
    },
    /// Ranks around the middle: the mean of twelve even ones, moved by an even one of this width.
    Normal {
        /// In percent of the blocks, from 0, below 100.
        width_percent: f64,
        /// Where the block of the middle rank is, from 0 to 1 of the range; the middle without.
        center: Option<f64>,
    },
    /// Zones one after the other from the start of the range, of reads and of writes; `None` for all
    /// blocks alike.
    Zones([Option<Box<[Zone]>>; 2]),
}

/// A zone of [`Spread::Zones`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its share of the requests; the shares of all zones add up to 100.
    pub share_percent: u8,
    /// Its size.
    pub size: ZoneSize,
}

/// Size of a [`Zone`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSize {
    /// Percent of the range.
    Percent(u8),
    /// Bytes.
    Bytes(u64),
}

/// Draws blocks from `0..blocks`. Memory: constant, and 24 bytes per zone.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    blocks: u64,
    /// `None` where all blocks are alike.
    law: Option<Law>,
}

#[derive(Clone, Debug)]
enum Law {
    Zipf(Zipf, Scatter),
    Pareto(f64, Scatter),
    Normal(u64, Scatter),
    Zones([Box<[Blocks]>; 2]),
}

/// A zone in blocks.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    share_percent: u32,
    first: u64,
    count: u64,
}

impl Sampler {
    /// Of `blocks` blocks of `unit_bytes` bytes, both at least 1.
    pub(super) fn new(spread: &Spread, blocks: u64, unit_bytes: u64, random: &mut Random) -> Self {
        let law = match spread {
            Spread::Even => return Self { blocks, law: None },
            Spread::Zipf { theta, center } => Law::Zipf(
                Zipf::new(blocks, *theta),
                Scatter::new(blocks, 0, *center, random),
            ),
            Spread::Pareto { h, center } => Law::Pareto(
                h.ln() / (1.0 - h).ln(),
                Scatter::new(blocks, 0, *center, random),
            ),
            Spread::Normal {
                width_percent,
                center,
            } => {
                let width = (blocks as f64 * width_percent / 100.0).ceil() as u64;
                let center = center.unwrap_or(0.5);
                Law::Normal(
                    width.min(blocks / 2),
                    Scatter::new(blocks, blocks / 2, Some(center), random),
                )
            }
            Spread::Zones(zones) => {
                Law::Zones([0, 1].map(|direction: usize| match &zones[direction] {
                    Some(zones) => in_blocks(zones, blocks, unit_bytes),
                    None => [Blocks::whole(blocks)].into(),
                }))
            }
        };
        Self {
            blocks,
            law: Some(law),
        }
    }

    /// A block for a read (0) or a write (1).
    #[inline]
    pub(super) fn draw(&self, direction: usize, random: &mut Random) -> u64 {
        match &self.law {
            None => random.below_u64(self.blocks),
            Some(law) => law.draw(self.blocks, direction, random),
        }
    }
}

impl Law {
    fn draw(&self, blocks: u64, direction: usize, random: &mut Random) -> u64 {
        match self {
            Self::Zipf(zipf, scatter) => scatter.block(zipf.draw(random)),
            Self::Pareto(power, scatter) => {
                let rank = blocks as f64 * random.unit().powf(*power);
                scatter.block((rank as u64).min(blocks - 1))
            }
            Self::Normal(width, scatter) => scatter.block(normal_rank(blocks, *width, random)),
            Self::Zones(zones) => {
                let zone = pick(&zones[direction], random);
                zone.first + random.below_u64(zone.count)
            }
        }
    }
}

impl Blocks {
    fn whole(count: u64) -> Self {
        Self {
            share_percent: 100,
            first: 0,
            count,
        }
    }
}

/// Percentages are cut to blocks as fio cuts them; a zone shorter than a block has one.
fn in_blocks(zones: &[Zone], blocks: u64, unit_bytes: u64) -> Box<[Blocks]> {
    let part = |percent: u64| (u128::from(blocks) * u128::from(percent) / 100) as u64;
    let (mut percent, mut bytes) = (0_u64, 0_u64);
    let in_blocks = zones.iter().map(|zone| {
        let (first, end) = match zone.size {
            ZoneSize::Percent(size) => {
                let first = part(percent);
                percent += u64::from(size);
                (first, first + part(u64::from(size)))
            }
            ZoneSize::Bytes(size) => {
                let first = bytes / unit_bytes;
                bytes = bytes.saturating_add(size);
                (first, bytes / unit_bytes)
            }
        };
        let first = first.min(blocks - 1);
        Blocks {
            share_percent: u32::from(zone.share_percent),
            first,
            count: end.min(blocks).saturating_sub(first).max(1),
        }
    });
    in_blocks.collect()
}

fn pick(zones: &[Blocks], random: &mut Random) -> Blocks {
    let mut left = random.below(100);
    for zone in zones {
        match left.checked_sub(zone.share_percent) {
            Some(rest) => left = rest,
            None => return *zone,
        }
    }
    // Shares add up to 100, so one was found.
    zones.last().copied().unwrap_or(Blocks::whole(1))
}

/// The mean of twelve even numbers below `blocks`, moved by up to half of `width`, less where that would
/// lead outside.
fn normal_rank(blocks: u64, width: u64, random: &mut Random) -> u64 {
    let halves = (0..NORMAL_TERMS / 2).map(|_| {
        let number = random.next();
        (number >> 32) + (number & u64::from(u32::MAX))
    });
    // Below 12 * 2^32.
    let sum: u64 = halves.sum();
    let rank = ((u128::from(sum) * u128::from(blocks) / u128::from(NORMAL_TERMS)) >> 32) as u64;
    if width == 0 {
        return rank;
    }
    let mut shift = random.below_u64(width) as i64 - (width / 2) as i64;
    loop {
        match rank.checked_add_signed(shift) {
            Some(moved) if moved < blocks => return moved,
            _ => shift /= 2,
        }
    }
}

/// Where ranks are: a permutation, turned so that one rank is at a given place.
#[derive(Clone, Debug)]
struct Scatter {
    blocks: u64,
    permutation: Permutation,
    turn: u64,
}

impl Scatter {
    /// Rank `pole` goes to `center` of the range, to a random place without.
    fn new(blocks: u64, pole: u64, center: Option<f64>, random: &mut Random) -> Self {
        let permutation = Permutation::new(blocks, random);
        let turn = center.map_or(0, |center| {
            let wanted = ((blocks as f64 * center) as u64).min(blocks - 1);
            (wanted + blocks - permutation.apply(pole)) % blocks
        });
        Self {
            blocks,
            permutation,
            turn,
        }
    }

    #[inline]
    fn block(&self, rank: u64) -> u64 {
        let block = self.permutation.apply(rank) + self.turn;
        if block < self.blocks {
            block
        } else {
            block - self.blocks
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::fit::{self, fits};

    const BLOCKS: u64 = 1000;
    const DRAWS: usize = 200_000;

    fn counts(spread: &Spread, blocks: u64, direction: usize) -> Vec<u64> {
        let mut random = Random::new(11);
        let sampler = Sampler::new(spread, blocks, 4096, &mut random);
        let mut counts = vec![0; blocks as usize];
        for _ in 0..DRAWS {
            counts[sampler.draw(direction, &mut random) as usize] += 1;
        }
        counts
    }

    /// Counts by rank, which is what a law speaks of.
    fn rank_counts(spread: &Spread) -> Vec<u64> {
        let mut random = Random::new(5);
        let sampler = Sampler::new(spread, BLOCKS, 4096, &mut random);
        let Some(Law::Zipf(_, scatter) | Law::Pareto(_, scatter) | Law::Normal(_, scatter)) =
            sampler.law.clone()
        else {
            panic!("{spread:?} has no ranks");
        };
        let mut rank_of = vec![u64::MAX; BLOCKS as usize];
        for rank in 0..BLOCKS {
            let block = scatter.block(rank) as usize;
            assert_eq!(rank_of[block], u64::MAX, "two ranks at {block}");
            rank_of[block] = rank;
        }
        let mut counts = vec![0; BLOCKS as usize];
        for _ in 0..DRAWS {
            let block = sampler.draw(0, &mut random) as usize;
            counts[rank_of[block] as usize] += 1;
        }
        counts
    }

    #[test]
    fn even_offsets_fit_an_even_distribution() {
        let even = vec![1.0 / BLOCKS as f64; BLOCKS as usize];
        fits(&counts(&Spread::Even, BLOCKS, 0), &even);
    }

    #[test]
    fn zipf_ranks_have_zipf_shares() {
        for theta in [0.0, 0.6, 0.999_999, 1.000_001, 1.2, 3.0] {
            let spread = Spread::Zipf {
                theta,
                center: None,
            };
            let weights: Vec<f64> = (1..=BLOCKS)
                .map(|rank| (rank as f64).powf(-theta))
                .collect();
            fits(&rank_counts(&spread), &fit::normalized(&weights));
        }
    }

    #[test]
    fn pareto_ranks_have_pareto_shares() {
        for h in [0.1_f64, 0.2, 0.5, 0.9] {
            let exponent = (1.0 - h).ln() / h.ln();
            let below = |rank: u64| (rank as f64 / BLOCKS as f64).powf(exponent);
            let shares: Vec<f64> = (0..BLOCKS)
                .map(|rank| below(rank + 1) - below(rank))
                .collect();
            let spread = Spread::Pareto { h, center: None };
            fits(&rank_counts(&spread), &shares);
        }
    }

    #[test]
    fn normal_ranks_are_the_mean_of_twelve() {
        let spread = Spread::Normal {
            width_percent: 0.0,
            center: None,
        };
        let below = |rank: u64| fit::mean_of_evens_below(12, rank as f64 / BLOCKS as f64);
        let shares: Vec<f64> = (0..BLOCKS)
            .map(|rank| below(rank + 1) - below(rank))
            .collect();
        fits(&rank_counts(&spread), &shares);
    }

    #[test]
    fn a_width_makes_a_normal_distribution_wider() {
        let deviation = |width_percent: f64| {
            let counts = rank_counts(&Spread::Normal {
                width_percent,
                center: None,
            });
            let middle = BLOCKS as f64 / 2.0;
            let squares = counts.iter().enumerate().map(|(rank, count)| {
                let distance = rank as f64 + 0.5 - middle;
                *count as f64 * distance * distance
            });
            (squares.sum::<f64>() / DRAWS as f64).sqrt()
        };
        // A mean of twelve has n/12, an even width w has w/sqrt(12).
        let narrow = BLOCKS as f64 / 12.0;
        assert!((deviation(0.0) / narrow - 1.0).abs() < 0.02);
        let wide = (narrow.powi(2) + (BLOCKS as f64 * 0.3).powi(2) / 12.0).sqrt();
        assert!((deviation(30.0) / wide - 1.0).abs() < 0.03);
    }

    #[test]
    fn zones_have_their_shares_per_direction() {
        let zone = |share_percent, size| Zone {
            share_percent,
            size,
        };
        let percent = |share, size| zone(share, ZoneSize::Percent(size));
        let bytes = |share, blocks: u64| zone(share, ZoneSize::Bytes(blocks * 4096));
        let spread = Spread::Zones([
            Some([percent(60, 10), percent(30, 20), percent(10, 70)].into()),
            Some([bytes(5, 100), bytes(95, 50)].into()),
        ]);
        let mut reads = vec![0.6 / 100.0; 100];
        reads.extend(vec![0.3 / 200.0; 200]);
        reads.extend(vec![0.1 / 700.0; 700]);
        fits(&counts(&spread, BLOCKS, 0), &reads);
        let mut writes = vec![0.05 / 100.0; 100];
        writes.extend(vec![0.95 / 50.0; 50]);
        writes.resize(BLOCKS as usize, 0.0);
        fits(&counts(&spread, BLOCKS, 1), &writes);
        let even = vec![1.0 / BLOCKS as f64; BLOCKS as usize];
        fits(&counts(&Spread::Zones([None, None]), BLOCKS, 1), &even);
    }

    #[test]
    fn the_center_is_where_it_was_asked_for() {
        for (center, expected) in [(0.0, 0), (0.25, 250), (1.0, 999)] {
            for spread in [
                Spread::Zipf {
                    theta: 2.0,
                    center: Some(center),
                },
                Spread::Pareto {
                    h: 0.05,
                    center: Some(center),
                },
            ] {
                let counts = counts(&spread, BLOCKS, 0);
                let most = (0..counts.len()).max_by_key(|block| counts[*block]);
                assert_eq!(most, Some(expected), "{spread:?}");
            }
        }
    }

    #[test]
    fn few_blocks_are_enough_for_every_law() {
        let zones = [Zone {
            share_percent: 100,
            size: ZoneSize::Percent(1),
        }];
        for blocks in 1..4 {
            for spread in [
                Spread::Even,
                Spread::Zipf {
                    theta: 1.2,
                    center: Some(1.0),
                },
                Spread::Pareto {
                    h: 0.2,
                    center: None,
                },
                Spread::Normal {
                    width_percent: 99.0,
                    center: Some(1.0),
                },
                Spread::Zones([Some(zones.into()), None]),
            ] {
                let mut random = Random::new(blocks);
                let sampler = Sampler::new(&spread, blocks, 512, &mut random);
                assert!((0..1000).all(|_| sampler.draw(0, &mut random) < blocks));
            }
        }
    }
}

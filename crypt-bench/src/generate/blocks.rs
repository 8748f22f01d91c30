//! Lengths of reads and of writes, as text and as what a generator draws from.
//!
//! The notation is that of fio's `bs`, `bsrange` and `bssplit`: `4k`, `4k-64k`, `64k/60:1m/40`, and a comma
//! between reads and writes where they differ. It prints as it can be parsed again.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use super::Lengths;
use crate::definition::quantity::Size;
use crate::result::{CellParams, Rw};

/// Lengths of reads and of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    read: Lengths,
    write: Lengths,
}

impl Blocks {
    /// These lengths.
    #[must_use]
    pub fn new(read: Lengths, write: Lengths) -> Self {
        let [read, write] = [read, write].map(simplest);
        Self { read, write }
    }

    /// One length for all, at least 1.
    #[must_use]
    pub fn fixed(bytes: u64) -> Self {
        Self::new(Lengths::Fixed(bytes), Lengths::Fixed(bytes))
    }

    /// What a cell asks for.
    ///
    /// # Errors
    /// A text that is none of lengths; a matrix makes no such cell, an edited file can hold one.
    pub fn of_cell(cell: &CellParams) -> Result<Self, String> {
        match &cell.block_sizes {
            Some(text) => text.parse(),
            None => Ok(Self::fixed(cell.block_size_bytes)),
        }
    }

    /// The lengths of one direction.
    #[inline]
    #[must_use]
    pub fn lengths(&self, write: bool) -> &Lengths {
        if write { &self.write } else { &self.read }
    }

    /// The one length of all requests of a pattern; `None` where there are several.
    #[must_use]
    pub fn only(&self, rw: Rw) -> Option<u64> {
        let (smallest, largest) = (self.smallest(rw), self.largest(rw));
        (smallest == largest).then_some(smallest)
    }

    /// The shortest length of a pattern.
    #[must_use]
    pub fn smallest(&self, rw: Rw) -> u64 {
        self.used(rw).map(Lengths::smallest).min().unwrap_or(1)
    }

    /// The longest length of a pattern.
    #[must_use]
    pub fn largest(&self, rw: Rw) -> u64 {
        self.used(rw).map(Lengths::largest).max().unwrap_or(1)
    }

    /// Whether all lengths of a pattern are multiples of `unit`.
    #[must_use]
    pub fn are_multiples_of(&self, rw: Rw, unit: u64) -> bool {
        self.used(rw).all(|lengths| lengths.are_multiples_of(unit))
    }

    /// Mean length where this share of the requests, 0..=1, reads.
    #[must_use]
    pub fn mean(&self, read_share: f64) -> f64 {
        read_share * mean(&self.read) + (1.0 - read_share) * mean(&self.write)
    }

    fn used(&self, rw: Rw) -> impl Iterator<Item = &Lengths> {
        let read = rw.reads().then_some(&self.read);
        read.into_iter().chain(rw.writes().then_some(&self.write))
    }
}

/// One length where a range or a split has no other.
fn simplest(lengths: Lengths) -> Lengths {
    if lengths.smallest() == lengths.largest() {
        return Lengths::Fixed(lengths.smallest());
    }
    lengths
}

fn mean(lengths: &Lengths) -> f64 {
    match lengths {
        Lengths::Fixed(bytes) => *bytes as f64,
        Lengths::Range { min, .. } => (*min as f64 + lengths.largest() as f64) / 2.0,
        Lengths::Split(parts) => parts
            .iter()
            .map(|&(bytes, weight)| bytes as f64 * f64::from(weight) / 100.0)
            .sum(),
    }
}

impl FromStr for Blocks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let directions: Vec<&str> = text.split(',').collect();
        match directions[..] {
            [both] => {
                let both = lengths(both)?;
                Ok(Self::new(both.clone(), both))
            }
            [read, write] => Ok(Self::new(lengths(read)?, lengths(write)?)),
            _ => Err(format!(
                "`{text}`: write the lengths of reads, and after a comma those of writes"
            )),
        }
    }
}

fn lengths(text: &str) -> Result<Lengths, String> {
    let found = if text.contains('/') {
        split(text)?
    } else if let Some((min, max)) = text.split_once('-') {
        let (min, max): (Size, Size) = (min.parse()?, max.parse()?);
        Lengths::Range {
            min: min.0,
            max: max.0,
        }
    } else {
        Lengths::Fixed(text.parse::<Size>()?.0)
    };
    match (found.smallest(), found.largest()) {
        (0, _) => Err(format!("`{text}`: a request has at least one byte")),
        (smallest, largest) if smallest > largest => Err(format!(
            "`{text}`: the range goes from the shorter to the longer"
        )),
        _ => Ok(found),
    }
}

/// `size/percent:size/percent`.
fn split(text: &str) -> Result<Lengths, String> {
    let mut parts: Vec<(u64, u8)> = Vec::new();
    for item in text.split(':') {
        let bad = || format!("`{item}`: write a size and its share in percent, like 64k/60");
        let (size, percent) = item.split_once('/').ok_or_else(bad)?;
        let percent: u8 = percent.parse().map_err(|_| bad())?;
        parts.push((size.parse::<Size>()?.0, percent));
    }
    let total: u32 = parts.iter().map(|part| u32::from(part.1)).sum();
    if total != 100 {
        return Err(format!(
            "`{text}`: the shares add up to {total}, not to 100"
        ));
    }
    parts.retain(|part| part.1 > 0);
    Ok(Lengths::Split(parts.into()))
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_words(&self.read))?;
        if self.read == self.write {
            return Ok(());
        }
        write!(f, ",{}", in_words(&self.write))
    }
}

fn in_words(lengths: &Lengths) -> String {
    match lengths {
        Lengths::Fixed(bytes) => Size(*bytes).to_string(),
        Lengths::Range { min, max } => format!("{}-{}", Size(*min), Size(*max)),
        Lengths::Split(parts) => {
            let parts = parts.iter();
            let parts: Vec<String> = parts
                .map(|&(bytes, percent)| format!("{}/{percent}", Size(bytes)))
                .collect();
            parts.join(":")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Generator, Workload};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_print_as_they_were_written() {
        for text in [
            "4k",
            "4k-64k",
            "64k/60:1m/40,1m",
            "512,4k-8k",
            "64k/60:1m/40",
        ] {
            assert_eq!(text.parse::<Blocks>().unwrap().to_string(), text);
        }
        let same: Blocks = "4k-4k,4k/100".parse().unwrap();
        assert_eq!(same, Blocks::fixed(4096));
        assert_eq!(same.to_string(), "4k");
    }

    #[test]
    fn each_direction_has_its_lengths() {
        let blocks: Blocks = "64k/60:1m/40,2m".parse().unwrap();
        assert_eq!(blocks.smallest(Rw::RandRead), 64 << 10);
        assert_eq!(
            (blocks.largest(Rw::Read), blocks.largest(Rw::RandRw)),
            (1 << 20, 2 << 20)
        );
        assert_eq!(blocks.only(Rw::Write), Some(2 << 20));
        assert_eq!(blocks.only(Rw::ReadWrite), None);
        assert!(blocks.are_multiples_of(Rw::Write, 1 << 20));
        let mean_kib = blocks.mean(0.5) / 1024.0;
        assert!((mean_kib - (0.5 * (0.6 * 64.0 + 0.4 * 1024.0) + 1024.0)).abs() < 1e-9);
        let widest: Blocks = format!("1-{}", u64::MAX).parse().unwrap();
        assert!(widest.mean(0.5).is_finite());
        assert!(("4k-12k".parse::<Blocks>().unwrap().mean(1.0) - 8192.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_lengths_is_refused_with_advice() {
        for (text, advice) in [
            ("", "not a size"),
            ("4kb", "ambiguous"),
            ("64k/60:1m/30", "add up to 90"),
            ("64k/60:1m", "like 64k/60"),
            ("64k/300", "like 64k/60"),
            ("1m-4k", "from the shorter"),
            ("0", "at least one byte"),
            ("0-4k", "at least one byte"),
            ("4k,8k,16k", "after a comma those of writes"),
            ("99999999999999999999", "size"),
        ] {
            let message = text.parse::<Blocks>().unwrap_err();
            assert!(message.contains(advice), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn requests_of_several_lengths_stay_in_the_range_and_keep_their_shares(
            rw in proptest::sample::select(Rw::ALL.to_vec()), seed: u64, job in 0_u32..4,
        ) {
            let workload = Workload {
                rw,
                rwmixread_percent: 66,
                blocks: "4k/60:16k/40,8k".parse().unwrap(),
                size_bytes: (1 << 20) + 4096,
            };
            let mut generator = Generator::new(&workload, seed, job, 4);
            let (mut small, mut reads) = (0, 0);
            for _ in 0..2000 {
                let io = generator.next_io();
                prop_assert!(io.offset_bytes + io.len_bytes <= workload.size_bytes);
                prop_assert!(io.offset_bytes.is_multiple_of(4096));
                prop_assert!(!io.write || io.len_bytes == 8192);
                reads += u32::from(!io.write);
                small += u32::from(io.len_bytes == 4096);
            }
            if rw.reads() {
                let share = f64::from(small) / f64::from(reads);
                prop_assert!((0.5..0.7).contains(&share), "{}", share);
            }
        }
    }

    #[test]
    fn sequential_requests_of_several_lengths_follow_each_other() {
        let workload = Workload {
            rw: Rw::Read,
            rwmixread_percent: 100,
            blocks: "4k/50:8k/50".parse().unwrap(),
            size_bytes: 1 << 20,
        };
        let mut generator = Generator::new(&workload, 1, 1, 2);
        let mut next = 1 << 19;
        for _ in 0..50 {
            let io = generator.next_io();
            assert_eq!(io.offset_bytes, next);
            next += io.len_bytes;
        }
    }
}

//! Values of options: the grammar of each kind, and what comes out of it.
//!
//! fio's notation, without its guesses: what fio reads by its first letters or not at all is refused,
//! with what to write. Numbers are in [`number`], lists and patterns in [`list`].

#![forbid(unsafe_code)]

pub mod bytes;
pub mod list;
pub mod number;
mod spread;

pub use bytes::Piece;
pub use list::Pattern;
pub use number::{Share, Units};

use crate::generate::Spread;
use list::{cpus, directions, pattern, percentiles, range_or_size, ranges, splits};
use number::{amount, share, time_us};
use spread::spread;

/// One value per direction: read, write, trim. `None` leaves what was there before.
pub type PerDirection<T> = [Option<T>; 3];

/// The grammar of an option's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A path; several with `:` between them.
    Paths,
    /// Nothing, or the beginning of a file's name.
    Prefix,
    /// Nothing, or 0 or 1.
    Flag,
    /// 0 or 1.
    Bool,
    /// A number, with a suffix if wanted.
    Count {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A number of bytes.
    Size,
    /// A number of bytes or a range of them.
    SizeRange,
    /// A number of bytes, or a percentage.
    Share,
    /// A time; without a unit in seconds, or in microseconds.
    Time {
        /// Seconds.
        bare_seconds: bool,
    },
    /// A time or a range of times, without a unit in seconds.
    TimeRange,
    /// Up to three numbers of bytes: read, write, trim.
    Sizes,
    /// Up to three numbers.
    Counts {
        /// Largest.
        max: u64,
    },
    /// Up to three ranges of bytes.
    Ranges,
    /// Up to three lists of sizes with weights.
    Splits,
    /// A pattern of `rw`.
    Pattern,
    /// A list of CPUs.
    Cpus,
    /// Percentiles with `:` between them.
    Percentiles,
    /// How random offsets are distributed.
    Spread,
    /// A pattern of bytes.
    Bytes {
        /// With the offset of a request as `%o`.
        offsets: bool,
    },
    /// One of some words.
    Choice(&'static [&'static str]),
}

/// A value that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Text`], [`Kind::Paths`] and [`Kind::Choice`].
    Text(String),
    /// Of [`Kind::Prefix`]; `None` leaves what was there before, an empty one is that of no name.
    Prefix(Option<String>),
    /// Of [`Kind::Flag`] and [`Kind::Bool`].
    Flag(bool),
    /// Of [`Kind::Count`] and [`Kind::Size`].
    Number(u64),
    /// Of [`Kind::SizeRange`]: smallest and largest, in bytes.
    Range(u64, u64),
    /// Of [`Kind::Share`].
    Share(Share),
    /// Of [`Kind::Time`] and [`Kind::TimeRange`], in microseconds: from, to.
    TimeUs(u64, u64),
    /// Of [`Kind::Sizes`] and [`Kind::Counts`].
    Numbers(PerDirection<u64>),
    /// Of [`Kind::Ranges`]: smallest and largest, in bytes.
    Ranges(PerDirection<(u64, u64)>),
    /// Of [`Kind::Splits`]: sizes in bytes with weights that add up to 100.
    Splits(PerDirection<Vec<(u64, u8)>>),
    /// Of [`Kind::Pattern`].
    Pattern(Pattern),
    /// Of [`Kind::Cpus`].
    Cpus(Vec<u32>),
    /// Of [`Kind::Percentiles`].
    Percentiles(Vec<f64>),
    /// Of [`Kind::Spread`].
    Spread(Spread),
    /// Of [`Kind::Bytes`].
    Bytes(Vec<Piece>),
}

/// Reads a value of this kind; `None` is an option without `=`.
///
/// # Errors
/// What is wrong and what to write, in words.
pub fn parse(kind: Kind, text: Option<&str>, units: Units) -> Result<Value, String> {
    let Some(text) = text else {
        return match kind {
            Kind::Flag => Ok(Value::Flag(true)),
            Kind::Prefix => Ok(Value::Prefix(None)),
            _ => Err("needs a value: write NAME=VALUE".to_owned()),
        };
    };
    if text.is_empty() && kind != Kind::Prefix {
        return Err("has an empty value".to_owned());
    }
    match kind {
        Kind::Text | Kind::Paths => Ok(Value::Text(text.to_owned())),
        Kind::Prefix => Ok(Value::Prefix(Some(text.to_owned()))),
        Kind::Flag | Kind::Bool => flag(text).map(Value::Flag),
        Kind::Count { min, max } => counted(text, units, min, max).map(Value::Number),
        Kind::Size => amount(text, units).map(Value::Number),
        Kind::SizeRange => range_or_size(text, units).map(|(from, to)| Value::Range(from, to)),
        Kind::Share => share(text, units).map(Value::Share),
        Kind::Time { bare_seconds } => {
            time_us(text, bare_seconds).map(|time| Value::TimeUs(time, time))
        }
        Kind::TimeRange => time_range(text),
        Kind::Sizes => directions(text, |part| amount(part, units)).map(Value::Numbers),
        Kind::Counts { max } => {
            directions(text, |part| counted(part, units, 0, max)).map(Value::Numbers)
        }
        Kind::Ranges => ranges(text, units).map(Value::Ranges),
        Kind::Splits => splits(text, units).map(Value::Splits),
        Kind::Pattern => pattern(text, units).map(Value::Pattern),
        Kind::Cpus => cpus(text).map(Value::Cpus),
        Kind::Percentiles => percentiles(text).map(Value::Percentiles),
        Kind::Spread => spread(text, units).map(Value::Spread),
        Kind::Bytes { offsets } => bytes::pieces(text, offsets)
            .map(Value::Bytes)
            .map_err(|error| format!("`{text}`: {error}")),
        Kind::Choice(words) => choice(text, words),
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("`{text}`: write 0 or 1")),
    }
}

fn counted(text: &str, units: Units, min: u64, max: u64) -> Result<u64, String> {
    let value = amount(text, units)?;
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(format!("`{text}` is out of range: {min} to {max}"))
    }
}

fn time_range(text: &str) -> Result<Value, String> {
    let (from, to) = text.split_once(['-', ':']).unwrap_or((text, text));
    let (from, to) = (time_us(from, true)?, time_us(to, true)?);
    Ok(Value::TimeUs(from.min(to), from.max(to)))
}

fn choice(text: &str, words: &[&str]) -> Result<Value, String> {
    if words.contains(&text) {
        return Ok(Value::Text(text.to_owned()));
    }
    Err(format!("`{text}`: use one of {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [Kind; 20] = [
        Kind::Text,
        Kind::Paths,
        Kind::Prefix,
        Kind::Flag,
        Kind::Bool,
        Kind::Count { min: 1, max: 100 },
        Kind::Size,
        Kind::SizeRange,
        Kind::Share,
        Kind::Time { bare_seconds: true },
        Kind::TimeRange,
        Kind::Sizes,
        Kind::Counts { max: 100 },
        Kind::Ranges,
        Kind::Splits,
        Kind::Pattern,
        Kind::Cpus,
        Kind::Percentiles,
        Kind::Spread,
        Kind::Bytes { offsets: true },
    ];

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            for kind in KINDS {
                let _ = parse(kind, Some(&text), Units::default());
            }
        }

        #[test]
        fn nearly_values_never_panic(text in "[-0-9.,:/%xo\"'()+ ]{0,12}[kKmMgGtTpPiIbBsuSd%]{0,4}[,:/-]?[0-9]{0,25}k?") {
            for kind in KINDS {
                let _ = parse(kind, Some(&text), Units::default());
            }
        }
    }

    #[test]
    fn flags_and_names_of_logs_need_no_value_and_nothing_else_goes_without() {
        let units = Units::default();
        assert_eq!(parse(Kind::Flag, None, units), Ok(Value::Flag(true)));
        assert_eq!(parse(Kind::Flag, Some("0"), units), Ok(Value::Flag(false)));
        assert_eq!(parse(Kind::Prefix, None, units), Ok(Value::Prefix(None)));
        let empty = Value::Prefix(Some(String::new()));
        assert_eq!(parse(Kind::Prefix, Some(""), units), Ok(empty));
        assert!(parse(Kind::Bool, None, units).is_err());
        assert!(parse(Kind::Bool, Some("2"), units).is_err());
        assert!(parse(Kind::Text, Some(""), units).is_err());
    }

    #[test]
    fn delays_may_be_ranges() {
        let parse = |text| parse(Kind::TimeRange, Some(text), Units::default());
        assert_eq!(parse("5"), Ok(Value::TimeUs(5_000_000, 5_000_000)));
        assert_eq!(parse("5-1"), Ok(Value::TimeUs(1_000_000, 5_000_000)));
        assert_eq!(parse("10ms:1s"), Ok(Value::TimeUs(10_000, 1_000_000)));
    }
}

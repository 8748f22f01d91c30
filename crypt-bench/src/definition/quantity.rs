//! Quantities as people write them: sizes (`4k`), times (`200ms`), rates (`0.2GB/s`), CPU lists.
//!
//! Whatever could mean two things is refused, with both meanings: `4kb` may be 4000 or 4096 bytes,
//! a bare `2` may be seconds or milliseconds. Every value prints as it can be parsed again.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes: `512`, `4k`, `4KiB`, `1m`, `2GiB`, `1t`; suffixes count in 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// A time: `500us`, `200ms`, `2s`, `1m`, `1h`, or `0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Duration);

/// Bytes per second: `200MB/s` (decimal), `200MiB/s` or `200m/s` (1024-based).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// CPUs: `0,2,4-7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

/// A number of threads: `4`, or `cpus` for one per CPU that the program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Count {
    /// This many.
    Number(u32),
    /// One per CPU.
    PerCpu,
}

impl Count {
    /// How many that are on so many CPUs.
    #[must_use]
    pub const fn on(self, cpus: u32) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::PerCpu => cpus,
        }
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("cpus", _) => Ok(Self::PerCpu),
            (_, Ok(number)) => Ok(Self::Number(number)),
            _ => Err(format!(
                "`{text}` is not a count: write a number, or cpus for one per CPU"
            )),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::PerCpu => f.write_str("cpus"),
        }
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u32(*number),
            Self::PerCpu => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number, or \"cpus\" for one per CPU")]
        enum Written {
            Number(u32),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self::Number(number)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, suffix) = split_number(text);
        let value: u64 = number.parse().map_err(|_| bad_size(text, number, suffix))?;
        let shift = shift_of(suffix).ok_or_else(|| bad_size(text, number, suffix))?;
        value
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is more bytes than 64 bits can count"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, suffix) = scaled(self.0);
        write!(f, "{value}{suffix}")
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_number(text);
        let bad = || format!("`{text}` is not a time: write it like 500ms, 2s or 1m");
        if unit.is_empty() {
            return match number.parse() {
                Ok(0_u64) => Ok(Self(Duration::ZERO)),
                Ok(_) => Err(format!(
                    "`{text}` has no unit: write {text}s for seconds or {text}ms for milliseconds"
                )),
                Err(_) => Err(bad()),
            };
        }
        let unit_us: f64 = match unit {
            "us" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            "m" => 6e7,
            "h" => 3.6e9,
            "sec" | "secs" | "second" | "seconds" => return Err(write_instead(text, number, "s")),
            "min" | "mins" | "minute" | "minutes" => return Err(write_instead(text, number, "m")),
            _ => return Err(bad()),
        };
        let value: f64 = number.parse().map_err(|_| bad())?;
        let micros = (value * unit_us).round();
        if micros > 1e15 {
            return Err(format!("`{text}` is longer than 30 years"));
        }
        Ok(Self(Duration::from_micros(micros as u64)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        if micros.is_multiple_of(1_000_000) {
            write!(f, "{}s", micros / 1_000_000)
        } else if micros.is_multiple_of(1000) {
            write!(f, "{}ms", micros / 1000)
        } else {
            write!(f, "{micros}us")
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "`{text}` is not a rate: write it like 200MB/s (decimal) or 200MiB/s (1024-based)"
            )
        };
        let (number, unit) = split_number(text);
        let scale = match unit.trim_start().strip_suffix("/s").ok_or_else(bad)? {
            "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            other => match shift_of(other) {
                Some(shift) if !other.is_empty() => (1_u64 << shift) as f64,
                _ => return Err(bad()),
            },
        };
        let value: f64 = number.parse().map_err(|_| bad())?;
        let rate = value * scale;
        if (1.0..1e15).contains(&rate) {
            Ok(Self(rate.round() as u64))
        } else {
            Err(format!(
                "`{text}` is out of range: more than 1B/s, less than 1000000GB/s"
            ))
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B/s", self.0)
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, &[',']).map(Self)
    }
}

impl CpuList {
    /// The CPUs of a list in writing, in its order, with these separators.
    ///
    /// # Errors
    /// What is not a list of CPUs, or has more than 65,536 of them.
    pub fn parse(text: &str, separators: &[char]) -> Result<Vec<u32>, String> {
        let bad = || format!("`{text}` is not a list of CPUs: write it like 0,2,4-7");
        let mut cpus = Vec::new();
        for item in text.split(separators) {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let first: u32 = first.trim().parse().map_err(|_| bad())?;
            let last: u32 = last.trim().parse().map_err(|_| bad())?;
            if first > last || last > 65_535 {
                return Err(bad());
            }
            cpus.extend(first..=last);
            if cpus.len() > 65_536 {
                return Err(bad());
            }
        }
        Ok(cpus)
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&cpus.join(","))
    }
}

/// The number at the start of a text, and the rest.
fn split_number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

/// log2 of a 1024-based suffix.
fn shift_of(suffix: &str) -> Option<u32> {
    match suffix {
        "" | "B" => Some(0),
        "k" | "K" | "KiB" => Some(10),
        "m" | "M" | "MiB" => Some(20),
        "g" | "G" | "GiB" => Some(30),
        "t" | "T" | "TiB" => Some(40),
        _ => None,
    }
}

/// Says what a size that can't be read could have meant, and what to write.
fn bad_size(text: &str, number: &str, suffix: &str) -> String {
    let letter = suffix.get(..1).unwrap_or_default().to_ascii_lowercase();
    let shift = shift_of(&letter).unwrap_or(0);
    let decimal = suffix.len() == 2 && suffix.to_ascii_lowercase().ends_with('b');
    match number.parse::<u64>() {
        Ok(value) if shift > 0 && decimal => {
            let power = 1000_u64.pow(shift / 10);
            format!(
                "`{text}` is ambiguous: {} or {} bytes? Write {value}{letter} for {}, or the number \
                 of bytes",
                value.saturating_mul(power),
                value.saturating_mul(1 << shift),
                value.saturating_mul(1 << shift)
            )
        }
        Err(_) if number.contains('.') && shift_of(suffix).is_some() => {
            format!("`{text}` is not a whole number: write it in the next smaller unit")
        }
        _ => format!("`{text}` is not a size: write it like 512, 4k, 1m or 2g (1024-based)"),
    }
}

fn write_instead(text: &str, number: &str, unit: &str) -> String {
    format!("`{text}`: write {number}{unit}")
}

/// The largest suffix that divides a number of bytes, with what is left.
fn scaled(bytes: u64) -> (u64, &'static str) {
    for (shift, suffix) in [(40, "t"), (30, "g"), (20, "m"), (10, "k")] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return (bytes >> shift, suffix);
        }
    }
    (bytes, "")
}

/// Serialises as text, the way it is written on the command line.
macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use as_text;
as_text!(Size, Time, Rate, CpuList);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(text: &str) -> Result<u64, String> {
        text.parse::<Size>().map(|size| size.0)
    }

    #[test]
    fn suffixes_count_in_1024() {
        for (text, bytes) in [
            ("512", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("1m", 1 << 20),
            ("2GiB", 2 << 30),
            ("1t", 1 << 40),
            ("512B", 512),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn decimal_looking_sizes_are_refused_with_both_meanings() {
        for text in ["4kb", "4KB", "4kB"] {
            let message = size(text).unwrap_err();
            assert!(
                message.contains("4000") && message.contains("4096"),
                "{message}"
            );
            assert!(message.contains("Write 4k "), "{message}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "k",
            "-1",
            "1.5k",
            "4x",
            "4kib",
            "4 k",
            "0x10",
            "99999999999t",
            "4kbb",
            "é",
            "4é",
            "18446744073709551616",
            "4ki",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!("250ms".parse(), Ok(Time(Duration::from_millis(250))));
        assert_eq!("1.5s".parse(), Ok(Time(Duration::from_millis(1500))));
        assert_eq!("2m".parse(), Ok(Time(Duration::from_secs(120))));
        assert_eq!("0".parse(), Ok(Time(Duration::ZERO)));
        for (text, advice) in [
            ("2", "2s"),
            ("2sec", "write 2s"),
            ("x", "500ms"),
            ("1e9h", "500ms"),
        ] {
            let message = text.parse::<Time>().unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
    }

    #[test]
    fn rates_are_decimal_or_1024_based_as_written() {
        assert_eq!("0.2GB/s".parse(), Ok(Rate(200_000_000)));
        assert_eq!("0.2 GB/s".parse(), Ok(Rate(200_000_000)));
        assert_eq!("1MiB/s".parse(), Ok(Rate(1 << 20)));
        for text in ["200", "200M", "0MB/s", "fast", "1/s", "NaNMB/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn cpu_lists_have_ranges() {
        assert_eq!("0,2,4-6".parse(), Ok(CpuList(vec![0, 2, 4, 5, 6])));
        for text in ["", "a", "3-1", "0,", "1-99999999"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_can_be_parsed(bytes: u64, micros in 0..1_000_000_000_000_u64) {
            prop_assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
            let time = Time(Duration::from_micros(micros));
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = text.parse::<Size>();
            let _ = text.parse::<Time>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<CpuList>();
        }

        #[test]
        fn nearly_sizes_never_panic(text in "[0-9.]{0,22}[kKmMgGtTiIbB]{0,4}") {
            let _ = text.parse::<Size>();
        }
    }
}

//! Numbers as people read them: three significant digits, a unit that fits.
//!
//! Pure and total: every `f64` has a text; what is not finite prints as a word, never as a number.

#![forbid(unsafe_code)]

/// What a number measures, and so which units it is printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes per second, printed as kB/s, MB/s, GB/s (powers of 1000).
    BytesPerSecond,
    /// Operations per second.
    PerSecond,
    /// A duration in nanoseconds, printed as ns, µs, ms, s.
    Nanoseconds,
    /// A quotient of two equal units, printed with two decimals.
    Ratio,
}

impl Unit {
    /// `value` with three significant digits and its unit.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        if !value.is_finite() {
            return "not finite".to_string();
        }
        match self {
            Self::BytesPerSecond => scaled(value, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
            Self::PerSecond => scaled(value, &["", "k", "M", "G"]),
            Self::Nanoseconds => scaled(value, &["ns", "µs", "ms", "s"]),
            Self::Ratio => format!("{value:.2}×"),
        }
    }
}

/// `1.25` as `+25 %`, with a decimal below 10 %. The space does not break.
#[must_use]
pub fn percent_change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if !percent.is_finite() {
        return "not finite".to_string();
    }
    let rounded = if percent.abs() < 9.95 {
        format!("{percent:+.1}")
    } else {
        format!("{percent:+.0}")
    };
    match rounded.as_str() {
        "+0.0" | "-0.0" => "±0.0\u{a0}%".to_string(),
        other => format!("{}\u{a0}%", other.replace('-', "−")),
    }
}

/// How far `ratio` lies from 1, without a sign: `25 %`, with a decimal below 10 %.
#[must_use]
pub fn percent(ratio: f64) -> String {
    percent_change(ratio)
        .trim_start_matches(['+', '−', '±'])
        .to_owned()
}

/// A factor: `3.4 times`, without a decimal from 10 on.
#[must_use]
pub fn times(ratio: f64) -> String {
    if ratio < 9.95 {
        format!("{ratio:.1} times")
    } else {
        format!("{ratio:.0} times")
    }
}

/// A number of things: `1 cell`, `2 cells`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A size in bytes as harnesses write it: `4k`, `1m`, or plain bytes.
#[must_use]
pub fn size(bytes: u64) -> String {
    const SUFFIXES: [(u64, &str); 4] = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    for (shift, suffix) in SUFFIXES {
        let unit = 1_u64 << shift;
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// `value` in the largest of `units` (each 1000 times the one before) that keeps it at 1 or above.
fn scaled(value: f64, units: &[&str]) -> String {
    let mut scaled = value;
    let mut units = units.iter().peekable();
    let mut unit = units.next().copied().unwrap_or_default();
    // 999.5 would print as 1000 with three digits.
    while scaled.abs() >= 999.5 {
        let Some(larger) = units.next() else { break };
        scaled /= 1000.0;
        unit = larger;
    }
    let digits = three_digits(scaled);
    match unit {
        "" => digits,
        "k" | "M" | "G" => format!("{digits}{unit}"),
        _ => format!("{digits} {unit}"),
    }
}

fn three_digits(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_string()
    } else if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.01 {
        format!("{value:.2}")
    } else {
        format!("{value:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_three_digits_and_a_unit_that_fits() {
        assert_eq!(Unit::Nanoseconds.text(850.0), "850 ns");
        assert_eq!(Unit::Nanoseconds.text(1234.0), "1.23 µs");
        assert_eq!(Unit::Nanoseconds.text(999_600.0), "1.00 ms");
        assert_eq!(Unit::BytesPerSecond.text(13_049_000_000.0), "13.0 GB/s");
        assert_eq!(Unit::PerSecond.text(3_100_000.0), "3.10M");
        assert_eq!(Unit::PerSecond.text(0.0), "0");
        assert_eq!(Unit::Ratio.text(0.973), "0.97×");
    }

    #[test]
    fn what_is_not_finite_is_a_word() {
        for unit in [
            Unit::BytesPerSecond,
            Unit::PerSecond,
            Unit::Nanoseconds,
            Unit::Ratio,
        ] {
            assert_eq!(unit.text(f64::NAN), "not finite");
            assert_eq!(unit.text(f64::INFINITY), "not finite");
            assert!(!unit.text(f64::MAX).is_empty());
        }
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(percent_change(1.25), "+25\u{a0}%");
        assert_eq!(percent_change(0.931), "−6.9\u{a0}%");
        assert_eq!(percent_change(1.0), "±0.0\u{a0}%");
        assert_eq!(percent_change(0.999_99), "±0.0\u{a0}%");
        assert_eq!(times(3.44), "3.4 times");
        assert_eq!(times(139.9), "140 times");
        assert_eq!(percent(0.75), "25\u{a0}%");
        assert_eq!(percent(f64::NAN), "not finite");
    }

    #[test]
    fn sizes_are_written_as_they_are_typed() {
        assert_eq!(size(4096), "4k");
        assert_eq!(size(1 << 20), "1m");
        assert_eq!(size(1536), "1536");
        assert_eq!(size(0), "0");
    }
}

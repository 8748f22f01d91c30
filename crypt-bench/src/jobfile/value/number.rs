//! Numbers in fio's notation: bytes with suffixes, percentages, times, expressions in parentheses.

#![forbid(unsafe_code)]

use super::super::expression;

/// What suffixes count in: fio's `kb_base`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// `kb_base=1000`: `k` is 1000 and `KiB` 1024. Otherwise `k` and `kB` are 1024.
    pub decimal: bool,
}

/// A number of bytes, or a part of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Bytes.
    Bytes(u64),
    /// Percent, 0 to 100.
    Percent(u64),
}

impl Share {
    /// In bytes, where the whole has `whole` bytes.
    #[must_use]
    pub fn bytes_of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// A number of bytes, or a plain number.
///
/// # Errors
/// What is wrong and what to write, in words.
pub fn amount(text: &str, units: Units) -> Result<u64, String> {
    let text = text.trim();
    let value = if text.starts_with('(') {
        expression::evaluate(text, |number| plain_amount(number, units))
            .map_err(|error| format!("`{text}`: {error}"))?
    } else {
        plain_amount(text, units)?
    };
    u64::try_from(value)
        .ok()
        .filter(|&value| i64::try_from(value).is_ok())
        .ok_or_else(|| format!("`{text}` is out of range: 0 to {}", i64::MAX))
}

fn plain_amount(text: &str, units: Units) -> Result<i128, String> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i128::from_str_radix(digits, 16)
            .ok()
            .filter(|value| *value >= 0 && !digits.starts_with('+'))
            .ok_or_else(|| format!("`{text}` is not a hexadecimal number"));
    }
    let (digits, suffix) = split(text);
    if digits.is_empty() || suffix.starts_with('.') {
        return Err(not_a_number(text, digits, suffix));
    }
    let number: i128 = digits
        .parse()
        .map_err(|_| format!("`{text}` is too large"))?;
    let scale = scale(text, digits, suffix, units)?;
    number
        .checked_mul(scale)
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// What a suffix multiplies with.
fn scale(text: &str, digits: &str, suffix: &str, units: Units) -> Result<i128, String> {
    let lower = suffix.to_ascii_lowercase();
    let mut letters = lower.chars();
    let first = letters.next();
    let power = match first {
        None => return Ok(1),
        Some('b') if lower.len() == 1 => return Ok(1),
        Some(letter) => "kmgtp".find(letter).map(|index| index as u32 + 1),
    };
    let Some(power) = power else {
        return Err(unknown_suffix(text, digits, suffix));
    };
    match letters.as_str() {
        "" | "b" if units.decimal => Ok(1000_i128.pow(power)),
        "" | "b" => Ok(1024_i128.pow(power)),
        "ib" if units.decimal => Ok(1024_i128.pow(power)),
        "ib" | "i" => Err(ambiguous(text, digits, suffix, power, units)),
        _ => Err(unknown_suffix(text, digits, suffix)),
    }
}

/// fio reads `4KiB` as 4000 bytes unless `kb_base=1000`, and `4ki` as `4k`.
fn ambiguous(text: &str, digits: &str, suffix: &str, power: u32, units: Units) -> String {
    let letter = suffix.get(..1).unwrap_or_default();
    if units.decimal {
        return format!("`{text}`: write {digits}{letter}iB");
    }
    let number: u128 = digits.parse().unwrap_or(0);
    let decimal = number.saturating_mul(1000_u128.pow(power));
    let binary = number.saturating_mul(1024_u128.pow(power));
    format!(
        "`{text}` is {decimal} bytes for fio unless kb_base=1000; write {digits}{letter} for {binary}, \
         or the number of bytes"
    )
}

fn unknown_suffix(text: &str, digits: &str, suffix: &str) -> String {
    match suffix {
        "%" => format!("`{text}`: a percentage is not possible here"),
        "z" => format!("`{text}`: zones are not supported; write bytes"),
        _ => {
            format!("`{text}`: `{suffix}` is not a suffix (k, m, g, t, p); fio would read {digits}")
        }
    }
}

fn not_a_number(text: &str, digits: &str, suffix: &str) -> String {
    if !digits.is_empty() && suffix.starts_with('.') {
        return format!("`{text}` is not a whole number: write it in the next smaller unit");
    }
    format!("`{text}` is not a number: write it like 512, 4k or 1m")
}

/// Bytes or a percentage.
///
/// # Errors
/// As [`amount`], and a percentage over 100.
pub fn share(text: &str, units: Units) -> Result<Share, String> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return amount(text, units).map(Share::Bytes);
    };
    match percent.trim().parse() {
        Ok(value @ 0..=100) => Ok(Share::Percent(value)),
        _ => Err(format!("`{text}`: write a percentage from 0% to 100%")),
    }
}

/// A time in microseconds; without a unit in seconds or microseconds.
///
/// # Errors
/// What is wrong and what to write, in words.
pub fn time_us(text: &str, bare_seconds: bool) -> Result<u64, String> {
    let text = text.trim();
    let bare_us = if bare_seconds { 1_000_000 } else { 1 };
    let value = if text.starts_with('(') {
        // fio: numbers without a unit are microseconds in an expression.
        expression::evaluate(text, |number| plain_time(number, 1))
            .map_err(|error| format!("`{text}`: {error}"))?
    } else {
        plain_time(text, bare_us)?
    };
    u64::try_from(value)
        .ok()
        .filter(|&us| us <= MOST_US)
        .ok_or_else(|| format!("`{text}` is out of range: 0 to 10 years"))
}

/// Longest time.
const MOST_US: u64 = 315_360_000_000_000;

fn plain_time(text: &str, bare_us: i128) -> Result<i128, String> {
    let (digits, unit) = split(text);
    let number: i128 = digits
        .parse()
        .map_err(|_| format!("`{text}` is not a time: write it like 10s, 500ms or 1m"))?;
    let unit_us = match unit.to_ascii_lowercase().as_str() {
        "" => bare_us,
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        "sec" | "secs" | "second" | "seconds" => {
            return Err(format!(
                "`{text}` is {digits} microseconds for fio; write {digits}s"
            ));
        }
        "min" | "mins" | "minute" | "minutes" => {
            return Err(format!(
                "`{text}` is {digits} microseconds for fio; write {digits}m"
            ));
        }
        _ => {
            return Err(format!(
                "`{text}`: `{unit}` is not a unit of time (d, h, m, s, ms, us)"
            ));
        }
    };
    number
        .checked_mul(unit_us)
        .ok_or_else(|| format!("`{text}` is too long"))
}

/// The digits at the start, and the rest.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: Units = Units { decimal: false };
    const DECIMAL: Units = Units { decimal: true };

    #[test]
    fn suffixes_count_as_kb_base_says() {
        for (text, binary, decimal) in [
            ("4k", 4096, 4000),
            ("4kB", 4096, 4000),
            ("1M", 1 << 20, 1_000_000),
            ("2g", 2 << 30, 2_000_000_000),
            ("7", 7, 7),
            ("512b", 512, 512),
            ("0x1000", 4096, 4096),
            ("(2*4k)", 8192, 8000),
        ] {
            assert_eq!(amount(text, BINARY), Ok(binary), "{text}");
            assert_eq!(amount(text, DECIMAL), Ok(decimal), "{text}");
        }
        assert_eq!(amount("4KiB", DECIMAL), Ok(4096));
    }

    #[test]
    fn what_fio_would_misread_is_refused_with_what_to_write() {
        for (text, advice) in [
            ("4KiB", "write 4K for 4096"),
            ("4ki", "write 4k for 4096"),
            ("1.5k", "not a whole number"),
            ("4q", "`q` is not a suffix"),
            ("4kx", "not a suffix"),
            ("k", "not a number"),
            ("-1", "not a number"),
            ("1z", "zones"),
            ("10%", "percentage"),
            ("99999999999p", "out of range"),
            ("0xg", "hexadecimal"),
            ("0x-1", "hexadecimal"),
            ("(1", "`(` without `)`"),
            ("(1-2)", "out of range"),
        ] {
            let message = amount(text, BINARY).unwrap_err();
            assert!(message.contains(advice), "{text}: {message}");
        }
    }

    #[test]
    fn shares_go_up_to_all() {
        assert_eq!(share("25%", BINARY), Ok(Share::Percent(25)));
        assert_eq!(share("1m", BINARY), Ok(Share::Bytes(1 << 20)));
        assert_eq!(Share::Percent(25).bytes_of(u64::MAX), u64::MAX / 4);
        assert!(share("101%", BINARY).is_err());
        assert!(share("-1%", BINARY).is_err());
    }

    #[test]
    fn times_have_fio_units() {
        for (text, us) in [
            ("2", 2_000_000),
            ("2s", 2_000_000),
            ("100ms", 100_000),
            ("5usec", 5),
            ("1m", 60_000_000),
            ("1H", 3_600_000_000),
            ("1d", 86_400_000_000),
            ("(1s+500ms)", 1_500_000),
        ] {
            assert_eq!(time_us(text, true), Ok(us), "{text}");
        }
        assert_eq!(time_us("10", false), Ok(10));
        for (text, advice) in [("2sec", "write 2s"), ("5min", "write 5m"), ("1w", "unit")] {
            let message = time_us(text, true).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
        assert!(time_us("99999d", true).is_err());
    }
}

//! One line of what blkparse prints, in its default form.
//!
//! ```text
//!   8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [kjournald]
//! device cpu sequence       seconds     pid action rwbs, sectors
//! ```

#![forbid(unsafe_code)]

use super::Kind;

/// Bytes of a sector of blktrace.
const SECTOR_BYTES: u64 = 512;
/// How lines begin that name the files of a trace.
const INPUT: &str = "Input file ";

/// Which of its steps a request of a block trace is taken at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// When it was made (`Q`), before requests were split and merged.
    #[default]
    Queued,
    /// When the driver got it (`D`).
    Issued,
}

impl Stage {
    /// blktrace's sign for it.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Queued => "Q",
            Self::Issued => "D",
        }
    }
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing that is played.
    Other,
    /// The figures behind the last request begin.
    End,
    /// A request: device, time, what, offset and length in bytes.
    Request(&'a str, u64, Kind, u64, u64),
}

/// Whether a trace that begins with this line is of this kind.
pub(super) fn is_first(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next();
    first.is_some_and(|word| device(word).is_some()) || text.starts_with(INPUT)
}

/// The path of a device by its numbers, `MAJOR,MINOR`.
pub(super) fn path(device: &str) -> String {
    format!("/dev/block/{}", device.replace(',', ":"))
}

impl<'a> Line<'a> {
    /// Reads a line.
    pub(super) fn parse(text: &'a str, stage: Stage) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else {
            return Ok(Self::Other);
        };
        let Some(device) = device(first) else {
            // `CPU0 (8,0):` or, of several CPUs, at the end `Total (8,0):`.
            return match first {
                _ if text.starts_with(INPUT) => Ok(Self::Other),
                _ if first.starts_with("CPU") || first == "Total" => Ok(Self::End),
                _ => Err(format!(
                    "`{first}`: a line of blkparse begins with MAJOR,MINOR of the device; use its default format"
                )),
            };
        };
        let mut word = |what: &str| words.next().ok_or_else(|| format!("the {what} is missing"));
        let (_cpu, _sequence) = (word("CPU")?, word("sequence number")?);
        let time_us = time_us(word("time")?)?;
        let (_process, action) = (word("process")?, word("action")?);
        if action != stage.sign() {
            return Ok(Self::Other);
        }
        let what = word("direction")?;
        let sectors = match (words.next(), words.next(), words.next()) {
            (Some(first), Some("+"), Some(count)) => {
                Some((bytes("sector", first)?, bytes("count", count)?))
            }
            // Commands without sectors, among them flushes.
            _ => None,
        };
        Ok(match (kind(what), sectors) {
            (Some(Kind::Sync), _) => Self::Request(device, time_us, Kind::Sync, 0, 0),
            (Some(kind), Some((offset, len))) if len > 0 => {
                Self::Request(device, time_us, kind, offset, len)
            }
            // Without data a write is the flush that it begins with.
            (Some(Kind::Write), _) if what.starts_with('F') => {
                Self::Request(device, time_us, Kind::Sync, 0, 0)
            }
            _ => Self::Other,
        })
    }
}

fn device(word: &str) -> Option<&str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (major, minor) = word.split_once(',')?;
    (digits(major) && digits(minor)).then_some(word)
}

/// Of the signs of a request: an `F` before the others is a flush before it.
fn kind(what: &str) -> Option<Kind> {
    let command = what.strip_prefix('F').unwrap_or(what);
    match command.bytes().next() {
        Some(b'R') => Some(Kind::Read),
        Some(b'W') => Some(Kind::Write),
        Some(b'D') => Some(Kind::Trim),
        Some(b'F') | None => Some(Kind::Sync),
        _ => None,
    }
}

/// `SECONDS.NANOSECONDS` in microseconds.
fn time_us(text: &str) -> Result<u64, String> {
    let parts = text.split_once('.');
    let nanoseconds = parts.filter(|(_, part)| part.len() == 9);
    let (seconds, nanoseconds) =
        nanoseconds.ok_or_else(|| format!("`{text}` is not a time: SECONDS.NANOSECONDS"))?;
    let seconds = super::line::number("time", Some(seconds))?;
    let nanoseconds = super::line::number("time", Some(nanoseconds))?;
    Ok(seconds
        .saturating_mul(1_000_000)
        .saturating_add(nanoseconds / 1000))
}

fn bytes(what: &str, text: &str) -> Result<u64, String> {
    let sectors = super::line::number(what, Some(text))?;
    let bytes = sectors.checked_mul(SECTOR_BYTES);
    bytes.ok_or_else(|| format!("{what} {sectors} is beyond 63 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Line<'_>, String> {
        Line::parse(text, Stage::Queued)
    }

    #[test]
    fn requests_are_taken_at_one_step_of_theirs() {
        let line = "  8,0    3        1     1.000002999   697  Q  WS 223490 + 8 [kjournald]";
        let request = Line::Request("8,0", 1_000_002, Kind::Write, 223_490 * 512, 4096);
        assert_eq!(parse(line), Ok(request));
        assert_eq!(Line::parse(line, Stage::Issued), Ok(Line::Other));
        let issued = line.replace(" Q ", " D ");
        assert_eq!(Line::parse(&issued, Stage::Issued), Ok(request));
        assert!(is_first(line) && !is_first("fio version 2 iolog"));
        assert_eq!(path("253,16"), "/dev/block/253:16");
    }

    #[test]
    fn signs_say_what_a_request_does() {
        let of = |what: &str, rest: &str| {
            let line = format!("8,0 0 6 0.000200000 697 Q {what} {rest}[x]");
            match parse(&line) {
                Ok(Line::Request(_, _, kind, ..)) => Some(kind),
                Ok(_) => None,
                Err(error) => panic!("{error}"),
            }
        };
        for (what, rest, kind) in [
            ("R", "8 + 8 ", Some(Kind::Read)),
            ("RAM", "8 + 8 ", Some(Kind::Read)),
            ("WFS", "8 + 8 ", Some(Kind::Write)),
            ("FWFS", "8 + 8 ", Some(Kind::Write)),
            ("FWS", "", Some(Kind::Sync)),
            ("FF", "", Some(Kind::Sync)),
            ("DS", "8 + 8 ", Some(Kind::Trim)),
            ("N", "36 (12 00 00) ", None),
            ("W", "", None),
            ("W", "8 + 0 ", None),
        ] {
            assert_eq!(of(what, rest), kind, "{what} {rest}");
        }
    }

    #[test]
    fn other_lines_are_passed_over_and_what_is_none_is_refused() {
        for (line, expected) in [
            ("", Line::Other),
            ("Input file sda.blktrace.0 added", Line::Other),
            (
                "8,0 0 0 0.000000000 0 m N cfq schedule dispatch",
                Line::Other,
            ),
            ("8,0 0 9 0.000100000 7 U  N [dd] 2", Line::Other),
            ("CPU0 (8,0):", Line::End),
            ("Total (8,0):", Line::End),
        ] {
            assert_eq!(parse(line), Ok(expected), "{line}");
        }
        for (line, reason) in [
            ("0 000002500 W 8 8", "begins with MAJOR,MINOR"),
            ("8,0 0 1", "the time is missing"),
            ("8,0 0 1 5 7 Q R 8 + 8", "`5` is not a time"),
            ("8,0 0 1 0.5 7 Q R 8 + 8", "`0.5` is not a time"),
            ("8,0 0 1 0.000000000 7 Q", "the direction is missing"),
            (
                "8,0 0 1 0.000000000 7 Q R x + 8",
                "`x` is not a whole number",
            ),
            (
                "8,0 0 1 0.000000000 7 Q R 99999999999999999 + 8",
                "beyond 63 bits",
            ),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}

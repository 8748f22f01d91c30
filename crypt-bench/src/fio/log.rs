//! A line of fio's log files: time, value, direction, bytes, priority. Pure.

#![forbid(unsafe_code)]

use std::fmt;

use crate::log::{Entry, Point, Sums};

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;

/// What a log file has as its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// Throughput in KiB/s over a window; of a single request its bytes over its completion latency, in units of
    /// 1000 bytes per second.
    Bandwidth,
    /// Requests per second over a window; 1 of a single request.
    Iops,
    /// Submission to completion, in nanoseconds; of a window the mean.
    Lat,
    /// Submission to issue, likewise.
    Slat,
    /// Issue to completion, likewise.
    Clat,
}

impl LogKind {
    /// As in the names of files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Lat => "lat",
            Self::Slat => "slat",
            Self::Clat => "clat",
        }
    }

    /// The line of a point.
    #[must_use]
    pub fn line(self, point: &Point) -> LogLine {
        let (at_ns, value, is_write, bytes) = match *point {
            Point::Request(entry) => (
                entry.at_ns,
                self.of_one(&entry),
                entry.is_write,
                entry.bytes,
            ),
            Point::Window {
                end_ns,
                length_ns,
                is_write,
                ref sums,
            } => (end_ns, self.of_window(sums, length_ns), is_write, 0),
        };
        LogLine {
            at_ms: at_ns / MS_NS,
            value,
            is_write,
            bytes,
        }
    }

    fn of_one(self, entry: &Entry) -> u64 {
        match self {
            Self::Bandwidth => u64::from(entry.bytes) * MS_NS / entry.clat_ns.max(1),
            Self::Iops => 1,
            Self::Lat => entry.slat_ns.saturating_add(entry.clat_ns),
            Self::Slat => entry.slat_ns,
            Self::Clat => entry.clat_ns,
        }
    }

    fn of_window(self, sums: &Sums, length_ns: u64) -> u64 {
        let per_second = |count: u64| {
            let count = u128::from(count) * 1_000_000_000 / u128::from(length_ns.max(1));
            u64::try_from(count).unwrap_or(u64::MAX)
        };
        let mean = |sum: u64| sum / sums.ios.max(1);
        match self {
            Self::Bandwidth => per_second(sums.bytes) / 1024,
            Self::Iops => per_second(sums.ios),
            Self::Lat => mean(sums.slat_ns.saturating_add(sums.clat_ns)),
            Self::Slat => mean(sums.slat_ns),
            Self::Clat => mean(sums.clat_ns),
        }
    }
}

/// A line, which [`fmt::Display`] writes as fio does, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Time in milliseconds.
    pub at_ms: u64,
    /// What the file is about.
    pub value: u64,
    /// Whether it is about writes.
    pub is_write: bool,
    /// Bytes of the request; 0 of a window.
    pub bytes: u32,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = u8::from(self.is_write);
        // Requests have no priority of their own.
        write!(
            f,
            "{}, {}, {direction}, {}, 0",
            self.at_ms, self.value, self.bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [LogKind; 5] = [
        LogKind::Bandwidth,
        LogKind::Iops,
        LogKind::Lat,
        LogKind::Slat,
        LogKind::Clat,
    ];

    fn lines(point: Point) -> [String; 5] {
        KINDS.map(|kind| kind.line(&point).to_string())
    }

    #[test]
    fn a_request_has_the_values_that_fio_gives_it() {
        let entry = Entry {
            at_ns: 1_999_999,
            slat_ns: 476,
            clat_ns: 418_900,
            bytes: 4096,
            is_write: false,
        };
        let expected = [
            "1, 9777, 0, 4096, 0",
            "1, 1, 0, 4096, 0",
            "1, 419376, 0, 4096, 0",
            "1, 476, 0, 4096, 0",
            "1, 418900, 0, 4096, 0",
        ];
        assert_eq!(lines(Point::Request(entry)), expected);
    }

    #[test]
    fn a_window_has_rates_and_means() {
        let point = Point::Window {
            end_ns: 600_000_000,
            length_ns: 300_000_000,
            is_write: true,
            sums: Sums {
                ios: 75,
                bytes: 75 * 4096,
                slat_ns: 75 * 10 + 74,
                clat_ns: 75 * 100,
            },
        };
        let expected = [
            "600, 1000, 1, 0, 0",
            "600, 250, 1, 0, 0",
            "600, 110, 1, 0, 0",
            "600, 10, 1, 0, 0",
            "600, 100, 1, 0, 0",
        ];
        assert_eq!(lines(point), expected);
    }

    #[test]
    fn no_value_panics() {
        let entry = Entry {
            at_ns: u64::MAX,
            slat_ns: u64::MAX,
            clat_ns: 0,
            bytes: u32::MAX,
            is_write: true,
        };
        assert_eq!(lines(Point::Request(entry))[0].split(", ").count(), 5);
        let sums = Sums {
            ios: u64::MAX,
            bytes: u64::MAX,
            slat_ns: u64::MAX,
            clat_ns: u64::MAX,
        };
        lines(Point::Window {
            end_ns: 0,
            length_ns: 0,
            is_write: false,
            sums,
        });
    }
}

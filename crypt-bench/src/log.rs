//! What a thread keeps of its requests over time, for the log files that a job asks for: each request by itself, or
//! sums over windows of time.
//!
//! The room is made before the run and never grows. What finds no room is counted, so that a log which is not
//! whole can say so. Requests are kept under the time of their completion, as fio has it.

#![forbid(unsafe_code)]

use crypt_core::pipeline::Timing;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;

/// How a thread keeps its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRule {
    /// Length of a window in milliseconds, at least 1; `None` for every request by itself.
    pub window_ms: Option<u64>,
    /// Requests or windows that there is room for.
    pub room: usize,
}

impl LogRule {
    /// Memory of the room, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let each = match self.window_ms {
            None => size_of::<Entry>(),
            Some(_) => size_of::<[Sums; 2]>(),
        };
        (self.room as u64).saturating_mul(each as u64)
    }
}

/// A request, or a direction in a window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A request.
    Request(Entry),
    /// At least one request of a window.
    Window {
        /// From the start of the log to the end of the window, in nanoseconds.
        end_ns: u64,
        /// Its length in nanoseconds; the last one may be shorter.
        length_ns: u64,
        /// Whether they are writes.
        is_write: bool,
        /// Of these requests.
        sums: Sums,
    },
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Completion after the start of the log, in nanoseconds.
    pub at_ns: u64,
    /// Submission to issue, in nanoseconds.
    pub slat_ns: u64,
    /// Issue to completion, in nanoseconds.
    pub clat_ns: u64,
    /// Bytes transferred.
    pub bytes: u32,
    /// Whether it is a write.
    pub is_write: bool,
}

/// Sums over requests of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Requests.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Submission to issue, in nanoseconds.
    pub slat_ns: u64,
    /// Issue to completion, in nanoseconds.
    pub clat_ns: u64,
}

/// A thread's log.
#[derive(Clone, Debug)]
pub struct Log {
    start_ns: u64,
    kept: Kept,
    lost: u64,
}

#[derive(Clone, Debug)]
enum Kept {
    Requests(Vec<Entry>),
    Windows {
        window_ns: u64,
        sums: Box<[[Sums; 2]]>,
        /// Windows up to the last one with a request.
        used: usize,
    },
}

impl Log {
    /// An empty log that begins with time itself. Takes its time where there is much room.
    #[must_use]
    pub fn new(rule: LogRule) -> Self {
        let kept = match rule.window_ms {
            None => Kept::Requests(touched(rule.room)),
            Some(ms) => Kept::Windows {
                window_ns: ms.max(1).saturating_mul(MS_NS),
                sums: vec![[Sums::default(); 2]; rule.room].into_boxed_slice(),
                used: 0,
            },
        };
        Self {
            start_ns: 0,
            kept,
            lost: 0,
        }
    }

    /// Keeps a completed request, where there is room.
    #[inline]
    pub fn record(&mut self, timing: &Timing, bytes: u64, is_write: bool) {
        let issued_ns = timing.issued_ns.max(timing.submitted_ns);
        let completed_ns = timing.completed_ns.max(issued_ns);
        let entry = Entry {
            at_ns: completed_ns.saturating_sub(self.start_ns),
            slat_ns: issued_ns - timing.submitted_ns,
            clat_ns: completed_ns - issued_ns,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            is_write,
        };
        if !self.kept.take(entry) {
            self.lost += 1;
        }
    }

    /// Forgets everything, and begins anew at `start_ns`.
    pub fn begin(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.lost = 0;
        match &mut self.kept {
            Kept::Requests(entries) => entries.clear(),
            Kept::Windows { sums, used, .. } => {
                sums[..*used].fill([Sums::default(); 2]);
                *used = 0;
            }
        }
    }

    /// Requests that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What was kept: requests as they completed; or windows in order of time with reads before writes. The log ends
    /// at `end_ns`, which is on the scale of the clock. A rest of less than half a window is part of the window before
    /// it: the rates of very short times say nothing.
    pub fn points(&self, end_ns: u64) -> impl Iterator<Item = Point> {
        let length_ns = end_ns.saturating_sub(self.start_ns);
        let (entries, window_ns, sums): (&[Entry], u64, &[[Sums; 2]]) = match &self.kept {
            Kept::Requests(entries) => (entries, 1, &[]),
            Kept::Windows {
                window_ns,
                sums,
                used,
            } => (&[], *window_ns, &sums[..*used]),
        };
        let starts_ns = move |index: usize| window_ns.saturating_mul(index as u64);
        let (last, rest) = match sums {
            [whole @ .., _, rest]
                if length_ns < starts_ns(whole.len() + 1).saturating_add(window_ns / 2) =>
            {
                (whole.len(), *rest)
            }
            _ => (sums.len().saturating_sub(1), [Sums::default(); 2]),
        };
        let windows = sums.iter().enumerate().take(last + 1);
        let points = windows.flat_map(move |(index, both)| {
            let start_ns = starts_ns(index);
            let (end_ns, both) = match index == last {
                true => (
                    length_ns.clamp(start_ns, starts_ns(index + 2)),
                    [both[0].plus(&rest[0]), both[1].plus(&rest[1])],
                ),
                false => (starts_ns(index + 1), *both),
            };
            let point = move |direction: usize| Point::Window {
                end_ns,
                length_ns: end_ns - start_ns,
                is_write: direction == 1,
                sums: both[direction],
            };
            let with_requests = move |direction: &usize| both[*direction].ios > 0;
            [0, 1].into_iter().filter(with_requests).map(point)
        });
        entries.iter().copied().map(Point::Request).chain(points)
    }
}

impl Kept {
    /// Whether there was room.
    #[inline]
    fn take(&mut self, entry: Entry) -> bool {
        match self {
            Self::Requests(entries) => {
                let has_room = entries.len() < entries.capacity();
                if has_room {
                    entries.push(entry);
                }
                has_room
            }
            Self::Windows {
                window_ns,
                sums,
                used,
            } => {
                // A window ends with its last nanosecond, so none is of no length.
                let index = entry.at_ns.saturating_sub(1) / *window_ns;
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                let Some(both) = sums.get_mut(index) else {
                    return false;
                };
                both[usize::from(entry.is_write)].add(&entry);
                *used = (*used).max(index + 1);
                true
            }
        }
    }
}

impl Sums {
    fn add(&mut self, entry: &Entry) {
        self.ios += 1;
        self.bytes += u64::from(entry.bytes);
        self.slat_ns = self.slat_ns.saturating_add(entry.slat_ns);
        self.clat_ns = self.clat_ns.saturating_add(entry.clat_ns);
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            ios: self.ios + other.ios,
            bytes: self.bytes + other.bytes,
            slat_ns: self.slat_ns.saturating_add(other.slat_ns),
            clat_ns: self.clat_ns.saturating_add(other.clat_ns),
        }
    }
}

/// Room of which every page has been written to, so that no request is the first to do that.
fn touched(room: usize) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(room);
    let full = Entry {
        at_ns: 1,
        ..Entry::default()
    };
    entries.resize(room, full);
    entries.clear();
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timing(completed_ns: u64, slat_ns: u64, clat_ns: u64) -> Timing {
        Timing {
            submitted_ns: completed_ns - slat_ns - clat_ns,
            issued_ns: completed_ns - clat_ns,
            completed_ns,
            ..Timing::default()
        }
    }

    fn log(window_ms: Option<u64>, room: usize, start_ns: u64) -> Log {
        let mut log = Log::new(LogRule { window_ms, room });
        log.begin(start_ns);
        log
    }

    #[test]
    fn requests_are_kept_in_order_until_the_room_is_full() {
        let mut log = log(None, 2, 1000);
        for (at_ns, is_write) in [(1500, false), (1400, true), (1600, false)] {
            log.record(&timing(at_ns, 30, 70), 512, is_write);
        }
        assert_eq!(log.lost(), 1);
        let entry = |at_ns, is_write| {
            Point::Request(Entry {
                at_ns,
                slat_ns: 30,
                clat_ns: 70,
                bytes: 512,
                is_write,
            })
        };
        let points: Vec<Point> = log.points(2000).collect();
        assert_eq!(points, [entry(500, false), entry(400, true)]);
        log.begin(1500);
        assert_eq!((log.points(2000).count(), log.lost()), (0, 0));
        log.record(&timing(1600, 0, 1), 512, false);
        let [Point::Request(first)] = log.points(2000).collect::<Vec<_>>()[..] else {
            panic!("one request");
        };
        assert_eq!(first.at_ns, 100);
    }

    /// End, length, direction and requests of each window.
    fn windows(log: &Log, end_ns: u64) -> Vec<(u64, u64, bool, u64)> {
        let points = log.points(end_ns).map(|point| match point {
            Point::Window {
                end_ns,
                length_ns,
                is_write,
                sums,
            } => (end_ns, length_ns, is_write, sums.ios),
            Point::Request(_) => unreachable!("windows"),
        });
        points.collect()
    }

    #[test]
    fn a_window_has_a_point_per_direction_and_none_where_nothing_completed() {
        let ms = MS_NS;
        let mut log = log(Some(2), 4, 0);
        for (at_ns, is_write) in [
            (ms, true),
            (2 * ms, false),
            (2 * ms + 1, false),
            (7 * ms, false),
            (8 * ms + 1, true),
        ] {
            log.record(&timing(at_ns, 10, 20), 4096, is_write);
        }
        assert_eq!(log.lost(), 1);
        let first = [
            (2 * ms, 2 * ms, false, 1),
            (2 * ms, 2 * ms, true, 1),
            (4 * ms, 2 * ms, false, 1),
        ];
        let whole = [&first[..], &[(7_500_000, 1_500_000, false, 1)]].concat();
        assert_eq!(windows(&log, 7_500_000), whole);
        let short = [&first[..], &[(6_500_000, 2_500_000, false, 1)]].concat();
        assert_eq!(windows(&log, 6_500_000), short);
        log.begin(ms);
        assert_eq!(windows(&log, 9 * ms), []);
        log.record(&timing(2 * ms, 0, 0), 4096, true);
        assert_eq!(windows(&log, 2 * ms), [(ms, ms, true, 1)]);
    }

    proptest! {
        #[test]
        fn every_request_is_kept_or_counted_as_lost(
            requests in proptest::collection::vec((0_u64..1 << 40, any::<bool>()), 0..200),
            window_ms in proptest::option::of(1_u64..10_000),
            room in 0_usize..100,
        ) {
            let mut log = log(window_ms, room, 5);
            for &(at_ns, is_write) in &requests {
                log.record(&timing(at_ns + 100, 1, 2), 4096, is_write);
            }
            let kept: u64 = log
                .points(1 << 41)
                .map(|point| match point {
                    Point::Request(_) => 1,
                    Point::Window { sums, .. } => sums.ios,
                })
                .sum();
            prop_assert_eq!(kept + log.lost(), requests.len() as u64);
        }
    }
}

//! When a request is due: rates per direction, and pauses to think. Pure.

#![forbid(unsafe_code)]

use crypt_core::request::Op;

use crate::generate::Step;

/// How fast a thread may be; as fast as it can by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Bytes per second of reads and writes.
    pub bytes_per_s: [Option<u64>; 2],
    /// Requests per second of reads and writes.
    pub ios_per_s: [Option<u64>; 2],
    /// Pause, in nanoseconds; 0 for none.
    pub think_ns: u64,
    /// Requests between two pauses.
    pub think_every: u64,
}

impl Rates {
    /// Whether requests have an intended start.
    #[must_use]
    pub fn are_limited(&self) -> bool {
        let mut rates = self.bytes_per_s.iter().chain(&self.ios_per_s);
        rates.any(Option::is_some)
    }
}

/// A thread's progress against its rates.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rates: Rates,
    /// Time the rates count from.
    start_ns: u64,
    bytes: [u64; 2],
    ios: [u64; 2],
    since_thought: u64,
}

/// What a thread may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Submit; the request was meant to start at this time.
    At(u64),
    /// Wait until nothing is in flight, and then for this many nanoseconds.
    Think(u64),
}

impl Pace {
    /// Counts from `now_ns` on.
    pub(super) fn start(rates: Rates, now_ns: u64) -> Self {
        Self {
            rates,
            start_ns: now_ns,
            bytes: [0; 2],
            ios: [0; 2],
            since_thought: 0,
        }
    }

    /// When a request is due. Flushes are due at once.
    pub(super) fn due(&self, step: &Step, now_ns: u64) -> Due {
        if self.rates.think_ns > 0 && self.since_thought >= self.rates.think_every.max(1) {
            return Due::Think(self.rates.think_ns);
        }
        let direction = match step.op {
            Op::Read => 0,
            Op::Write => 1,
            _ => return Due::At(now_ns),
        };
        let after_ns = |done: u64, rate: Option<u64>| {
            let rate = u128::from(rate.filter(|rate| *rate > 0)?);
            Some((u128::from(done) * 1_000_000_000 / rate) as u64)
        };
        let by_bytes = after_ns(self.bytes[direction], self.rates.bytes_per_s[direction]);
        let by_ios = after_ns(self.ios[direction], self.rates.ios_per_s[direction]);
        match by_bytes.max(by_ios) {
            Some(after_ns) => Due::At(self.start_ns.saturating_add(after_ns)),
            None => Due::At(now_ns),
        }
    }

    /// Notes a request that was submitted.
    pub(super) fn submitted(&mut self, step: &Step) {
        let direction = usize::from(step.op == Op::Write);
        if step.op != Op::Flush {
            self.bytes[direction] += step.len_bytes;
            self.ios[direction] += 1;
            self.since_thought += 1;
        }
    }

    /// Notes a pause.
    pub(super) fn thought(&mut self) {
        self.since_thought = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Step = Step {
        op: Op::Read,
        offset_bytes: 0,
        len_bytes: 4096,
    };

    #[test]
    fn rates_are_kept_from_the_start() {
        let rates = Rates {
            bytes_per_s: [Some(4096 * 100), None],
            ios_per_s: [Some(1000), None],
            ..Rates::default()
        };
        assert!(rates.are_limited() && !Rates::default().are_limited());
        let mut pace = Pace::start(rates, 5);
        assert_eq!(pace.due(&READ, 99), Due::At(5));
        pace.submitted(&READ);
        // The slower of the two counts: 10 ms per request.
        assert_eq!(pace.due(&READ, 99), Due::At(10_000_005));
        let write = Step {
            op: Op::Write,
            ..READ
        };
        assert_eq!(pace.due(&write, 99), Due::At(99));
    }

    #[test]
    fn pauses_come_after_so_many_requests() {
        let rates = Rates {
            think_ns: 7,
            think_every: 2,
            ..Rates::default()
        };
        let mut pace = Pace::start(rates, 0);
        pace.submitted(&READ);
        assert_eq!(pace.due(&READ, 1), Due::At(1));
        pace.submitted(&READ);
        assert_eq!(pace.due(&READ, 1), Due::Think(7));
        pace.thought();
        assert_eq!(pace.due(&READ, 1), Due::At(1));
    }
}

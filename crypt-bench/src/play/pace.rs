//! When a request is due: rates per direction, and pauses to think. Pure.

#![forbid(unsafe_code)]

use crypt_core::request::Op;

use crate::generate::{Random, Step};

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
    /// Seed of distances that are exponentially distributed around those of the rates; `None` for equal
    /// ones.
    pub poisson_seed: Option<u64>,
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
    /// When the next request is due, from the start, where something else than a rate says so.
    planned_ns: Option<u64>,
    /// For random distances: where they come from, and the sum so far per direction.
    poisson: Option<(Random, [u64; 2])>,
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
            poisson: rates.poisson_seed.map(|seed| (Random::new(seed), [0; 2])),
            rates,
            start_ns: now_ns,
            bytes: [0; 2],
            ios: [0; 2],
            since_thought: 0,
            planned_ns: None,
        }
    }

    /// Counts from `now_ns` on instead, before the first request.
    pub(super) fn restart(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
    }

    /// Sets when the next request is due, in nanoseconds from the start.
    pub(super) fn plan(&mut self, after_ns: Option<u64>) {
        self.planned_ns = after_ns;
    }

    /// When a request is due. Flushes are due at once.
    pub(super) fn due(&self, step: &Step, now_ns: u64) -> Due {
        if self.rates.think_ns > 0 && self.since_thought >= self.rates.think_every.max(1) {
            return Due::Think(self.rates.think_ns);
        }
        if let Some(after_ns) = self.planned_ns {
            return Due::At(self.start_ns.saturating_add(after_ns));
        }
        let direction = match step.op {
            Op::Read => 0,
            Op::Write => 1,
            _ => return Due::At(now_ns),
        };
        let after_ns = match &self.poisson {
            Some((_, sums)) => self.distance_ns(direction, 1, 1).map(|_| sums[direction]),
            None => self.distance_ns(direction, self.bytes[direction], self.ios[direction]),
        };
        match after_ns {
            Some(after_ns) => Due::At(self.start_ns.saturating_add(after_ns)),
            None => Due::At(now_ns),
        }
    }

    /// Time that so many bytes and requests take at the rates; `None` where there is none.
    fn distance_ns(&self, direction: usize, bytes: u64, ios: u64) -> Option<u64> {
        let take_ns = |done: u64, rate: Option<u64>| {
            let rate = u128::from(rate.filter(|rate| *rate > 0)?);
            Some((u128::from(done) * 1_000_000_000 / rate) as u64)
        };
        let by_bytes = take_ns(bytes, self.rates.bytes_per_s[direction]);
        by_bytes.max(take_ns(ios, self.rates.ios_per_s[direction]))
    }

    /// Notes a request that was submitted.
    pub(super) fn submitted(&mut self, step: &Step) {
        let direction = usize::from(step.op == Op::Write);
        if step.op != Op::Flush {
            self.bytes[direction] += step.len_bytes;
            self.ios[direction] += 1;
            self.since_thought += 1;
        }
        let mean_ns = self.distance_ns(direction, step.len_bytes, 1);
        if let (Some((random, sums)), Some(mean_ns)) = (&mut self.poisson, mean_ns) {
            // A number over 0, up to 1, with 53 bits.
            let uniform = ((random.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            sums[direction] += (mean_ns as f64 * -uniform.ln()) as u64;
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

    #[test]
    fn random_distances_have_the_mean_of_the_rate() {
        let rates = Rates {
            ios_per_s: [Some(1000), None],
            poisson_seed: Some(3),
            ..Rates::default()
        };
        let mut pace = Pace::start(rates, 0);
        let mut due_ns = Vec::new();
        for _ in 0..20_000 {
            match pace.due(&READ, 0) {
                Due::At(at_ns) => due_ns.push(at_ns),
                Due::Think(_) => panic!("nobody thinks here"),
            }
            pace.submitted(&READ);
        }
        assert_eq!(due_ns[0], 0);
        let gaps: Vec<u64> = due_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean_ns = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean_ns / 1e6 - 1.0).abs() < 0.03, "{mean_ns}");
        // Exponential: a share of 1/e is longer than the mean.
        let long = gaps.iter().filter(|gap| **gap > 1_000_000).count() as f64 / gaps.len() as f64;
        assert!((long - (-1.0_f64).exp()).abs() < 0.02, "{long}");
    }
}

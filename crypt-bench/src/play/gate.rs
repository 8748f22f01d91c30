//! How many requests a thread may have in flight: its depth, fio's batches, and the search for the depth
//! that keeps a latency (`latency_target`). Pure.

#![forbid(unsafe_code)]

/// When requests are submitted and completions are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    /// Most requests that are handed over with one system call; at least 1.
    pub submit: u32,
    /// Completions to wait for, as far as there are requests in flight; 0 to look for some after each
    /// request.
    pub complete_min: u32,
    /// Most completions that are taken before requests are submitted again; at least 1.
    pub complete_max: u32,
    /// Once the queue is full, requests in flight must fall to this before others are submitted.
    pub low: u32,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            submit: 1,
            complete_min: 1,
            complete_max: 1,
            low: u32::MAX,
        }
    }
}

/// A latency to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Longest latency, in nanoseconds.
    pub latency_ns: u64,
    /// How long a depth is tried, in nanoseconds.
    pub window_ns: u64,
    /// Share of requests that must keep it, in percent.
    pub percent: f64,
    /// Go on adapting the depth; otherwise the depth that was found is measured for one window.
    pub keeps_on: bool,
}

/// What a thread does after it looked at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Goes on.
    On,
    /// Forgets what it recorded: the depth is found, and what comes now counts.
    Restart,
    /// Ends.
    End,
}

/// What may be in flight.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    batches: Batches,
    depth: u32,
    draining_to: Option<u32>,
    search: Option<Search>,
}

/// Doubles the depth until the target is missed, then halves the interval between the largest depth that
/// kept it and the smallest that did not (fio's steps).
#[derive(Clone, Debug)]
struct Search {
    target: Target,
    /// Largest depth there is.
    most: u32,
    depth: u32,
    low: u32,
    high: u32,
    kept_in_a_row: u32,
    is_last: bool,
    /// The window of the moment; it begins once requests of other depths are over.
    since_ns: Option<u64>,
    ios: u64,
    missed: u64,
    restart: bool,
}

impl Gate {
    pub(super) fn new(depth: u32, batches: Batches, target: Option<Target>) -> Self {
        Self {
            batches,
            depth,
            draining_to: None,
            search: target.map(|target| Search {
                target,
                most: depth,
                depth: 1,
                low: 1,
                high: depth,
                kept_in_a_row: 0,
                is_last: false,
                since_ns: None,
                ios: 0,
                missed: 0,
                restart: false,
            }),
        }
    }

    /// Most requests in flight at the moment.
    #[inline]
    pub(super) fn limit(&self) -> u32 {
        self.search
            .as_ref()
            .map_or(self.depth, |search| search.depth)
    }

    /// Whether requests may be submitted now.
    #[inline]
    pub(super) fn opens(&mut self, in_flight: u32) -> bool {
        if let Some(low) = self.draining_to {
            if in_flight > low {
                return false;
            }
            self.draining_to = None;
        }
        true
    }

    /// Notes that the queue is full.
    #[inline]
    pub(super) fn filled(&mut self) {
        if self.batches.low < self.limit() {
            self.draining_to = Some(self.batches.low);
        }
    }

    /// Whether completions are looked for after each request.
    #[inline]
    pub(super) fn is_eager(&self) -> bool {
        self.batches.complete_min == 0
    }

    /// Completions to wait for.
    pub(super) fn awaited(&self, in_flight: u32) -> usize {
        self.batches.complete_min.clamp(1, in_flight.max(1)) as usize
    }

    /// Notes the latency of a request. `false` where it must end the thread: all requests were to keep
    /// the target, and there is no lower depth.
    pub(super) fn completed(&mut self, latency_ns: u64) -> bool {
        let Some(search) = self.search.as_mut() else {
            return true;
        };
        if search.since_ns.is_none() {
            return true;
        }
        search.ios += 1;
        if latency_ns <= search.target.latency_ns {
            return true;
        }
        search.missed += 1;
        if search.target.percent < 100.0 {
            return true;
        }
        if search.depth == 1 {
            return false;
        }
        search.lower();
        self.draining_to = Some(0);
        true
    }

    /// Looks whether it is time for another depth.
    pub(super) fn look(&mut self, now_ns: u64, in_flight: u32) -> Turn {
        let Some(search) = self.search.as_mut() else {
            return Turn::On;
        };
        let Some(since_ns) = search.since_ns else {
            if self.draining_to.is_some() && in_flight > 0 {
                return Turn::On;
            }
            search.since_ns = Some(now_ns);
            return match std::mem::take(&mut search.restart) {
                true => Turn::Restart,
                false => Turn::On,
            };
        };
        if now_ns.saturating_sub(since_ns) < search.target.window_ns || search.ios == 0 {
            return Turn::On;
        }
        let kept = (search.ios - search.missed) as f64 * 100.0 / search.ios as f64;
        if kept < search.target.percent {
            if search.depth > 1 {
                search.lower();
                self.draining_to = Some(0);
            } else {
                search.begin();
            }
            return Turn::On;
        }
        if search.is_last {
            return Turn::End;
        }
        if search.raise() {
            self.draining_to = Some(0);
        }
        Turn::On
    }
}

impl Search {
    fn begin(&mut self) {
        (self.since_ns, self.ios, self.missed) = (None, 0, 0);
    }

    fn lower(&mut self) {
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = ((self.depth + self.low) / 2).max(1);
        (self.kept_in_a_row, self.is_last) = (0, false);
        self.begin();
    }

    /// Whether the depth stays, and is measured now.
    fn raise(&mut self) -> bool {
        let before = self.depth;
        self.low = self.depth;
        if self.depth + 1 == self.high {
            // The latency at this depth may be far below the target: try the next one from time to time.
            self.kept_in_a_row += 1;
            if self.kept_in_a_row >= 3 {
                (self.high, self.kept_in_a_row) = (self.high + 1, 0);
            }
        }
        self.depth = if self.high == self.most {
            (self.depth * 2).min(self.high)
        } else {
            (self.depth + self.high) / 2
        };
        self.depth = self.depth.min(self.most);
        let found = self.depth == before && !self.target.keeps_on;
        if found {
            (self.is_last, self.restart) = (true, true);
        }
        self.begin();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 1000;

    fn target(percent: f64) -> Target {
        Target {
            latency_ns: 100,
            window_ns: WINDOW_NS,
            percent,
            keeps_on: false,
        }
    }

    /// Depths that a search tries on a device which takes 10 ns per request in flight.
    fn searched(percent: f64, most: u32) -> (Vec<u32>, Turn) {
        let mut gate = Gate::new(most, Batches::default(), Some(target(percent)));
        let (mut depths, mut now_ns) = (Vec::new(), 0);
        for _ in 0..40 {
            let turn = gate.look(now_ns, 0);
            assert!(gate.opens(0));
            let depth = gate.limit();
            match turn {
                Turn::End => return (depths, turn),
                Turn::Restart => depths.push(0),
                Turn::On => {}
            }
            if depths.last() != Some(&depth) {
                depths.push(depth);
            }
            assert!(gate.completed(u64::from(depth) * 10));
            now_ns += WINDOW_NS;
        }
        (depths, Turn::On)
    }

    #[test]
    fn the_deepest_queue_that_keeps_the_target_is_found() {
        let (depths, turn) = searched(99.0, 64);
        assert_eq!(turn, Turn::End);
        assert_eq!(depths[..5], [1, 2, 4, 8, 16]);
        let last = *depths.last().unwrap();
        assert!((9..=10).contains(&last), "{depths:?}");
        // The mark of a restart stands before the last window.
        assert_eq!(depths[depths.len() - 2], 0, "{depths:?}");
        let (depths, turn) = searched(100.0, 8);
        assert_eq!((depths, turn), (vec![1, 2, 4, 8, 0, 8], Turn::End));
    }

    #[test]
    fn a_target_that_depth_one_misses_ends_the_thread() {
        let mut gate = Gate::new(8, Batches::default(), Some(target(100.0)));
        assert_eq!(gate.look(0, 0), Turn::On);
        assert!(gate.completed(100) && !gate.completed(101));
        let mut patient = Gate::new(8, Batches::default(), Some(target(90.0)));
        patient.look(0, 0);
        assert!(patient.completed(101));
    }

    #[test]
    fn full_queues_drain_and_completions_are_awaited() {
        let batches = Batches {
            low: 2,
            ..Batches::default()
        };
        let mut gate = Gate::new(8, batches, None);
        assert!(gate.opens(0) && gate.opens(7));
        gate.filled();
        assert!(!gate.opens(4) && !gate.opens(3) && gate.opens(2) && gate.opens(4));
        let mut plain = Gate::new(8, Batches::default(), None);
        plain.filled();
        assert!(plain.opens(7) && plain.awaited(8) == 1 && !plain.is_eager());
        let pairs = Batches {
            complete_min: 2,
            ..Batches::default()
        };
        let pairs = Gate::new(8, pairs, None);
        assert_eq!((pairs.awaited(8), pairs.awaited(1)), (2, 1));
    }
}

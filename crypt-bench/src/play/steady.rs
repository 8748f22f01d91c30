//! Steady state as fio judges it: throughput of each second over a rolling window, and whether it varies
//! or slopes less than a limit. Threads count, somebody else looks once a second.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often throughput is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether threads have ended.
const PAUSE: Duration = Duration::from_millis(10);

/// What is to become steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
}

/// When a thread or a group of them is in a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyRule {
    /// What is looked at.
    pub figure: Figure,
    /// The slope of a straight line through the figures, per second; otherwise the largest distance from
    /// their mean.
    pub slope: bool,
    /// What that must stay below.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub percent: bool,
    /// Length of the window, in seconds; at least 1.
    pub window_s: u64,
    /// Time before the first figure, in seconds.
    pub ramp_s: u64,
}

/// How a search for a steady state ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Steadiness {
    /// What was looked for.
    pub rule: SteadyRule,
    /// Whether it was found.
    pub attained: bool,
    /// The last value that was held against the limit, in its unit.
    pub criterion: f64,
    /// The last slope or largest distance from the mean, in requests or bytes per second.
    pub value: f64,
    /// Requests per second of the window, oldest first.
    pub iops: Vec<u64>,
    /// Bytes per second of the window, oldest first.
    pub bytes_per_s: Vec<u64>,
}

impl Steadiness {
    fn new(rule: SteadyRule) -> Self {
        Self {
            rule,
            attained: false,
            criterion: 0.0,
            value: 0.0,
            iops: Vec::new(),
            bytes_per_s: Vec::new(),
        }
    }

    /// Takes the figures of a second. `true` once the state is steady.
    fn push(&mut self, iops: u64, bytes_per_s: u64) -> bool {
        let window = self.rule.window_s.max(1) as usize;
        for (figures, new) in [(&mut self.iops, iops), (&mut self.bytes_per_s, bytes_per_s)] {
            if figures.len() == window {
                figures.remove(0);
            }
            figures.push(new);
        }
        let figures = match self.rule.figure {
            Figure::Iops => &self.iops,
            Figure::Bandwidth => &self.bytes_per_s,
        };
        if figures.len() < window {
            return false;
        }
        let mean = figures.iter().sum::<u64>() as f64 / window as f64;
        self.value = if self.rule.slope {
            slope(figures, mean)
        } else {
            let distances = figures.iter().map(|figure| (*figure as f64 - mean).abs());
            distances.fold(0.0, f64::max)
        };
        self.criterion = match self.rule.percent {
            true if mean > 0.0 => 100.0 * self.value / mean,
            true => f64::INFINITY,
            false => self.value,
        };
        self.attained = self.criterion.abs() < self.rule.limit;
        self.attained
    }
}

/// Of the straight line through equally spaced figures, by least squares.
fn slope(figures: &[u64], mean: f64) -> f64 {
    let middle = (figures.len() - 1) as f64 / 2.0;
    let (mut along, mut squares) = (0.0, 0.0);
    for (index, figure) in figures.iter().enumerate() {
        let x = index as f64 - middle;
        along += x * (*figure as f64 - mean);
        squares += x * x;
    }
    if squares > 0.0 { along / squares } else { 0.0 }
}

/// What a thread lets others see while it plays.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Completed reads and writes, where somebody looks for a steady state.
    pub(super) ios: AtomicU64,
    /// Their bytes.
    pub(super) bytes: AtomicU64,
    /// It has ended.
    pub(super) ended: AtomicBool,
    /// It is to end.
    pub(super) stop: AtomicBool,
}

impl Progress {
    /// Marks the end when dropped, however the thread ends.
    pub(super) fn ending(&self) -> Ending<'_> {
        Ending(self)
    }
}

/// See [`Progress::ending`].
pub(super) struct Ending<'a>(&'a Progress);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

/// Threads that become steady together.
struct Group<'a> {
    /// Index of its first thread.
    first: usize,
    threads: Vec<&'a Progress>,
    steadiness: Steadiness,
    ios: u64,
    bytes: u64,
}

/// Looks at the threads until all have ended, and ends those that are steady. `rules` holds the group and
/// the rule of each thread. Returns the outcome of each group at the index of its first thread.
pub(super) fn watch(
    progress: &[Progress],
    rules: &[Option<(usize, SteadyRule)>],
) -> Vec<Option<Steadiness>> {
    let mut groups = groups(progress, rules);
    let start = Instant::now();
    let mut seconds = 0;
    let mut last = start;
    while progress
        .iter()
        .any(|one| !one.ended.load(Ordering::Acquire))
    {
        std::thread::sleep(PAUSE);
        if groups.is_empty() || start.elapsed() < LOOK * (seconds + 1) {
            continue;
        }
        seconds = start.elapsed().as_secs() as u32;
        let took_s = last.elapsed().as_secs_f64();
        last = Instant::now();
        for group in &mut groups {
            group.look(u64::from(seconds), took_s);
        }
    }
    let mut outcomes: Vec<Option<Steadiness>> = progress.iter().map(|_| None).collect();
    for group in groups {
        outcomes[group.first] = Some(group.steadiness);
    }
    outcomes
}

fn groups<'a>(progress: &'a [Progress], rules: &[Option<(usize, SteadyRule)>]) -> Vec<Group<'a>> {
    let mut groups: Vec<(usize, Group<'a>)> = Vec::new();
    for (index, (one, rule)) in progress.iter().zip(rules).enumerate() {
        let Some((id, rule)) = *rule else {
            continue;
        };
        let alike = |(known, group): &&mut (usize, Group<'_>)| {
            *known == id && group.steadiness.rule == rule
        };
        match groups.iter_mut().find(alike) {
            Some((_, group)) => group.threads.push(one),
            None => groups.push((
                id,
                Group {
                    first: index,
                    threads: vec![one],
                    steadiness: Steadiness::new(rule),
                    ios: 0,
                    bytes: 0,
                },
            )),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

impl Group<'_> {
    fn look(&mut self, seconds: u64, took_s: f64) {
        let sum = |count: fn(&Progress) -> &AtomicU64| {
            let counts = self
                .threads
                .iter()
                .map(|one| count(one).load(Ordering::Relaxed));
            counts.sum::<u64>()
        };
        let (ios, bytes) = (sum(|one| &one.ios), sum(|one| &one.bytes));
        let per_s = |new: u64| (new as f64 / took_s).round() as u64;
        let (new_ios, new_bytes) = (per_s(ios - self.ios), per_s(bytes - self.bytes));
        (self.ios, self.bytes) = (ios, bytes);
        let running = self
            .threads
            .iter()
            .any(|one| !one.ended.load(Ordering::Acquire));
        if seconds <= self.steadiness.rule.ramp_s || self.steadiness.attained || !running {
            return;
        }
        if self.steadiness.push(new_ios, new_bytes) {
            for one in &self.threads {
                one.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(slope: bool, limit: f64, percent: bool) -> SteadyRule {
        SteadyRule {
            figure: Figure::Iops,
            slope,
            limit,
            percent,
            window_s: 4,
            ramp_s: 0,
        }
    }

    /// The number of seconds until it is steady.
    fn seconds(rule: SteadyRule, iops: &[u64]) -> Option<usize> {
        let mut steadiness = Steadiness::new(rule);
        let found = iops
            .iter()
            .position(|&iops| steadiness.push(iops, iops * 4096));
        found.map(|index| index + 1)
    }

    #[test]
    fn a_state_is_steady_once_no_second_is_far_from_the_mean() {
        let iops = [1000, 500, 400, 410, 390, 400, 400];
        assert_eq!(seconds(rule(false, 5.0, true), &iops), Some(6));
        assert_eq!(seconds(rule(false, 20.0, false), &iops), Some(6));
        assert_eq!(seconds(rule(false, 5.0, false), &iops), None);
        // Nothing done is not steady in percent.
        assert_eq!(seconds(rule(false, 5.0, true), &[0; 9]), None);
    }

    #[test]
    fn slopes_are_those_of_least_squares() {
        assert!((slope(&[10, 20, 30, 40], 25.0) - 10.0).abs() < 1e-9);
        assert!((slope(&[5, 1, 1, 5], 3.0)).abs() < 1e-9);
        assert_eq!(slope(&[7], 7.0), 0.0);
        assert_eq!(seconds(rule(true, 11.0, false), &[10, 20, 30, 40]), Some(4));
        let falling = [400, 300, 200, 100, 100, 100, 100];
        assert_eq!(seconds(rule(true, 1.0, true), &falling), Some(7));
    }

    #[test]
    fn the_window_keeps_its_length() {
        let mut steadiness = Steadiness::new(rule(false, 0.0, false));
        for iops in 1..=6 {
            steadiness.push(iops, iops * 10);
        }
        assert_eq!(steadiness.iops, [3, 4, 5, 6]);
        assert_eq!(steadiness.bytes_per_s, [30, 40, 50, 60]);
        assert_eq!(steadiness.value, 1.5);
    }
}

//! What threads saw, as one report per thread or, with `group_reporting`, per group. Pure.

#![forbid(unsafe_code)]

use std::collections::HashSet;

use super::compared::{self, Compared};
use super::doubts;
use crate::doubt::Doubt;
use crate::fio::write::{self, Usage};
use crate::generate::Lengths;
use crate::jobfile::job::Job;
use crate::jobfile::place::{Copy, Plan};
use crate::jobfile::value::Value;
use crate::play::{Played, Steadiness, Target};
use crate::record::{DirectionRecorder, Times, Window};
use crate::result::{DirectionStats, Distribution};

/// Figures of a thread or group.
pub(super) struct Report {
    /// Index of its first job.
    pub(super) job: usize,
    /// Name of its first job.
    pub(super) name: String,
    /// Number of its group.
    pub(super) group: usize,
    /// Threads that are in it.
    pub(super) threads: usize,
    /// Longest time of a thread, in nanoseconds.
    pub(super) runtime_ns: u64,
    /// Times of all threads, added up, in nanoseconds.
    pub(super) thread_time_ns: u64,
    /// Reads.
    pub(super) read: Option<DirectionStats>,
    /// Writes.
    pub(super) write: Option<DirectionStats>,
    /// Flushes.
    pub(super) flush: Option<DirectionStats>,
    /// Latency of reads and writes from their intended start, where there is a rate.
    pub(super) response: [Option<Distribution>; 2],
    /// Requests that failed.
    pub(super) errors: u64,
    /// Error number of the first of them; 0 without.
    pub(super) errno: i32,
    /// Depth of its first thread: that of the search where there was a target.
    pub(super) depth: u32,
    /// A latency that was to be kept.
    pub(super) target: Option<Target>,
    /// How a search for a steady state ended.
    pub(super) steadiness: Option<Steadiness>,
    /// Length of a slice of the throughput over time, in nanoseconds.
    pub(super) slice_ns: u64,
    /// Bytes of every read and of every write, where all have the same.
    pub(super) request_bytes: [Option<u64>; 2],
    /// Processor use, once all threads have ended.
    pub(super) usage: Option<Usage>,
    /// How late the requests of traces were.
    pub(super) lateness: Option<Distribution>,
    /// What came out of comparing blocks.
    pub(super) verified: Option<Compared>,
    /// Percentiles to show.
    pub(super) percentiles: Vec<f64>,
    /// Which latencies get percentiles: slat, clat, lat.
    pub(super) shown: [bool; 3],
    /// Why the figures may not be what they seem.
    pub(super) doubts: Vec<Doubt>,
    /// How it ran: engine, direct I/O, remarks.
    pub(super) facts: Vec<String>,
}

/// The reports of a plan, in order. Threads that have not begun are in none.
pub(super) fn reports(plan: &Plan, threads: &[Option<&Played>]) -> Vec<Report> {
    let merged: HashSet<usize> = plan
        .copies
        .iter()
        .filter(|copy| plan.jobs[copy.job].settings.flag("group_reporting"))
        .map(|copy| copy.group)
        .collect();
    let mut parts: Vec<(Vec<&Copy>, Vec<&Played>, bool)> = Vec::new();
    let begun = plan.copies.iter().zip(threads);
    for (copy, played) in begun.filter_map(|(copy, thread)| Some((copy, (*thread)?))) {
        match parts.last_mut() {
            Some((copies, part, alike))
                if copies[0].group == copy.group && merged.contains(&copy.group) =>
            {
                *alike &= copies[0].job == copy.job;
                copies.push(copy);
                part.push(played);
            }
            _ => parts.push((vec![copy], vec![played], true)),
        }
    }
    parts
        .iter()
        .map(|(copies, threads, alike)| {
            let first = copies[0];
            let mut report = report(&plan.jobs[first.job], copies, threads);
            report.doubts = doubts::of(plan, first, *alike, &report, threads);
            report
        })
        .collect()
}

fn report(job: &Job, copies: &[&Copy], threads: &[&Played]) -> Report {
    let first = copies[0];
    let window = longest(threads);
    let response = |direction: usize| {
        let recorders = threads
            .iter()
            .filter_map(|played| Some(&played.intended.as_ref()?[direction]));
        sum(recorders, &window).map(|stats| stats.lat)
    };
    let percentiles = job.settings.find("percentile_list");
    let verified = compared::of(copies, threads);
    let first_error = threads.iter().find_map(|played| played.first_error);
    Report {
        job: first.job,
        name: job.name.clone(),
        group: first.group,
        threads: threads.len(),
        runtime_ns: window.length_ns(),
        thread_time_ns: thread_time_ns(threads),
        read: sum(threads.iter().map(|played| &played.read), &window),
        write: sum(threads.iter().map(|played| &played.write), &window),
        flush: sum(threads.iter().map(|played| &played.flush), &window),
        response: [response(0), response(1)],
        errors: threads.iter().map(|played| played.errors).sum::<u64>()
            + verified.as_ref().map_or(0, |verified| verified.mismatches),
        errno: match (first_error, &verified) {
            (Some((_, errno)), _) => errno.raw(),
            (None, Some(verified)) if verified.mismatches > 0 => compared::ERRNO,
            _ => 0,
        },
        lateness: lateness(threads),
        verified,
        depth: threads.first().map_or(0, |played| played.depth),
        target: job.conduct.target,
        steadiness: threads.iter().find_map(|played| played.steadiness.clone()),
        slice_ns: window.slice_ns(),
        request_bytes: [&job.read_lengths, &job.write_lengths].map(|lengths| match lengths {
            Lengths::Fixed(bytes) => Some(*bytes),
            _ => None,
        }),
        usage: usage(threads),
        percentiles: match percentiles.map(|setting| &setting.value) {
            Some(Value::Percentiles(list)) => list.clone(),
            _ => write::PERCENTILES.to_vec(),
        },
        shown: [
            job.settings.flag_or("slat_percentiles", false),
            job.settings.flag_or("clat_percentiles", true),
            job.settings.flag_or("lat_percentiles", false),
        ],
        doubts: Vec::new(),
        facts: facts(threads),
    }
}

/// In percent of the time that the threads took.
fn usage(threads: &[&Played]) -> Option<Usage> {
    let mut sum = Usage::default();
    let percent = 100.0 / (thread_time_ns(threads).max(1) as f64 / 1e9);
    for played in threads {
        let used = played.usage?;
        sum.user_percent += used.user_s * percent;
        sum.system_percent += used.system_s * percent;
    }
    Some(sum)
}

fn lateness(threads: &[&Played]) -> Option<Distribution> {
    let mut all = Times::default();
    for times in threads.iter().filter_map(|played| played.lateness.as_ref()) {
        all.absorb(times);
    }
    all.distribution()
}

fn thread_time_ns(threads: &[&Played]) -> u64 {
    threads.iter().map(|played| played.window.length_ns()).sum()
}

/// The longest of the threads' windows: rates are over all of the time.
fn longest(threads: &[&Played]) -> Window {
    let windows = threads.iter().map(|played| played.window);
    windows
        .max_by_key(Window::length_ns)
        .unwrap_or_else(|| Window::new(0, 1))
}

pub(super) fn sum<'a>(
    mut recorders: impl Iterator<Item = &'a DirectionRecorder>,
    window: &Window,
) -> Option<DirectionStats> {
    let mut total = recorders.next()?.clone();
    recorders.for_each(|recorder| total.absorb(recorder));
    total.stats(window)
}

fn facts(threads: &[&Played]) -> Vec<String> {
    let mut facts: Vec<String> = Vec::new();
    let mut add = |fact: String| {
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    };
    for played in threads {
        let cache = match (played.facts.engine, played.facts.direct) {
            ("immediate", _) => "",
            (_, true) => ", direct",
            (_, false) => ", buffered",
        };
        let polled = if played.facts.polled { ", polled" } else { "" };
        add(format!("{}{cache}{polled}", played.facts.engine));
        for note in &played.facts.notes {
            add(note.clone());
        }
        if !played.pinned {
            add("did not run on the CPUs of cpus_allowed".to_owned());
        }
    }
    facts
}

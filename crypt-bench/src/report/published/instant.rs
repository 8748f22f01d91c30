//! The distribution of instant throughput, that is of the slices of a measurement, and whether it has more
//! than one mode by Hartigan's dip test (see `dip`).
//!
//! Each repeat is tested by itself, since repeats may run at different levels, and the smallest p-value is
//! multiplied by their number (Bonferroni). Slices next to each other hang together, which makes p-values too
//! small; so the test is done again on slices far enough apart, and only where both reject one mode it is
//! called several. A drift over a run is several modes too, and the order of slices is not looked at.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::super::cells::CellSummary;
use super::Layout;
use crate::dip::{self, Null};
use crate::result::ResultRecord;

/// Uniform samples behind each p-value.
pub(super) const DRAWS: usize = 2000;
/// Below this p-value one mode is rejected.
pub(super) const ALPHA: f64 = 0.01;
/// Bars of a histogram.
const BARS: usize = 24;
const SEED: u64 = 0x0d1b;
const MIB: f64 = 1_048_576.0;

/// The slices of one row and column. Throughputs are in MiB/s.
#[derive(Clone, Debug, PartialEq)]
pub struct Instant {
    /// The workload in words.
    pub workload: String,
    /// Heading of the column.
    pub column: String,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Whole slices of all valid repeats.
    pub slices: usize,
    /// Valid repeats.
    pub repeats: usize,
    /// 5th, 50th and 95th percentile over all slices.
    pub p5_p50_p95: [f64; 3],
    /// Correlation of a slice with the next, averaged over the repeats.
    pub correlation: f64,
    /// The dip of the repeat with the smallest p-value.
    pub dip: f64,
    /// p-value of one mode, as if slices were independent.
    pub p_value: f64,
    /// The same of slices that are far enough apart.
    pub p_value_thinned: f64,
    /// What that says.
    pub verdict: Verdict,
    /// The means of the two groups that differ most.
    pub modes: Option<(f64, f64)>,
    /// Slices between the 1st and the 99th percentile, in equal steps.
    pub bars: Vec<u32>,
    /// Where the bars begin and end.
    pub bars_range: (f64, f64),
}

/// How many modes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One mode is rejected, also for slices far enough apart.
    Several,
    /// One mode is rejected only if slices were independent, which they are not.
    Unclear,
    /// One mode is not rejected.
    One,
    /// Too few slices to say anything.
    TooFew,
}

impl Verdict {
    /// In a word or two.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Several => "several modes",
            Self::Unclear => "unclear",
            Self::One => "one mode",
            Self::TooFew => "too few slices",
        }
    }
}

/// p-values of one repeat.
struct Tested {
    dip: f64,
    p_value: f64,
    p_value_thinned: f64,
    correlation: f64,
}

/// The slices of every cell that was asked for some.
pub(super) fn of(layout: &Layout<'_, '_>) -> Vec<Instant> {
    let mut nulls = HashMap::new();
    let mut found = Vec::new();
    for workload in &layout.workloads {
        let names = layout.keys.iter().map(|axis| axis.name());
        let words: Vec<String> = names
            .zip(layout.keys_of(workload))
            .map(|(name, text)| {
                if name == "rw" || name == "device" {
                    text
                } else {
                    format!("{name} {text}")
                }
            })
            .collect();
        for (heading, policy) in &layout.columns {
            let cell = workload.iter().find(|cell| cell.params.policy == *policy);
            let Some(cell) = cell.filter(|cell| cell.params.slice_us.is_some()) else {
                continue;
            };
            found.extend(instant(cell, &words.join(" · "), heading, &mut nulls));
        }
    }
    found
}

fn instant(
    cell: &CellSummary<'_>,
    workload: &str,
    column: &str,
    nulls: &mut HashMap<usize, Null>,
) -> Option<Instant> {
    let valid: Vec<&ResultRecord> = cell
        .records
        .iter()
        .copied()
        .filter(|r| r.is_valid())
        .collect();
    let slice_ns = valid.first()?.slice_ns;
    let series: Vec<(Vec<f64>, f64)> = valid.iter().filter_map(|record| series(record)).collect();
    let tested: Option<Vec<Tested>> = series
        .iter()
        .map(|(values, step)| tested(values, *step, nulls))
        .collect();
    let mut all: Vec<f64> = series.into_iter().flat_map(|(values, _)| values).collect();
    all.sort_by(f64::total_cmp);
    let quantile =
        |percent: usize| all.get((all.len() * percent / 100).min(all.len().wrapping_sub(1)));
    let at = |percent: usize| quantile(percent).copied().unwrap_or(0.0);
    let range = (at(1), at(99));
    let worst = summary_of(&tested.unwrap_or_default());
    Some(Instant {
        workload: workload.to_owned(),
        column: column.to_owned(),
        slice_ns,
        slices: all.len(),
        repeats: valid.len(),
        p5_p50_p95: [5, 50, 95].map(at),
        verdict: verdict(worst.as_ref()),
        correlation: worst.as_ref().map_or(0.0, |worst| worst.correlation),
        dip: worst.as_ref().map_or(0.0, |worst| worst.dip),
        p_value: worst.as_ref().map_or(1.0, |worst| worst.p_value),
        p_value_thinned: worst.as_ref().map_or(1.0, |worst| worst.p_value_thinned),
        modes: dip::two_means(&all),
        bars: bars(&all, range),
        bars_range: range,
    })
}

/// Throughput of each whole slice, and the step that one request makes; `None` where nothing completed.
fn series(record: &ResultRecord) -> Option<(Vec<f64>, f64)> {
    let whole = (record.achieved.runtime_ns / record.slice_ns.max(1)) as usize;
    let (ios, bytes) = record.directions().fold((0, 0), |(ios, bytes), stats| {
        (ios + stats.ios, bytes + stats.bytes)
    });
    let seconds = record.slice_ns as f64 / 1e9;
    let step = bytes as f64 / ios as f64 / seconds / MIB;
    let slice = |index: usize| -> f64 {
        let counts = record
            .directions()
            .filter_map(|stats| stats.slice_ios.get(index));
        counts.sum::<u64>() as f64 * step
    };
    (ios > 0).then(|| ((0..whole).map(slice).collect(), step))
}

/// `None` where there are too few slices.
fn tested(values: &[f64], step: f64, nulls: &mut HashMap<usize, Null>) -> Option<Tested> {
    let spread = dip::without_ties(values, step, SEED);
    let correlation = dip::autocorrelation(values);
    let thin = dip::thinned(&spread, correlation);
    let mut test = |values: &[f64]| -> Option<(f64, f64)> {
        let found = dip::dip(values)?;
        let null = nulls
            .entry(values.len())
            .or_insert_with(|| Null::new(values.len(), DRAWS, SEED));
        Some((found, null.p_value(found)))
    };
    let (found, p_value) = test(&spread)?;
    Some(Tested {
        dip: found,
        p_value,
        // Too few to test are too few to reject anything.
        p_value_thinned: test(&thin).map_or(1.0, |(_, p)| p),
        correlation,
    })
}

/// The repeats together; `None` without any.
fn summary_of(repeats: &[Tested]) -> Option<Tested> {
    let count = repeats.len() as f64;
    let least = |of: fn(&Tested) -> f64| {
        let least = repeats.iter().map(of).fold(1.0, f64::min);
        (least * count).min(1.0)
    };
    let first = repeats.iter().min_by(|a, b| {
        a.p_value
            .total_cmp(&b.p_value)
            .then(b.dip.total_cmp(&a.dip))
    })?;
    Some(Tested {
        dip: first.dip,
        p_value: least(|repeat| repeat.p_value),
        p_value_thinned: least(|repeat| repeat.p_value_thinned),
        correlation: repeats.iter().map(|repeat| repeat.correlation).sum::<f64>() / count,
    })
}

fn verdict(tested: Option<&Tested>) -> Verdict {
    match tested {
        None => Verdict::TooFew,
        Some(tested) if tested.p_value >= ALPHA => Verdict::One,
        Some(tested) if tested.p_value_thinned >= ALPHA => Verdict::Unclear,
        Some(_) => Verdict::Several,
    }
}

fn bars(sorted: &[f64], (least, most): (f64, f64)) -> Vec<u32> {
    let mut bars = vec![0; BARS];
    for value in sorted
        .iter()
        .filter(|value| (least..=most).contains(*value))
    {
        let share = (value - least) / (most - least);
        let bar = if share.is_finite() {
            (share * BARS as f64) as usize
        } else {
            0
        };
        if let Some(count) = bars.get_mut(bar.min(BARS - 1)) {
            *count += 1;
        }
    }
    bars
}

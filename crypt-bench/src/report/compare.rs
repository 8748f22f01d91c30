//! Ratios between policies: of one cell with the noise of its repeats, and over a whole matrix.
//!
//! The candidate is the adaptive policy where there is one; the others are the fixed policies that
//! it has to beat. A ratio is candidate / other in the metric's own unit, so for latency a value
//! below 1 is the better one; [`gain`] turns both into "larger is better".
//!
//! Noise comes from repeats alone and assumes no distribution: a difference counts as beyond noise
//! only where every repeat of one side lies beyond every repeat of the other. The better of two
//! noisy fixed policies is a little flattered by its noise; that bias is against the candidate.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use super::cells::{CellSummary, range};
use super::grid::{Cell, Noise};
use super::metric::Metric;
use crate::result::{CellParams, RAW_POLICY};

/// Which policy is judged, and against which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineup {
    /// The policy under judgement.
    pub candidate: String,
    /// The others, in the order of the plan.
    pub others: Vec<String>,
    /// Shown beside them, and not to be beaten: what the device does without encryption.
    pub references: Vec<String>,
}

/// One workload under every policy: what is compared with each other.
pub type Workloads<'a, 'b> = BTreeMap<(usize, CellParams), Vec<&'b CellSummary<'a>>>;

/// One ratio, with how far it can be trusted.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a, 'b> {
    /// The candidate's cell.
    pub candidate: &'b CellSummary<'a>,
    /// The other policy's cell.
    pub other: &'b CellSummary<'a>,
    /// Candidate / other.
    pub ratio: f64,
    /// Against the spread of the repeats.
    pub noise: Noise,
}

impl Lineup {
    /// The line-up of some cells; `None` without cells. Without an adaptive policy the last one of
    /// the plan is the candidate.
    #[must_use]
    pub fn of(cells: &[CellSummary<'_>]) -> Option<Self> {
        let mut policies: Vec<&str> = Vec::new();
        for cell in cells {
            let policy = cell.params.policy.as_str();
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        let (mut references, mut policies): (Vec<&str>, Vec<&str>) =
            policies.into_iter().partition(|name| *name == RAW_POLICY);
        if policies.is_empty() {
            std::mem::swap(&mut references, &mut policies);
        }
        let adaptive = policies.iter().position(|p| is_adaptive(p));
        let candidate = policies.remove(adaptive.or(policies.len().checked_sub(1))?);
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Some(Self {
            candidate: candidate.to_owned(),
            others: owned(policies),
            references: owned(references),
        })
    }

    /// Whether the candidate chooses per request, and is not merely the last one named.
    #[must_use]
    pub fn is_adaptive(&self) -> bool {
        is_adaptive(&self.candidate)
    }

    /// Every policy: references first, the candidate last.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.references
            .iter()
            .chain(&self.others)
            .chain([&self.candidate])
            .map(String::as_str)
    }
}

/// Whether a policy chooses per request.
#[must_use]
pub fn is_adaptive(policy: &str) -> bool {
    policy.split(':').next() == Some("adaptive")
}

/// Groups cells that differ in nothing but the policy.
#[must_use]
pub fn workloads<'a, 'b>(cells: &'b [CellSummary<'a>]) -> Workloads<'a, 'b> {
    let mut workloads = Workloads::new();
    for cell in cells {
        let key = (cell.run, cell.params.without_policy());
        workloads.entry(key).or_default().push(cell);
    }
    workloads
}

/// The candidate against the best of `others` in one workload.
///
/// # Errors
/// The cell to show instead: missing or invalid where any of them is.
pub fn against_best<'a, 'b>(
    workload: &[&'b CellSummary<'a>],
    candidate: &str,
    others: &[String],
    metric: Metric,
) -> Result<Comparison<'a, 'b>, Cell> {
    let find = |policy: &str| {
        let cell = workload
            .iter()
            .copied()
            .find(|cell| cell.params.policy == policy)
            .ok_or(Cell::Missing)?;
        match cell.cell(metric) {
            Cell::Value { value, .. } => Ok((cell, value)),
            Cell::Invalid { why } => Err(Cell::invalid(format!("{policy}: {why}"))),
            Cell::Missing => Err(Cell::Missing),
        }
    };
    let (candidate, own) = find(candidate)?;
    let mut best: Option<(&CellSummary<'_>, f64)> = None;
    for policy in others {
        let (cell, value) = find(policy)?;
        if best.is_none_or(|(_, best)| metric.is_better(value, best)) {
            best = Some((cell, value));
        }
    }
    let (other, value) = best.ok_or(Cell::Missing)?;
    let ratio = own / value;
    if !ratio.is_finite() || ratio <= 0.0 {
        return Err(Cell::invalid("a ratio to or from zero"));
    }
    Ok(Comparison {
        candidate,
        other,
        ratio,
        noise: noise(candidate, other, metric),
    })
}

impl Comparison<'_, '_> {
    /// The ratio as a cell of a grid.
    #[must_use]
    pub fn cell(&self) -> Cell {
        Cell::with_noise(self.ratio, self.noise)
    }
}

fn noise(a: &CellSummary<'_>, b: &CellSummary<'_>, metric: Metric) -> Noise {
    let ranges = (
        range(a.repeat_values(metric)),
        range(b.repeat_values(metric)),
    );
    match ranges {
        (Some((a_least, a_most)), Some((b_least, b_most)))
            if a.repeats.len() >= 2 && b.repeats.len() >= 2 =>
        {
            if a_least > b_most || b_least > a_most {
                Noise::Beyond
            } else {
                Noise::Within
            }
        }
        _ => Noise::Unknown,
    }
}

/// A geometric mean of ratios over many workloads, with its range over the repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overall {
    /// The geometric mean.
    pub ratio: f64,
    /// Smallest and largest when each repeat is taken alone; `None` with fewer than two.
    pub over_repeats: Option<(f64, f64)>,
    /// Number of workloads.
    pub workloads: usize,
}

impl Overall {
    /// The mean of `comparisons`; `None` without any.
    #[must_use]
    pub fn of(comparisons: &[Comparison<'_, '_>], metric: Metric) -> Option<Self> {
        let ratio = geometric_mean(comparisons.iter().map(|c| c.ratio))?;
        let numbers = comparisons.iter().flat_map(|c| c.candidate.repeats.keys());
        let last_repeat = numbers.max().copied().unwrap_or(0);
        let of_repeat = |repeat: u32| {
            let ratios: Option<Vec<f64>> = comparisons
                .iter()
                .map(|c| {
                    let (own, other) = (
                        c.candidate.repeats.get(&repeat)?,
                        c.other.repeats.get(&repeat)?,
                    );
                    Some(metric.of(own)? / metric.of(other)?)
                })
                .collect();
            geometric_mean(ratios?)
        };
        let each: Vec<f64> = (1..=last_repeat).filter_map(of_repeat).collect();
        Some(Self {
            ratio,
            over_repeats: range(each.iter().copied()).filter(|_| each.len() >= 2),
            workloads: comparisons.len(),
        })
    }

    /// Whether the ratio can be told from 1.
    #[must_use]
    pub fn noise(&self) -> Noise {
        match self.over_repeats {
            None => Noise::Unknown,
            Some((least, most)) if least <= 1.0 && most >= 1.0 => Noise::Within,
            Some(_) => Noise::Beyond,
        }
    }
}

/// The geometric mean of positive finite numbers; `None` without any, or with any other number.
#[must_use]
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        if !value.is_finite() || value <= 0.0 {
            return None;
        }
        sum += value.ln();
        count += 1.0;
    }
    (count > 0.0).then(|| (sum / count).exp())
}

/// A ratio turned so that larger is better.
#[must_use]
pub fn gain(metric: Metric, ratio: f64) -> f64 {
    if metric.higher_is_better() {
        ratio
    } else {
        ratio.recip()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::{Run, summarise};
    use super::*;
    use crate::doubt::Doubt;
    use crate::result::ResultRecord;
    use crate::testing::{cell, manifest, record};

    /// Records of one workload: policy and the throughput of each repeat.
    fn run(speeds: &[(&str, &[f64])]) -> Run {
        let records: Vec<ResultRecord> = speeds
            .iter()
            .flat_map(|(policy, repeats)| {
                repeats
                    .iter()
                    .enumerate()
                    .map(|(i, bw)| record(cell(policy, 4096, 1), i as u32 + 1, *bw))
            })
            .collect();
        Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }
    }

    fn compare(run: &Run, metric: Metric) -> Result<(f64, Noise, String), Cell> {
        let cells = summarise(std::slice::from_ref(run));
        let lineup = Lineup::of(&cells).unwrap();
        let workloads = workloads(&cells);
        let workload = workloads.values().next().unwrap();
        against_best(workload, &lineup.candidate, &lineup.others, metric)
            .map(|c| (c.ratio, c.noise, c.other.params.policy.clone()))
    }

    #[test]
    fn the_best_fixed_policy_is_the_fastest_or_the_one_with_the_lowest_latency() {
        let run = run(&[
            ("adaptive", &[2e9]),
            ("inline", &[1e9]),
            ("workqueue:same_cpu_crypt", &[4e9]),
        ]);
        let (ratio, noise, best) = compare(&run, Metric::Throughput).unwrap();
        assert!((ratio - 0.5).abs() < 1e-9);
        assert_eq!(best, "workqueue:same_cpu_crypt");
        assert_eq!(noise, Noise::Unknown);
        let (ratio, _, best) = compare(&run, Metric::LatMean).unwrap();
        assert!(ratio > 1.5 && gain(Metric::LatMean, ratio) < 0.7);
        assert_eq!(best, "workqueue:same_cpu_crypt");
    }

    #[test]
    fn only_repeats_that_do_not_overlap_are_beyond_noise() {
        let apart = run(&[("adaptive", &[1.2e9, 1.3e9]), ("inline", &[1.0e9, 1.1e9])]);
        assert_eq!(
            compare(&apart, Metric::Throughput).unwrap().1,
            Noise::Beyond
        );
        let mixed = run(&[("adaptive", &[1.05e9, 1.3e9]), ("inline", &[1.0e9, 1.1e9])]);
        assert_eq!(
            compare(&mixed, Metric::Throughput).unwrap().1,
            Noise::Within
        );
    }

    #[test]
    fn a_missing_or_invalid_side_leaves_no_ratio() {
        let alone = run(&[("adaptive", &[1e9])]);
        assert_eq!(compare(&alone, Metric::Iops), Err(Cell::Missing));
        let mut invalid = run(&[("adaptive", &[1e9]), ("inline", &[1e9])]);
        invalid.records[1].doubts.push(Doubt::NotDirect);
        let Err(Cell::Invalid { why }) = compare(&invalid, Metric::Iops) else {
            panic!("a ratio against an invalid cell");
        };
        assert!(why.starts_with("inline: "), "{why}");
    }

    #[test]
    fn a_change_to_or_from_zero_is_no_ratio() {
        let mut run = run(&[("adaptive", &[1e9]), ("inline", &[1e9])]);
        if let Some(read) = &mut run.records[1].read {
            read.bw_bytes_per_s = 0.0;
        }
        assert!(matches!(
            compare(&run, Metric::Throughput),
            Err(Cell::Invalid { .. })
        ));
    }

    #[test]
    fn means_are_geometric_and_their_range_is_over_repeats() {
        let run = run(&[("adaptive", &[2e9, 4e9]), ("inline", &[1e9, 1e9])]);
        let cells = summarise(std::slice::from_ref(&run));
        let workloads = workloads(&cells);
        let comparisons: Vec<_> = workloads
            .values()
            .filter_map(|w| against_best(w, "adaptive", &["inline".to_owned()], Metric::Iops).ok())
            .collect();
        let overall = Overall::of(&comparisons, Metric::Iops).unwrap();
        let (least, most) = overall.over_repeats.unwrap();
        assert!((least - 2.0).abs() < 1e-9 && (most - 4.0).abs() < 1e-9);
        assert_eq!(overall.noise(), Noise::Beyond);
        assert_eq!(geometric_mean([4.0, 1.0]), Some(2.0));
        assert_eq!(geometric_mean([]), None);
        assert_eq!(geometric_mean([1.0, 0.0]), None);
        assert_eq!(geometric_mean([1.0, f64::NAN]), None);
    }

    #[test]
    fn the_adaptive_policy_is_the_candidate_wherever_it_stands() {
        let run = run(&[
            ("inline", &[1.0]),
            ("adaptive", &[1.0]),
            ("workqueue", &[1.0]),
        ]);
        let lineup = Lineup::of(&summarise(std::slice::from_ref(&run))).unwrap();
        assert_eq!(lineup.candidate, "adaptive");
        assert_eq!(lineup.others, ["inline", "workqueue"]);
        assert_eq!(lineup.references, Vec::<String>::new());
        assert_eq!(Lineup::of(&[]), None);
    }

    #[test]
    fn the_device_by_itself_is_a_reference_and_no_rival() {
        let run = run(&[("inline", &[1.0]), ("raw", &[9.0]), ("adaptive", &[1.0])]);
        let lineup = Lineup::of(&summarise(std::slice::from_ref(&run))).unwrap();
        assert_eq!(
            (lineup.others, lineup.references),
            (vec!["inline".to_owned()], vec!["raw".to_owned()])
        );
        let alone = vec![record(cell("raw", 4096, 1), 1, 9.0)];
        let alone = Run {
            name: "run".to_owned(),
            manifest: manifest(&alone),
            records: alone,
        };
        let lineup = Lineup::of(&summarise(std::slice::from_ref(&alone))).unwrap();
        assert_eq!(lineup.candidate, "raw");
    }
}

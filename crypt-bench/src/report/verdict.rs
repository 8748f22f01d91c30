//! The answer in three lines: how the candidate does overall, where it does worst, and how far the
//! numbers can be trusted.
//!
//! Pure. Nothing is claimed that the repeats don't carry: a difference within their spread is
//! called a par, and with one repeat the verdict says that noise is unknown.

#![forbid(unsafe_code)]

use super::axis::Axis;
use super::cells::CellSummary;
use super::compare::{Comparison, Overall, gain};
use super::format::{counted, percent, percent_change, times};
use super::grid::{Cell, Noise};
use super::metric::Metric;
use super::model::{Facet, Report};

/// From this ratio on, factors read better than percentages.
const TIMES_FROM: f64 = 3.0;

/// The verdict on a report, each line one or two sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The candidate against each of the others.
    pub headline: String,
    /// The candidate against the best of the others, and its worst workload.
    pub worst: String,
    /// What the headline stands on: workloads, repeats, spread, invalid and missing cells.
    pub trust: String,
}

impl Verdict {
    /// The verdict on `report`.
    #[must_use]
    pub fn of(report: &Report<'_>) -> Self {
        let trust = trust(report);
        let Some(lineup) = &report.lineup else {
            return Self {
                headline: "There are no results.".to_owned(),
                worst: "Nothing was measured, so nothing can be said.".to_owned(),
                trust,
            };
        };
        if lineup.others.is_empty() {
            return Self {
                headline: span(report, &lineup.candidate),
                worst: "Only one policy was measured, so there is nothing to compare it with."
                    .to_owned(),
                trust,
            };
        }
        let means = means(report, &lineup.others);
        let basis = if means.is_empty() {
            String::new()
        } else {
            basis(&means)
        };
        Self {
            headline: headline(&lineup.candidate, &means),
            worst: worst(report, &lineup.others),
            trust: basis + &trust,
        }
    }

    /// The three lines.
    #[must_use]
    pub fn lines(&self) -> [&str; 3] {
        [&self.headline, &self.worst, &self.trust]
    }
}

/// The one policy's slowest and fastest workload.
fn span(report: &Report<'_>, policy: &str) -> String {
    let metric = Metric::Throughput;
    let numbers = || {
        let cells = report.cells.iter();
        cells.filter_map(|cell| Some((cell.cell(metric).value()?, cell)))
    };
    let least = numbers().min_by(|a, b| a.0.total_cmp(&b.0));
    let most = numbers().max_by(|a, b| a.0.total_cmp(&b.0));
    match (least, most) {
        (Some(least), Some(most)) => format!(
            "{policy}: throughput from {} ({}) to {} ({}).",
            metric.unit().text(least.0),
            workload(least.1),
            metric.unit().text(most.0),
            workload(most.1),
        ),
        _ => format!("{policy}: no cell has valid numbers."),
    }
}

/// The candidate's mean against each of the others that it can be compared with.
fn means<'n>(report: &Report<'_>, others: &'n [String]) -> Vec<(&'n str, Overall)> {
    let metric = Metric::Throughput;
    let against = |other: &'n String| {
        let pairs = comparisons(report, std::slice::from_ref(other), metric);
        Some((other.as_str(), Overall::of(&pairs, metric)?))
    };
    others.iter().filter_map(against).collect()
}

fn headline(candidate: &str, means: &[(&str, Overall)]) -> String {
    if means.is_empty() {
        return format!("No workload has valid numbers for {candidate} and another policy.");
    }
    let phrases: Vec<String> = means
        .iter()
        .map(|(other, overall)| against_one(other, overall))
        .collect();
    format!("{} {}.", subject(candidate, means), joined(&phrases))
}

/// Who the headline is about, with a recommendation where the repeats carry one.
fn subject(candidate: &str, means: &[(&str, Overall)]) -> String {
    let beyond = |overall: &Overall| overall.noise() == Noise::Beyond;
    let behind = means
        .iter()
        .filter(|(_, overall)| beyond(overall) && overall.ratio < 1.0)
        .min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    let ahead_of_all = means
        .iter()
        .all(|(_, overall)| beyond(overall) && overall.ratio > 1.0);
    match behind {
        Some((other, _)) => format!("Use {other}: {candidate} is"),
        None if ahead_of_all => format!("Use {candidate}: it is"),
        None => format!("{candidate} is"),
    }
}

fn against_one(other: &str, overall: &Overall) -> String {
    let size = percent(overall.ratio);
    let way = if overall.ratio < 1.0 {
        "slower"
    } else {
        "faster"
    };
    if overall.noise() == Noise::Within {
        format!("on a par with {other} ({size} {way}, within noise)")
    } else if overall.ratio >= TIMES_FROM {
        format!("{} as fast as {other}", times(overall.ratio))
    } else {
        format!("{size} {way} than {other}")
    }
}

/// A ratio to another policy in words.
fn against(ratio: f64, other: &str) -> String {
    if ratio >= TIMES_FROM {
        format!("{} that of {other}", times(ratio))
    } else {
        format!("{} than {other}", more_or_less(ratio))
    }
}

fn more_or_less(ratio: f64) -> String {
    if ratio >= TIMES_FROM {
        return format!("{} as high", times(ratio));
    }
    let way = if ratio < 1.0 { "lower" } else { "higher" };
    format!("{} {way}", percent(ratio))
}

/// What the headline's figures are, with their range over the repeats.
fn basis(means: &[(&str, Overall)]) -> String {
    let workloads = means.iter().map(|(_, overall)| overall.workloads).min();
    let ranges: Vec<String> = means
        .iter()
        .filter_map(|(other, overall)| {
            let (least, most) = overall.over_repeats?;
            Some(if least >= TIMES_FROM {
                format!("{least:.1} to {} {other}", times(most))
            } else {
                let (least, most) = (percent_change(least), percent_change(most));
                format!("{least} to {most} against {other}")
            })
        })
        .collect();
    let over = if ranges.is_empty() {
        String::new()
    } else {
        format!("; over the repeats {}", joined(&ranges))
    };
    let count = counted(workloads.unwrap_or(0), "workload");
    format!("Throughput, geometric mean of {count}{over}. ")
}

fn worst(report: &Report<'_>, others: &[String]) -> String {
    let mut sentences = Vec::new();
    for (metric, name) in [
        (Metric::Throughput, "throughput"),
        (Metric::LatP99, "p99 latency"),
    ] {
        let pairs = report.comparisons(others, metric);
        let plain: Vec<Comparison<'_, '_>> = pairs.iter().map(|(_, c)| *c).collect();
        let lowest = pairs
            .iter()
            .min_by(|a, b| gain(metric, a.1.ratio).total_cmp(&gain(metric, b.1.ratio)));
        if let (Some(overall), Some((facet, lowest))) = (Overall::of(&plain, metric), lowest) {
            sentences.push(format!(
                "{name} {}, at worst {} ({}{})",
                more_or_less(overall.ratio),
                against(lowest.ratio, &lowest.other.params.policy),
                place(facet, lowest.candidate),
                remark(lowest.noise),
            ));
        }
    }
    if sentences.is_empty() {
        return "No workload can be compared with the best other policy.".to_owned();
    }
    let best = if others.len() > 1 {
        "the best other policy of each workload"
    } else {
        others[0].as_str()
    };
    format!("Against {best}: {}.", sentences.join("; "))
}

/// How far the numbers can be trusted.
fn trust(report: &Report<'_>) -> String {
    let metric = Metric::Throughput;
    let cells = &report.cells;
    let repeats = cells.iter().map(|cell| cell.records.len());
    let (fewest, most) = (
        repeats
            .clone()
            .filter(|count| *count > 0)
            .min()
            .unwrap_or(0),
        repeats.max().unwrap_or(0),
    );
    let mut spreads: Vec<f64> = cells
        .iter()
        .filter_map(|c| c.relative_spread(metric))
        .collect();
    spreads.sort_by(f64::total_cmp);
    let noise = match (spreads.get(spreads.len() / 2), most) {
        (_, 0) => "Nothing was measured".to_owned(),
        (Some(median), _) => format!(
            "{} per cell, which spread by ±{} in the median cell",
            if fewest == most {
                counted(most, "repeat")
            } else {
                format!("{fewest} to {most} repeats")
            },
            percent(1.0 + median)
        ),
        (None, _) => "One repeat per cell, so noise is unknown: repeat before trusting a small \
                      difference"
            .to_owned(),
    };
    let count = |wanted: fn(&CellSummary<'_>) -> bool| cells.iter().filter(|c| wanted(c)).count();
    let invalid = count(|c| matches!(c.cell(Metric::Throughput), Cell::Invalid { .. }));
    let missing = count(|c| c.records.is_empty());
    let doubtful = count(|c| c.figures.is_ok() && !c.doubts().is_empty());
    format!(
        "{noise}. Of {}, {invalid} invalid, {missing} missing, {doubtful} with doubts.",
        counted(cells.len(), "cell")
    )
}

fn comparisons<'a, 'b>(
    report: &'b Report<'a>,
    others: &[String],
    metric: Metric,
) -> Vec<Comparison<'a, 'b>> {
    let with_facets = report.comparisons(others, metric);
    with_facets
        .into_iter()
        .map(|(_, comparison)| comparison)
        .collect()
}

fn place(facet: &Facet, cell: &CellSummary<'_>) -> String {
    format!("{}, {}", facet.label(), size_and_depth(cell))
}

fn workload(cell: &CellSummary<'_>) -> String {
    let params = cell.params;
    format!(
        "{} {}, {}",
        params.device,
        params.rw.name(),
        size_and_depth(cell)
    )
}

fn size_and_depth(cell: &CellSummary<'_>) -> String {
    let size = Axis::BlockSize.text(cell.params);
    format!("{size} at depth {}", cell.params.depth)
}

fn remark(noise: Noise) -> &'static str {
    match noise {
        Noise::Unknown => "",
        Noise::Within => "; within noise",
        Noise::Beyond => "; beyond noise",
    }
}

fn joined(phrases: &[String]) -> String {
    match phrases {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::Run;
    use super::*;
    use crate::doubt::Doubt;
    use crate::result::ResultRecord;
    use crate::testing::{cell, manifest, record};

    fn run(speeds: &[(&str, u32, &[f64])]) -> Vec<Run> {
        let mut records: Vec<ResultRecord> = Vec::new();
        for (policy, depth, repeats) in speeds {
            for (index, bw) in repeats.iter().enumerate() {
                records.push(record(cell(policy, 4096, *depth), index as u32 + 1, *bw));
            }
        }
        vec![Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }]
    }

    fn verdict(runs: &[Run]) -> Verdict {
        Verdict::of(&Report::new(runs))
    }

    #[test]
    fn a_clear_win_is_a_recommendation_with_its_range() {
        let runs = run(&[
            ("inline", 1, &[1e9, 1e9]),
            ("workqueue", 1, &[1.2e9, 1.2e9]),
            ("adaptive", 1, &[1.5e9, 1.56e9]),
        ]);
        let verdict = verdict(&runs);
        assert_eq!(
            verdict.headline,
            "Use adaptive: it is 53\u{a0}% faster than inline and 27\u{a0}% faster than workqueue."
        );
        assert!(verdict.worst.starts_with(
            "Against the best other policy of each workload: throughput 27\u{a0}% higher, at worst \
             27\u{a0}% higher than workqueue (memory · randread, 4k at depth 1; beyond noise); p99"
        ));
        assert!(verdict.trust.starts_with(
            "Throughput, geometric mean of 1 workload; over the repeats +50\u{a0}% to +56\u{a0}% \
             against inline and +25\u{a0}% to +30\u{a0}% against workqueue. 2 repeats per cell, \
             which spread by ±"
        ));
    }

    #[test]
    fn a_difference_within_the_spread_is_a_par_and_no_advice() {
        let runs = run(&[
            ("inline", 1, &[1.0e9, 1.2e9]),
            ("adaptive", 1, &[1.1e9, 1.15e9]),
        ]);
        let headline = verdict(&runs).headline;
        assert!(
            headline.starts_with("adaptive is on a par with inline ("),
            "{headline}"
        );
    }

    #[test]
    fn a_loss_beyond_noise_recommends_the_other() {
        let runs = run(&[
            ("inline", 1, &[2.0e9, 2.1e9]),
            ("adaptive", 1, &[1.0e9, 1.1e9]),
        ]);
        let headline = verdict(&runs).headline;
        assert!(
            headline.starts_with("Use inline: adaptive is 49\u{a0}% slower"),
            "{headline}"
        );
    }

    #[test]
    fn a_par_with_one_and_a_win_over_the_other_is_no_advice() {
        let runs = run(&[
            ("inline", 1, &[1.0e9, 1.2e9]),
            ("workqueue", 1, &[0.2e9, 0.21e9]),
            ("adaptive", 1, &[1.1e9, 1.15e9]),
        ]);
        let headline = verdict(&runs).headline;
        assert!(
            headline.starts_with("adaptive is on a par with inline"),
            "{headline}"
        );
        assert!(
            headline.ends_with(" and 5.5 times as fast as workqueue."),
            "{headline}"
        );
    }

    #[test]
    fn one_repeat_says_that_noise_is_unknown() {
        let runs = run(&[("inline", 1, &[1e9]), ("adaptive", 1, &[2e9])]);
        let verdict = verdict(&runs);
        assert!(
            verdict
                .headline
                .starts_with("adaptive is 100\u{a0}% faster than inline.")
        );
        assert!(verdict.trust.contains("noise is unknown"));
    }

    #[test]
    fn the_worst_workload_is_named() {
        let runs = run(&[
            ("inline", 1, &[1e9]),
            ("adaptive", 1, &[2e9]),
            ("inline", 32, &[1e9]),
            ("adaptive", 32, &[0.9e9]),
        ]);
        let worst = verdict(&runs).worst;
        assert!(
            worst.contains(
                "at worst 10\u{a0}% lower than inline (memory · randread, 4k at depth 32)"
            ),
            "{worst}"
        );
    }

    #[test]
    fn invalid_cells_are_counted_and_left_out() {
        let mut runs = run(&[("inline", 1, &[1e9]), ("adaptive", 1, &[2e9])]);
        runs[0].records[0].doubts.push(Doubt::NotDirect);
        let verdict = verdict(&runs);
        assert!(
            verdict
                .headline
                .starts_with("No workload has valid numbers")
        );
        assert!(verdict.trust.contains("1 invalid"), "{}", verdict.trust);
    }

    #[test]
    fn without_comparison_or_results_it_says_so() {
        let one = verdict(&run(&[("inline", 1, &[1e9]), ("inline", 2, &[2e9])]));
        assert!(
            one.headline
                .starts_with("inline: throughput from 1.00 GB/s (memory randread, 4k")
        );
        assert!(one.worst.contains("nothing to compare"));
        let none = verdict(&[]);
        assert_eq!(none.headline, "There are no results.");
        assert!(none.trust.starts_with("Nothing was measured. Of 0 cells"));
    }
}

//! How policies scale: lines over the cores of simulated machines and over the number of drives, and where the
//! candidate is not the best of them, by name.
//!
//! There is something to show where a run has a workload at four sizes or more. The candidate is beaten in a workload
//! where every repeat of another policy is better than every repeat of its own, by more than 1 %. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::axis::Axis;
use super::cells::CellSummary;
use super::compare::gain;
use super::curve::{Curves, Line, Scale};
use super::escape::escape;
use super::format::{counted, percent, times};
use super::grid::Noise;
use super::markdown::safe;
use super::metric::Metric;
use super::model::Report;
use super::terminal::wrapped;
use crate::result::CellParams;

/// The axes that lines are drawn over.
const AXES: [Axis; 2] = [Axis::Cores, Axis::Devices];
/// What lines are of.
const METRICS: [Metric; 2] = [Metric::Throughput, Metric::LatP99];
/// The least sizes of a line.
const LEAST_SIZES: usize = 4;
/// What is less is not worth a name.
const LEAST_LOSS: f64 = 1.01;
/// From this on a factor reads better than a percentage.
const TIMES_FROM: f64 = 3.0;
/// Workloads that are named in a terminal and in Markdown.
const NAMED: usize = 12;

/// What there is to show. See the module documentation.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// The policy that is judged.
    pub candidate: String,
    /// Lines of one workload each, throughput and p99 beside each other.
    pub plots: Vec<Curves>,
    /// Where the candidate is beaten, for each metric.
    pub losses: Vec<Losses>,
}

/// Where the candidate is beaten by one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses {
    /// The metric.
    pub metric: Metric,
    /// Workloads that could be compared.
    pub workloads: usize,
    /// Those that are lost, the worst first.
    pub lost: Vec<Loss>,
}

/// A workload in which another policy is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The workload, by what varies.
    pub workload: String,
    /// The better policy.
    pub by: String,
    /// How many times better it is.
    pub times: f64,
}

impl Scaling {
    /// What a report has of it; `None` where no run has a workload at enough sizes.
    #[must_use]
    pub fn of(report: &Report<'_>) -> Option<Self> {
        let lineup = report.lineup.as_ref()?;
        let plots: Vec<Curves> = AXES
            .into_iter()
            .flat_map(|axis| plots(report, axis))
            .collect();
        if plots.is_empty() {
            return None;
        }
        let losses = METRICS.map(|metric| losses(report, &lineup.others, metric));
        Some(Self {
            candidate: lineup.candidate.clone(),
            plots,
            losses: losses.into(),
        })
    }

    /// Where the candidate is not the best, for a terminal.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut text = String::new();
        for losses in &self.losses {
            text += &wrapped(&self.sentence(losses), width);
            for loss in losses.lost.iter().take(NAMED) {
                text += &wrapped(&format!("  {}", loss.words()), width);
            }
            if let Some(more) = losses.more() {
                text += &wrapped(&format!("  {more}"), width);
            }
        }
        text
    }

    /// The same as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from("\n**Scaling**\n");
        for losses in &self.losses {
            let _ = write!(text, "\n{}\n\n", safe(&self.sentence(losses)));
            let words = losses.lost.iter().take(NAMED).map(Loss::words);
            for item in words.chain(losses.more()) {
                let _ = writeln!(text, "- {}", safe(&item));
            }
        }
        text
    }

    /// The section of the page, with every lost workload.
    #[must_use]
    pub fn html(&self) -> String {
        let mut html = String::from(
            "<section id=\"scaling\">\n<h2>Scaling</h2>\n<p class=\"quiet\">Simulated. Both axes are logarithmic. \
             Where lines lie on each other, the wider one is below.</p>\n",
        );
        for losses in &self.losses {
            let _ = writeln!(html, "<p>{}</p>", escape(&self.sentence(losses)));
            if losses.lost.is_empty() {
                continue;
            }
            html += "<details><summary>Which</summary><ul>\n";
            for loss in &losses.lost {
                let _ = writeln!(html, "<li>{}</li>", escape(&loss.words()));
            }
            html += "</ul></details>\n";
        }
        html += "<div class=\"maps\">\n";
        for (index, plot) in self.plots.iter().enumerate() {
            let _ = writeln!(
                html,
                "<figure><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div></figure>",
                escape(&plot.title),
                plot.svg(&format!("s{index}"))
            );
        }
        html + "</div>\n</section>\n"
    }

    fn sentence(&self, losses: &Losses) -> String {
        let metric = losses.metric.title();
        let candidate = &self.candidate;
        let compared = counted(losses.workloads, "workload");
        match losses.lost.len() {
            0 => {
                format!("{metric}: no policy beats {candidate} beyond noise in any of {compared}.")
            }
            lost => format!(
                "{metric}: {candidate} is not the best in {lost} of {compared}, beyond the spread of the repeats:"
            ),
        }
    }
}

impl Losses {
    fn more(&self) -> Option<String> {
        let more = self
            .lost
            .len()
            .checked_sub(NAMED)
            .filter(|&more| more > 0)?;
        Some(format!("and {more} more, which the page names"))
    }
}

impl Loss {
    fn words(&self) -> String {
        let by = if self.times < TIMES_FROM {
            format!("{} better", percent(self.times))
        } else {
            format!("{} better", times(self.times))
        };
        format!("{}: {} is {by}", self.workload, self.by)
    }
}

/// The lines of every workload over an axis.
fn plots(report: &Report<'_>, axis: Axis) -> Vec<Curves> {
    let mut groups: Vec<((usize, CellParams), Vec<&CellSummary<'_>>)> = Vec::new();
    for cell in &report.cells {
        if axis == Axis::Cores && cell.params.cores.is_none() {
            continue;
        }
        let key = (cell.run, elsewhere(cell.params, axis));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(cell),
            None => groups.push((key, vec![cell])),
        }
    }
    groups.retain(|(_, members)| {
        axis.positions(members.iter().map(|cell| cell.params)).len() >= LEAST_SIZES
    });
    let shown = |(_, members): &(_, Vec<&CellSummary<'_>>)| {
        METRICS.map(|metric| curves(report, axis, metric, members))
    };
    groups.iter().flat_map(shown).collect()
}

/// A cell without its policy and its place on the axis, and without what follows from that.
fn elsewhere(params: &CellParams, axis: Axis) -> CellParams {
    let mut rest = params.without_policy();
    if axis == Axis::Cores {
        (rest.cores, rest.workers) = (None, 0);
    } else {
        rest.devices = 0;
    }
    rest
}

fn curves(report: &Report<'_>, axis: Axis, metric: Metric, members: &[&CellSummary<'_>]) -> Curves {
    let policies = report.lineup.iter().flat_map(|lineup| lineup.policies());
    let lines = policies.map(|policy| {
        let of_policy = members.iter().filter(|cell| cell.params.policy == policy);
        let point =
            |cell: &&CellSummary<'_>| Some((axis.rank(cell.params), cell.cell(metric).value()?));
        let mut points: Vec<(u64, f64)> = of_policy.filter_map(point).collect();
        points.sort_by_key(|point| point.0);
        Line {
            name: policy.to_owned(),
            points,
        }
    });
    let first = members.first().map(|cell| cell.params);
    Curves {
        title: format!("{} against {}", metric.title(), axis.name()),
        subtitle: first.map_or_else(String::new, |params| workload(report, params, Some(axis))),
        x_name: axis.name().to_owned(),
        unit: metric.unit(),
        scale: Scale::Logarithmic,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
    }
}

/// Where another policy is better than the candidate.
fn losses(report: &Report<'_>, others: &[String], metric: Metric) -> Losses {
    let compared = report.comparisons(others, metric);
    let mut lost: Vec<Loss> = compared
        .iter()
        .filter(|(_, one)| one.noise == Noise::Beyond)
        .map(|(_, one)| Loss {
            workload: workload(report, one.candidate.params, None),
            by: one.other.params.policy.clone(),
            times: 1.0 / gain(metric, one.ratio),
        })
        .filter(|loss| loss.times > LEAST_LOSS)
        .collect();
    lost.sort_by(|a, b| b.times.total_cmp(&a.times));
    Losses {
        metric,
        workloads: compared.len(),
        lost,
    }
}

/// A workload by what varies over the report, and by what it always has.
fn workload(report: &Report<'_>, params: &CellParams, without: Option<Axis>) -> String {
    const ALWAYS: [Axis; 4] = [Axis::Device, Axis::Rw, Axis::BlockSize, Axis::Depth];
    let varies = |axis: Axis| {
        axis.positions(report.cells.iter().map(|cell| cell.params))
            .len()
            > 1
    };
    let more = Axis::ALL.into_iter().filter(|&axis| {
        !ALWAYS.contains(&axis)
            && ![Axis::Policy, Axis::Workers, Axis::Mix].contains(&axis)
            && Some(axis) != without
            && varies(axis)
    });
    let words = ALWAYS.into_iter().chain(more).map(|axis| match axis {
        Axis::Device | Axis::Rw | Axis::BlockSize => axis.text(params),
        axis => format!("{} {}", axis.name(), axis.text(params)),
    });
    words.collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::super::cells::Run;
    use super::*;
    use crate::result::ResultRecord;
    use crate::testing::{cell, manifest, record};

    /// Two repeats of three policies on 1 to 8 cores, in MB/s.
    fn runs(speed: impl Fn(&str, u32) -> f64) -> Vec<Run> {
        let mut records: Vec<ResultRecord> = Vec::new();
        for cores in [1, 2, 4, 8] {
            for policy in ["inline", "workqueue", "adaptive"] {
                let params = CellParams {
                    cores: Some(cores),
                    workers: cores,
                    ..cell(policy, 4096, 4)
                };
                for repeat in 1..=2 {
                    let mb_s = speed(policy, cores) * (1.0 + f64::from(repeat) / 1000.0);
                    records.push(record(params.clone(), repeat, mb_s * 1e6));
                }
            }
        }
        vec![Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }]
    }

    #[test]
    fn each_workload_has_lines_of_every_policy_and_losses_have_names() {
        let runs = runs(|policy, cores| match (policy, cores) {
            ("workqueue", _) => 100.0 * f64::from(cores),
            ("adaptive", 8) => 500.0,
            ("adaptive", _) => 110.0 * f64::from(cores),
            _ => 100.0,
        });
        let report = Report::new(&runs);
        let scaling = Scaling::of(&report).unwrap();
        assert_eq!(scaling.plots.len(), 2);
        let lines = &scaling.plots[0].lines;
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["inline", "workqueue", "adaptive"]);
        let places: Vec<u64> = lines[1].points.iter().map(|point| point.0).collect();
        assert_eq!(places, [1, 2, 4, 8]);
        assert_eq!(scaling.losses[0].workloads, 4);
        assert_eq!(scaling.losses[0].lost.len(), 1);
        let text = scaling.text(100);
        for part in [
            "adaptive is not the best in 1 of 4 workloads",
            "memory · randread · 4k · depth 4 · cores 8: workqueue is 60",
        ] {
            assert!(text.contains(part), "{part}: {text}");
            assert!(
                scaling.html().contains(part) || part.contains(':'),
                "{part}"
            );
        }
        assert!(scaling.markdown().contains("- memory"));
        let page = super::super::html::page(&report);
        assert!(page.contains("id=\"scaling\"") && page.contains("href=\"#scaling\""));
        assert!(
            super::super::terminal::summary(
                &report,
                super::super::terminal::Style {
                    width: 100,
                    color: super::super::terminal::Color::None,
                }
            )
            .contains("is not the best in 1 of 4")
        );
    }

    #[test]
    fn who_is_not_beaten_beyond_noise_is_not_named_and_few_sizes_are_no_line() {
        let even = runs(|_, cores| f64::from(cores));
        let scaling = Scaling::of(&Report::new(&even)).unwrap();
        assert!(scaling.text(100).contains("no policy beats adaptive"));
        let mut few = even;
        few[0].manifest.plan.retain(|cell| cell.cores != Some(8));
        few[0].records.retain(|one| one.cell.cores != Some(8));
        assert!(Scaling::of(&Report::new(&few)).is_none());
        assert!(Scaling::of(&Report::new(&[])).is_none());
    }
}

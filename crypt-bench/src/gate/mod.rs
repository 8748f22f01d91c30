//! Decides whether a run may replace another one, and fails closed: what is not known to be well does not pass.
//!
//! A cell is *regressed* in a metric only where the whole interval of the change lies beyond what is allowed and its
//! p-value counts over the whole matrix; it *passes* where the whole interval is within that; else it is
//! *inconclusive*. Before that come the reasons that leave nothing to judge: another machine or mechanism, invalid
//! repeats, cells that vanished, runs or cells that are not whole, fewer repeats than a gate takes. The verdict
//! of all is the gravest one, and of nothing at all it is `missing`.
//!
//! Pure: a comparison in, an [`Artefact`] out; renderings are made from the artefact alone.

#![forbid(unsafe_code)]

pub mod artefact;
pub mod bencher;
pub mod github;
pub mod junit;
pub mod markdown;
pub mod text;

use crate::diff::record::{ChangeRecord, MeanRecord};
use crate::diff::{Change, Diff, Pair, Trouble};
use crate::manifest::State;
use crate::report::Run;
use crate::report::metric::Metric;
use crate::statistics::{CONFIDENCE, Call, FALSE_DISCOVERIES, Limit, power};

pub use artefact::{Artefact, Verdict};
use artefact::{CellVerdict, Judged, Reason, RuleRecord, Rules, Source};

/// Fewest repeats of a cell.
pub const LEAST_REPEATS: u32 = 10;

/// What a gate allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Metrics, each with the share by which it may get worse.
    pub metrics: Vec<(Metric, f64)>,
    /// Fewest repeats of each cell in each run.
    pub least_repeats: u32,
}

/// By how much a metric may get worse where nothing else is said. High percentiles are what a few requests took.
#[must_use]
pub const fn usual_share(metric: Metric) -> f64 {
    match metric {
        Metric::LatP99 | Metric::LatP99_9 => 0.2,
        _ => 0.05,
    }
}

/// The verdict on a comparison; `policy` has the metrics that were compared.
#[must_use]
pub fn decide(diff: &Diff<'_>, policy: &Policy) -> Artefact {
    let names = diff.names();
    let tests = diff.tests();
    let is_known = |pair: &&Pair<'_>| pair.sides[0].is_some();
    let cells: Vec<CellVerdict> = diff
        .pairs
        .iter()
        .filter(is_known)
        .map(|pair| cell(diff, pair, policy, (tests, names.name(pair.params()))))
        .collect();
    let new_cells = diff.pairs.iter().filter(|pair| !is_known(pair));
    let artefact = Artefact {
        schema_version: artefact::VERSION,
        verdict: Verdict::Missing,
        reasons: reasons(diff, &cells),
        baseline: source(diff.runs[0]),
        candidate: source(diff.runs[1]),
        rules: rules(policy),
        interleaved: diff.is_interleaved(),
        warnings: diff.warnings(),
        new_cells: new_cells.map(|pair| names.name(pair.params())).collect(),
        cells,
        means: diff.means.iter().map(MeanRecord::of).collect(),
        mark: String::new(),
    };
    artefact.concluded()
}

/// A gate that has not come to its end: what lies where its artefact is going to be.
#[must_use]
pub fn unfinished(policy: &Policy) -> Artefact {
    let nothing = Source::default();
    let artefact = Artefact {
        schema_version: artefact::VERSION,
        verdict: Verdict::Incomplete,
        reasons: vec![Reason::new(
            Verdict::Incomplete,
            "the gate did not come to its end",
        )],
        baseline: nothing.clone(),
        candidate: nothing,
        rules: rules(policy),
        interleaved: None,
        warnings: Vec::new(),
        new_cells: Vec::new(),
        cells: Vec::new(),
        means: Vec::new(),
        mark: String::new(),
    };
    artefact.concluded()
}

/// What is said of the runs as a whole.
fn reasons(diff: &Diff<'_>, cells: &[CellVerdict]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (run, label) in diff.runs.iter().zip(diff.labels) {
        if !run.manifest.environment.is_known() {
            let text = format!("{label}: it is not known on which machine it was measured");
            reasons.push(Reason::new(Verdict::EnvironmentMismatch, text));
        }
        if run.manifest.state != State::Complete {
            let text = format!(
                "{label}: the run was not finished; go on with `crypt-bench matrix --resume`"
            );
            reasons.push(Reason::new(Verdict::Incomplete, text));
        }
    }
    let separating = diff
        .dimensions
        .iter()
        .filter(|dimension| dimension.separates);
    reasons.extend(
        separating.map(|one| Reason::new(Verdict::EnvironmentMismatch, one.text(diff.labels))),
    );
    let is_judged = |cell: &CellVerdict| {
        cell.changes
            .iter()
            .any(|change| change.verdict.is_judgement())
    };
    if !cells.iter().any(is_judged) {
        reasons.push(Reason::new(
            Verdict::Missing,
            "no cell could be compared, which is no pass",
        ));
    }
    reasons
}

fn cell(
    diff: &Diff<'_>,
    pair: &Pair<'_>,
    policy: &Policy,
    (tests, name): (usize, String),
) -> CellVerdict {
    let troubles = pair.troubles();
    let mut reasons: Vec<Reason> = troubles
        .iter()
        .map(|trouble| Reason::new(of_trouble(trouble), trouble.text(diff.labels)))
        .collect();
    reasons.extend(too_few(diff, pair, policy));
    let separated = troubles
        .iter()
        .any(|trouble| of_trouble(trouble) == Verdict::EnvironmentMismatch);
    let judged = pair.changes.iter().filter(|_| !separated);
    let changes: Vec<Judged> = judged.map(|change| judge(change, policy, tests)).collect();
    let verdicts = reasons.iter().map(|reason| reason.verdict);
    let verdicts = verdicts.chain(changes.iter().map(|change| change.verdict));
    CellVerdict {
        name,
        cell: pair.params().clone(),
        verdict: verdicts.max().unwrap_or(Verdict::Missing),
        reasons,
        changes,
    }
}

const fn of_trouble(trouble: &Trouble) -> Verdict {
    match trouble {
        Trouble::OnlyIn(_) | Trouble::Unmeasured(1) => Verdict::Missing,
        Trouble::Unmeasured(_) | Trouble::Partial { .. } => Verdict::Incomplete,
        Trouble::Invalid { .. } => Verdict::Invalid,
        Trouble::Separated(_) => Verdict::EnvironmentMismatch,
    }
}

/// Sides that were measured, but not often enough for a gate.
fn too_few(diff: &Diff<'_>, pair: &Pair<'_>, policy: &Policy) -> Vec<Reason> {
    let least = policy.least_repeats as usize;
    let sides = pair.sides.iter().zip(diff.labels);
    let repeats = sides.filter_map(|(side, label)| Some((side.as_ref()?.records.len(), label)));
    let few = repeats.filter(|(repeats, _)| (1..least).contains(repeats));
    few.map(|(repeats, label)| {
        let text = format!(
            "{repeats} repeats in {label}: a gate takes {least}; measure with --repeats {least}"
        );
        Reason::new(Verdict::Incomplete, text)
    })
    .collect()
}

fn judge(change: &Change, policy: &Policy, tests: usize) -> Judged {
    let metric = change.metric;
    let mut allowed = policy.metrics.iter().filter(|(other, _)| *other == metric);
    let share = allowed
        .next()
        .map_or_else(|| usual_share(metric), |(_, share)| *share);
    let limit = Limit::of_share(share, metric.higher_is_better());
    let call = change
        .shift
        .as_ref()
        .map(|shift| limit.judge(shift, change.adjusted_p));
    let detectable = change.shift.as_ref().and_then(|shift| {
        power::detectable(power::noise(shift)?, shift.repeats, tests, limit.factor)
    });
    Judged {
        change: ChangeRecord::of(change),
        max_regress_percent: 100.0 * share,
        detectable_percent: detectable.map(|factor| 100.0 * limit.share_of(factor)),
        verdict: match call {
            Some(Call::Worse) => Verdict::Regressed,
            Some(Call::Better) => Verdict::Improved,
            Some(Call::Level) => Verdict::Pass,
            Some(Call::Open) | None => Verdict::Inconclusive,
        },
    }
}

fn source(run: &Run) -> Source {
    let manifest = &run.manifest;
    Source {
        name: run.name.clone(),
        version: manifest.tool.version.clone(),
        git_revision: manifest.tool.git_revision.clone(),
        binary_sha256: manifest.tool.binary_sha256.clone(),
        host: manifest.environment.host.clone(),
        started: manifest.started.clone(),
    }
}

fn rules(policy: &Policy) -> Rules {
    let metrics = policy.metrics.iter();
    Rules {
        metrics: metrics
            .map(|(metric, share)| RuleRecord {
                metric: metric.key().to_owned(),
                max_regress_percent: 100.0 * share,
            })
            .collect(),
        least_repeats: policy.least_repeats,
        false_discovery_rate: FALSE_DISCOVERIES,
        confidence: CONFIDENCE,
    }
}

#[cfg(test)]
mod tests;

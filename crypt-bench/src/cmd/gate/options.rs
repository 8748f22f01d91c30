//! By what a gate judges, and where its verdict is written.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use crate::cli::{Failure, Outcome};
use crate::cmd::output;
use crate::cmd::report::parse_metric;
use crate::gate::{
    self, Artefact, LEAST_REPEATS, Policy, Verdict, bencher, github, junit, markdown, text,
};
use crate::report::metric::Metric;

/// What is judged where nothing is said.
const USUAL: [Metric; 2] = [Metric::Throughput, Metric::LatP99];

/// What is judged, and what is allowed.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cmd) struct Allowed {
    /// What to judge: bw_bytes_per_s, iops, lat_ns_mean, lat_ns_p50, lat_ns_p99, lat_ns_p99_9
    /// [default: bw_bytes_per_s,lat_ns_p99]
    #[arg(long, value_delimiter = ',', value_name = "METRIC,..", value_parser = parse_metric, help_heading = "Rules")]
    metric: Vec<Metric>,

    /// By how much a figure may get worse: 5% for all, lat_ns_p99=10% for one
    /// [default: 5%, percentiles from p99 on 20%]
    #[arg(long, value_name = "[METRIC=]PERCENT", value_parser = parse_allowance, help_heading = "Rules")]
    max_regress: Vec<Allowance>,
}

/// Options of every gate.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Shared {
    #[command(flatten)]
    allowed: Allowed,

    /// Fewest repeats of a cell in each run
    #[arg(long, value_name = "N", default_value_t = LEAST_REPEATS, help_heading = "Rules")]
    least_repeats: u32,

    /// Exit with status 11 where the noise is too large to say
    #[arg(long, value_enum, value_name = "VERDICT", help_heading = "Rules")]
    fail_on: Option<FailOn>,

    /// Write the verdict as JSON, which gate verify reads; - for standard output, in place of the text
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    json: Option<PathBuf>,

    /// Write it as Markdown, for a pull request or $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    markdown: Option<PathBuf>,

    /// Write it as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    junit: Option<PathBuf>,

    /// Write the candidate's figures in Bencher's metric format
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    bmf: Option<PathBuf>,

    /// Write them as the customSmallerIsBetter list of github-action-benchmark
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    smaller_is_better: Option<PathBuf>,

    /// Print annotations for GitHub Actions too
    #[arg(long, help_heading = "Verdict")]
    github: bool,
}

/// By what share a metric, or every other one, may get worse.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Allowance {
    metric: Option<Metric>,
    share: f64,
}

/// Verdicts that fail only where that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FailOn {
    /// The noise is too large to say
    Inconclusive,
}

/// Documents that are going to be written; until then they say that the gate did not come to its end.
pub(super) struct Outputs<'a> {
    shared: &'a Shared,
}

/// A path, and what makes its text.
type Document<'a> = (&'a PathBuf, String);

impl Allowed {
    /// Metrics, each with the share by which it may get worse.
    ///
    /// # Errors
    /// An allowance for a metric that is not judged.
    pub(in crate::cmd) fn metrics(&self) -> Outcome<Vec<(Metric, f64)>> {
        let metrics = if self.metric.is_empty() {
            USUAL.to_vec()
        } else {
            self.metric.clone()
        };
        let named = self.max_regress.iter().filter_map(|one| one.metric);
        if let Some(metric) = named.clone().find(|one| !metrics.contains(one)) {
            let key = metric.key();
            return Err(Failure::usage(format!(
                "--max-regress {key}=..: {key} is not judged; add it to --metric"
            )));
        }
        let last = |metric: Option<Metric>| {
            let mut of_metric = self
                .max_regress
                .iter()
                .rev()
                .filter(|one| one.metric == metric);
            of_metric.next().map(|one| one.share)
        };
        let share = |metric: Metric| {
            last(Some(metric))
                .or_else(|| last(None))
                .unwrap_or_else(|| gate::usual_share(metric))
        };
        Ok(metrics
            .into_iter()
            .map(|metric| (metric, share(metric)))
            .collect())
    }
}

impl Shared {
    /// By what is judged.
    ///
    /// # Errors
    /// As [`Allowed::metrics`].
    pub(super) fn policy(&self) -> Outcome<Policy> {
        Ok(Policy {
            metrics: self.allowed.metrics()?,
            least_repeats: self.least_repeats,
        })
    }

    /// Puts a verdict that is no pass wherever one is going to be written: what an older gate left there must not
    /// be taken for the one of a gate that failed. None of the files may be one that is `used`.
    ///
    /// # Errors
    /// A file that can't be written, and documents that would all go to standard output.
    pub(super) fn open<'a>(&self, used: impl Iterator<Item = &'a Path>) -> Outcome<Outputs<'_>> {
        let unfinished = gate::unfinished(&self.policy()?);
        let mut documents = self.documents(&unfinished);
        let printed = documents
            .iter()
            .filter(|(path, _)| output::named(path).is_none())
            .count();
        if printed + usize::from(self.github && printed > 0) > 1 {
            return Err(Failure::usage(
                "only one document can go to standard output; name files for the others",
            ));
        }
        documents.retain(|(path, _)| output::named(path).is_some());
        let paths: Vec<&Path> = documents.iter().map(|(path, _)| path.as_path()).collect();
        output::keep_apart("the verdict", &paths, used)?;
        for (path, text) in documents {
            output::put(path, &text)?;
        }
        Ok(Outputs { shared: self })
    }

    fn documents(&self, artefact: &Artefact) -> Vec<Document<'_>> {
        let strict = self.is_strict();
        let wanted: [(&Option<PathBuf>, &dyn Fn() -> String); 5] = [
            (&self.json, &|| artefact.to_json()),
            (&self.markdown, &|| markdown::document(artefact)),
            (&self.junit, &|| junit::document(artefact, strict)),
            (&self.bmf, &|| bencher::metric_format(artefact)),
            (&self.smaller_is_better, &|| {
                bencher::smaller_is_better(artefact)
            }),
        ];
        wanted
            .into_iter()
            .filter_map(|(path, text)| Some((path.as_ref()?, text())))
            .collect()
    }

    const fn is_strict(&self) -> bool {
        matches!(self.fail_on, Some(FailOn::Inconclusive))
    }
}

impl Outputs<'_> {
    /// Writes the verdict everywhere.
    ///
    /// # Errors
    /// What can't be written; and every verdict that is no pass, with its exit status.
    pub(super) fn conclude(self, artefact: &Artefact) -> Outcome {
        let strict = self.shared.is_strict();
        let documents = self.shared.documents(artefact);
        if documents
            .iter()
            .all(|(path, _)| output::named(path).is_some())
        {
            output::write_stdout(&text::text(artefact))?;
        }
        for (path, text) in documents {
            output::deliver(output::named(path), &text)?;
        }
        if self.shared.github {
            output::write_stdout(&github::commands(artefact, strict))?;
        }
        outcome(artefact.verdict, strict)
    }
}

/// What a verdict means for the program.
pub(super) fn outcome(verdict: Verdict, strict: bool) -> Outcome {
    match verdict.exit_status(strict) {
        0 => Ok(()),
        status => Err(Failure::Verdict {
            status,
            message: format!("gate: {}", verdict.name()),
        }),
    }
}

fn parse_allowance(text: &str) -> Result<Allowance, String> {
    let (metric, percent) = match text.split_once('=') {
        Some((metric, percent)) => (Some(parse_metric(metric)?), percent),
        None => (None, text),
    };
    Ok(Allowance {
        metric,
        share: parse_percent(percent)?,
    })
}

/// A share that is written as `5%`.
///
/// # Errors
/// Anything else, with what to write.
pub(in crate::cmd) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .ok_or("write it with its sign, as in 5%")?;
    let percent: f64 = number
        .trim()
        .parse()
        .map_err(|_| "write a number, as in 2.5%")?;
    if (0.0..100.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err("from 0% to below 100%".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        shared: Shared,
    }

    fn policy(line: &str) -> Result<Vec<(Metric, f64)>, String> {
        let words = ["gate"].into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        let policy = line
            .shared
            .policy()
            .map_err(|failure| failure.to_string())?;
        Ok(policy.metrics)
    }

    #[test]
    fn allowances_are_for_one_metric_or_for_all() {
        let (throughput, p99) = (Metric::Throughput, Metric::LatP99);
        assert_eq!(policy(""), Ok(vec![(throughput, 0.05), (p99, 0.2)]));
        assert_eq!(
            policy("--max-regress 3%"),
            Ok(vec![(throughput, 0.03), (p99, 0.03)])
        );
        let both = "--max-regress lat_ns_p99=10% --max-regress 2.5%";
        assert_eq!(policy(both), Ok(vec![(throughput, 0.025), (p99, 0.1)]));
        assert_eq!(policy("--metric iops"), Ok(vec![(Metric::Iops, 0.05)]));
    }

    #[test]
    fn what_cant_be_meant_is_refused() {
        for (line, reason) in [
            ("--max-regress 5", "with its sign"),
            ("--max-regress x%", "write a number"),
            ("--max-regress 100%", "below 100%"),
            ("--max-regress nan%", "below 100%"),
            ("--max-regress speed=5%", "one of bw_bytes_per_s"),
            ("--max-regress iops=5%", "add it to --metric"),
            ("--metric speed", "one of bw_bytes_per_s"),
            ("--fail-on regressed", "inconclusive"),
        ] {
            let message = policy(line).unwrap_err();
            assert!(message.contains(reason), "{line}: {message}");
        }
    }
}

//! `crypt-bench published DIR...`: results of presets held against what was published, from stored results alone.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::cli::{Failure, Outcome};
use crate::cmd::{output, report};
use crate::preset::{self, Way};
use crate::report::Report;
use crate::report::published::{Agreement, LEAST_NOISE, agreements, ratio_text};
use crate::report::terminal;

/// The least share of published changes that results have to show.
const BAR: f64 = 0.80;
/// Where explanations are folded.
const WIDTH: usize = 110;

const EXAMPLES: &str = "\
Examples:
  crypt-bench simulate --preset dorminy-optane --out simulated && crypt-bench published simulated
      which published changes the simulator shows, and which not
  scripts/validate-published.sh
      all tables in one";

/// Hold results of presets against the published tables, change by change.
///
/// Each published change from dm-crypt's default to no_workqueue is set beside the change in the results. They agree
/// where both go the same way. Changes within the noise of their table have no direction and don't count.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders with results.jsonl and manifest.json, as `simulate --preset` and `matrix --preset` wrote them
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,

    /// Exit with status 10 where less than 80 % agree, or where benches/published/misses.toml has no explanation of
    /// one that does not
    #[arg(long)]
    check: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Folders without results of a preset that has published changes; with `--check`, a bar that is missed.
pub fn run(args: &Args) -> Outcome {
    let runs = report::read_runs(&args.dirs)?;
    let found = agreements(&Report::new(&runs));
    if found.is_empty() {
        return Err(Failure::usage(
            "none of these results is of a published change; make some with simulate --preset NAME",
        ));
    }
    let explanations = preset::explanations().map_err(Failure::Internal)?;
    output::write_stdout(&text(&found, &explanations))?;
    if !args.check {
        return Ok(());
    }
    if let Some(miss) = misses(&found).find(|miss| !explanations.contains_key(&miss.id)) {
        return Err(Failure::Missed(format!(
            "{}: not as published, and benches/published/misses.toml does not say why",
            miss.id
        )));
    }
    let (agree, all) = share(&found, Agreement::agrees);
    if (agree as f64) < BAR * all as f64 {
        return Err(Failure::Missed(format!(
            "{agree} of {all} published changes are shown, less than {:.0} %",
            100.0 * BAR
        )));
    }
    Ok(())
}

/// What needs an explanation: whatever does not agree, under the least noise too, and in the columns that don't count.
fn misses(found: &[Agreement]) -> impl Iterator<Item = &Agreement> {
    found.iter().filter(|one| one.agrees_bare() == Some(false))
}

/// How many agree, of how many that count.
fn share(found: &[Agreement], agrees: fn(&Agreement) -> Option<bool>) -> (usize, usize) {
    let counted = found.iter().filter(|one| one.counts);
    let said: Vec<bool> = counted.filter_map(agrees).collect();
    (said.iter().filter(|&&agrees| agrees).count(), said.len())
}

fn text(found: &[Agreement], explanations: &BTreeMap<String, String>) -> String {
    let width = found.iter().map(|one| one.id.chars().count());
    let width = width.max().unwrap_or(0);
    let mut text = format!(
        "{:width$}  {:>9}  {:>9}\n",
        "change from dm-crypt's default", "published", "results"
    );
    for one in found {
        let _ = writeln!(
            text,
            "{:width$}  {:>9}  {:>9}  {}",
            one.id,
            published(one),
            results(one),
            verdict(one)
        );
    }
    let (agree, all) = share(found, Agreement::agrees);
    let (bare, bare_all) = share(found, Agreement::agrees_bare);
    let _ = writeln!(
        text,
        "\n{agree} of {all} published changes go the same way in the results{}. Were {:.0} % the noise of every \
         table: {bare} of {bare_all}{}.",
        percent(agree, all),
        100.0 * LEAST_NOISE,
        percent(bare, bare_all)
    );
    text += &why(found, explanations);
    text + NOTES
}

/// Every miss with its explanation.
fn why(found: &[Agreement], explanations: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for miss in misses(found) {
        let known = explanations.get(&miss.id).map(String::as_str);
        let why = known.unwrap_or("no explanation in benches/published/misses.toml");
        text += "\n";
        text += &terminal::wrapped(&format!("{}: {why}", miss.id), WIDTH);
    }
    text
}

const NOTES: &str = "
A change within the noise of its table has no direction: nothing that encrypts is faster than the device by itself, so by
as much as a column of a table exceeds raw its figures vary; 5 % at least. \"near equal\" are the author's words. Columns
of other flags are shown and don't count.
";

fn percent(part: usize, all: usize) -> String {
    if all == 0 {
        return String::new();
    }
    format!(" ({:.0} %)", 100.0 * part as f64 / all as f64)
}

fn published(one: &Agreement) -> String {
    match (one.published, one.way) {
        (Some(ratio), _) => ratio_text(ratio),
        (None, Way::Higher) => "higher".to_owned(),
        (None, Way::Lower) => "lower".to_owned(),
        (None, Way::Equal) => "near equal".to_owned(),
    }
}

fn results(one: &Agreement) -> String {
    match &one.found {
        Ok(change) => ratio_text(change.ratio),
        Err(_) => "-".to_owned(),
    }
}

fn verdict(one: &Agreement) -> String {
    let words = match (one.agrees(), one.bare_way, one.published, &one.found) {
        (_, _, _, Err(why)) => return why.clone(),
        (Some(true), ..) => "agrees",
        (Some(false), ..) => "differs",
        (None, Way::Equal, Some(ratio), _) if (ratio - 1.0).abs() > LEAST_NOISE => {
            "(near equal, says the author)"
        }
        (None, Way::Equal, None, _) => "(near equal, says the author)",
        (None, ..) => "(within the table's noise)",
    };
    let counts = if one.counts { "" } else { " (does not count)" };
    format!("{words}{counts}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::published::Change;

    fn one(id: &str, way: Way, found: Way, counts: bool) -> Agreement {
        let ratio = |way| match way {
            Way::Higher => 1.5,
            Way::Lower => 0.7,
            Way::Equal => 1.0,
        };
        Agreement {
            id: id.to_owned(),
            published: Some(ratio(way)),
            way,
            bare_way: way,
            found: Ok(Change {
                ratio: ratio(found),
                way: found,
            }),
            counts,
        }
    }

    #[test]
    fn the_share_is_of_what_counts_and_every_miss_has_its_reason() {
        let found = [
            one("a", Way::Higher, Way::Higher, true),
            one("b", Way::Higher, Way::Lower, true),
            one("c", Way::Equal, Way::Lower, true),
            one("d", Way::Lower, Way::Higher, false),
        ];
        assert_eq!(share(&found, Agreement::agrees), (1, 2));
        let explanations = BTreeMap::from([("b".to_owned(), "because".to_owned())]);
        let text = text(&found, &explanations);
        for part in [
            "1 of 2 published changes go the same way in the results (50 %)",
            "\nb: because\n",
            "\nd: no explanation",
            "differs (does not count)",
            "(within the table's noise)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("\na: ") && !text.contains("\nc: "));
    }
}

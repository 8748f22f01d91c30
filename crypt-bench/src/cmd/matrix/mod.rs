//! `crypt-bench matrix`: runs a matrix of cells under several policies and reports on it.

#![forbid(unsafe_code)]

mod args;
mod import;
mod plan;

use std::path::Path;

use crate::cell::Setting;
use crate::cli::{Failure, Outcome};
use crate::cmd::{interrupt, output, report};
use crate::journal::Journal;
use crate::manifest::State;
use crate::preset::Preset;
use crate::progress::say;
use crate::report::{Report, Run, decisions, html, machine, terminal};
use crate::result::ResultRecord;
use crate::run::{End, Runner};

pub use args::Args;
pub(super) use args::default_folder;
use plan::Plan;
pub(super) use plan::started;

/// What is given to `--preset` to see what there is.
pub(super) const LIST: &str = "list";

/// What is printed at the end of a run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Shown {
    /// Print one JSON document with all results instead of the summary
    #[arg(long, help_heading = "Results")]
    json: bool,

    /// Print after the summary what adaptive policies placed where and why, and the time that they predicted
    /// beside the time it took; reports and --json have it in any case
    #[arg(long, conflicts_with = "json", help_heading = "Results")]
    explain_policy: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Bad input (nothing was written then), a failure while measuring, or an interruption by the user.
pub fn run(args: &Args) -> Outcome {
    if args.preset.as_deref() == Some(LIST) {
        return output::write_stdout(&presets()?);
    }
    let plan = Plan::prepare(args)?;
    let key = args.key(&plan.matrix.cells)?;
    // Not before what is read, where the first signal has to end a wait for a pipe.
    let stop = interrupt::flag()?;
    let (mut journal, mut records, mut manifest, mut targets) = plan.begin(args, &stop)?;
    let setting = Setting {
        tool: &manifest.tool.clone(),
        environment: &manifest.environment.clone(),
        key: &key,
        stop: &stop,
    };
    let mut runner = Runner {
        matrix: &plan.matrix,
        setting: &setting,
        targets: &mut targets,
        journal: &mut journal,
    };
    let end = runner.run(&mut records).map_err(Failure::Internal)?;
    manifest.state = match end {
        End::Complete => State::Complete,
        End::Stopped => State::Interrupted,
    };
    manifest.finished = (end == End::Complete).then(now);
    journal.write_manifest(&manifest).map_err(disk)?;
    let run = Run {
        name: folder_name(journal.folder()),
        manifest,
        records,
    };
    publish(&journal, std::slice::from_ref(&run), args.shown)?;
    conclude(end, args, &journal, &run.records)
}

/// What published tables there are, for people.
pub(super) fn presets() -> Outcome<String> {
    let mut text = String::new();
    for name in Preset::names() {
        let plan = Preset::named(name).map_err(Failure::Internal)?.plan;
        let devices = plan.matrix.device.iter().map(ToString::to_string);
        text += &format!(
            "{name}\n    {}\n    published: {}\n    on: {}\n    measured on: {} (unless --device says another)\n    \
             simulated on: the machine {} (unless --machine says another)\n",
            plan.title,
            plan.source,
            plan.hardware,
            devices.collect::<Vec<_>>().join(", "),
            plan.machine,
        );
    }
    Ok(text)
}

/// Writes the report of a run and prints its summary, or all of it as JSON.
pub(super) fn publish(journal: &Journal, run: &[Run], shown: Shown) -> Outcome {
    let report = Report::new(run);
    journal
        .write_rendering(report::PAGE, &html::page(&report))
        .map_err(disk)?;
    let mut text = if shown.json {
        machine::json(&report)
    } else {
        terminal::summary(&report, output::stdout_style())
    };
    if shown.explain_policy {
        text.push('\n');
        text += &decisions::text(&decisions::sections(&report));
    }
    output::write_stdout(&text)?;
    let page = journal.folder().join(report::PAGE);
    say(format_args!("report: {}", page.display()));
    Ok(())
}

pub(super) fn folder_name(folder: &Path) -> String {
    let absolute = std::fs::canonicalize(folder);
    let name = absolute
        .as_deref()
        .unwrap_or(folder)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| folder.display().to_string())
}

/// How the end is told: what is on stderr, and the exit status.
fn conclude(end: End, args: &Args, journal: &Journal, records: &[ResultRecord]) -> Outcome {
    if end == End::Stopped {
        return Err(Failure::Interrupted(format!(
            "stopped; {} finished runs are kept. Go on with: {}",
            records.len(),
            resume_command(args, journal)
        )));
    }
    let failed = records.iter().filter(|record| record.achieved.errors > 0);
    match failed
        .clone()
        .find_map(|record| record.achieved.first_error.as_ref())
    {
        Some(first) => Err(Failure::Internal(format!(
            "requests failed in {} runs, which are invalid; the first: {first}",
            failed.count()
        ))),
        None => Ok(()),
    }
}

/// The command that goes on with an interrupted run, for a shell.
fn resume_command(args: &Args, journal: &Journal) -> String {
    let mut command = format!(
        "crypt-bench matrix --out {} --resume",
        shell_word(&journal.folder().display().to_string())
    );
    let key_file = args
        .key_file
        .iter()
        .map(|path| ("--key-file", path.display().to_string()));
    let permissions = args
        .destroy_data_on
        .iter()
        .map(|name| ("--destroy-data-on", name.clone()));
    for (flag, value) in key_file.chain(permissions) {
        command.push_str(&format!(" {flag} {}", shell_word(&value)));
    }
    command
}

/// A text as one word of a shell command.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

pub(super) fn now() -> String {
    let second = jiff::Unit::Second;
    let time = jiff::Timestamp::now();
    time.round(second).unwrap_or(time).to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
pub(super) fn disk(error: std::io::Error) -> Failure {
    Failure::Internal(format!("write the results: {error}"))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(shell_word("reports/a-1.2"), "reports/a-1.2");
        assert_eq!(shell_word("my disk's"), "'my disk'\\''s'");
        assert_eq!(shell_word(""), "''");
    }
}

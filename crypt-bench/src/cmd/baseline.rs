//! `crypt-bench baseline`: results that are kept by name, for gates and comparisons later on.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::{Failure, Outcome};
use crate::cmd::{output, report};
use crate::diff::dimension::fingerprint;
use crate::diff::text::aligned;
use crate::host;
use crate::journal::{MANIFEST, RESULTS};
use crate::manifest::State;
use crate::progress::say;
use crate::report::escape::plain;
use crate::report::{Report, Run, terminal};

/// Where baselines are kept.
const FOLDER: &str = "reports/baselines";

const EXAMPLES: &str = "\
Examples:
  crypt-bench matrix --matrix gate --repeats 20 --out reports/run && crypt-bench baseline save main reports/run
  crypt-bench gate --baseline main --candidate reports/branch
      a name stands for the folder wherever results are read
  crypt-bench baseline list

A baseline says something about the machine that it was measured on, and about no other: its fingerprint is a hash of host,
CPU, kernel, governor and mitigations.";

/// Keep results by name, for later gates and comparisons.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Keep a results folder by a name
    Save {
        /// Its name: letters, digits, - _ and .
        #[arg(value_parser = parse_name)]
        name: String,

        /// Folder with results.jsonl and manifest.json
        #[arg(value_name = "DIR")]
        dir: PathBuf,

        /// Put it in the place of the one that has the name
        #[arg(long)]
        replace: bool,
    },
    /// Say which there are, and which were measured on a machine like this one
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Say what is in one
    Show {
        /// Its name
        #[arg(value_parser = parse_name)]
        name: String,
    },
}

/// Runs the subcommand.
///
/// # Errors
/// A name that is taken or not there, results that are not whole, and folders that can't be read or written.
pub fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::Save { name, dir, replace } => save(name, dir, *replace),
        Command::List { json } => list(*json),
        Command::Show { name } => show(name),
    }
}

/// The folder that is meant: itself where it is there, else the baseline of that name.
pub(super) fn resolve(dir: &Path) -> PathBuf {
    let named = dir
        .to_str()
        .filter(|name| parse_name(name).is_ok())
        .map(folder);
    match named {
        Some(kept) if !dir.exists() && kept.is_dir() => kept,
        _ => dir.to_owned(),
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn save(name: &str, dir: &Path, replace: bool) -> Outcome {
    let run = report::read_run(dir)?;
    if run.manifest.state != State::Complete {
        return Err(Failure::usage(format!(
            "{}: the run was not finished; go on with `crypt-bench matrix --resume`",
            dir.display()
        )));
    }
    let place = folder(name);
    if place.exists() && !replace {
        return Err(Failure::usage(format!(
            "{}: there is a baseline of that name already; --replace puts this one in its place",
            place.display()
        )));
    }
    copy(dir, &place).map_err(|error| Failure::usage(format!("{}: {error}", place.display())))?;
    say(format_args!(
        "baseline {name}: {} records in {}",
        run.records.len(),
        place.display()
    ));
    Ok(())
}

/// Copies a run, which is there as a whole or not at all.
fn copy(dir: &Path, place: &Path) -> std::io::Result<()> {
    let above = place.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(above)?;
    let stage = tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .tempdir_in(above)?;
    let (new, old) = (stage.path().join("new"), stage.path().join("old"));
    fs::create_dir(&new)?;
    for file in [RESULTS, MANIFEST] {
        fs::copy(dir.join(file), new.join(file))?;
    }
    if place.exists() {
        fs::rename(place, &old)?;
    }
    // The old one goes with the stage, once the new one is in its place.
    let renamed = fs::rename(&new, place);
    if renamed.is_err() && old.exists() {
        fs::rename(&old, place)?;
    }
    renamed
}

fn list(as_json: bool) -> Outcome {
    let runs = kept()?;
    let here = fingerprint(&host::environment());
    let document = if as_json {
        let all: Vec<Value> = runs.iter().map(|run| entry(run, &here)).collect();
        format!("{:#}\n", Value::Array(all))
    } else {
        table(&runs, &here)
    };
    output::write_stdout(&document)
}

/// Every baseline, by name.
fn kept() -> Outcome<Vec<Run>> {
    let Ok(entries) = fs::read_dir(FOLDER) else {
        return Ok(Vec::new());
    };
    let folders = entries.flatten().map(|entry| entry.path());
    let is_kept = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        path.is_dir() && name.is_some_and(|name| parse_name(name).is_ok())
    };
    let mut folders: Vec<PathBuf> = folders.filter(is_kept).collect();
    folders.sort();
    report::read_runs(&folders)
}

fn entry(run: &Run, here: &str) -> Value {
    let manifest = &run.manifest;
    let fingerprint = fingerprint(&manifest.environment);
    json!({
        "name": run.name,
        "started": manifest.started,
        "host": manifest.environment.host,
        "fingerprint": fingerprint,
        "this_machine": fingerprint == here,
        "version": manifest.tool.version,
        "git_revision": manifest.tool.git_revision,
        "cells": manifest.plan.len(),
        "repeats": manifest.repeats,
    })
}

fn table(runs: &[Run], here: &str) -> String {
    if runs.is_empty() {
        return format!("no baselines in {FOLDER}: crypt-bench baseline save NAME DIR\n");
    }
    let heading = [
        "name", "started", "revision", "cells", "repeats", "machine", "",
    ];
    let rows = runs.iter().map(|run| {
        let manifest = &run.manifest;
        let fingerprint = fingerprint(&manifest.environment);
        let machine = if fingerprint == here {
            "this machine"
        } else {
            "another machine"
        };
        vec![
            plain(&run.name),
            plain(&manifest.started),
            plain(manifest.tool.git_revision.as_deref().unwrap_or("unknown")),
            manifest.plan.len().to_string(),
            manifest.repeats.to_string(),
            format!("{} {fingerprint}", plain(&manifest.environment.host)),
            machine.to_owned(),
        ]
    });
    let heading = heading.map(str::to_owned).to_vec();
    aligned(&[heading].into_iter().chain(rows).collect::<Vec<_>>())
}

fn show(name: &str) -> Outcome {
    let place = folder(name);
    if !place.is_dir() {
        let names: Vec<String> = kept()?.into_iter().map(|run| run.name).collect();
        return Err(Failure::usage(format!(
            "there is no baseline `{name}` in {FOLDER}; there are: {}",
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        )));
    }
    let run = report::read_run(&place)?;
    let here = fingerprint(&host::environment());
    let mut text = table(std::slice::from_ref(&run), &here);
    text += &format!("\n{}\n\n", plain(&run.manifest.environment.cpu_model));
    text += &terminal::summary(
        &Report::new(std::slice::from_ref(&run)),
        output::stdout_style(),
    );
    output::write_stdout(&text)
}

/// A name that is a folder of its own, and no path.
fn parse_name(text: &str) -> Result<String, String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with(['.', '-']) || !text.chars().all(is_safe) {
        return Err(
            "letters, digits, - _ and . make a name, and it begins with one of the first two"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_name;

    #[test]
    fn names_are_no_paths() {
        for good in ["main", "v1.2", "2026-01-02_host"] {
            assert_eq!(parse_name(good), Ok(good.to_owned()));
        }
        for bad in ["", "..", ".x", "-x", "a/b", "../a", "a b", "ä"] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }
}

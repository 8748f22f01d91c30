//! The log files that jobs ask for: found to be writable before a run, written after it.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::cli::{Failure, Outcome};
use crate::cmd::surroundings;
use crate::fio::log::LogKind;
use crate::jobfile::logs::{self, LogFile};
use crate::jobfile::place::Plan;
use crate::journal::{replace_with, stage};
use crate::log::Log;
use crate::play::Played;
use crate::progress::say;
use crate::report::format::counted;

/// What device queues are called that make plain system calls.
const SYNC: &str = "sync";

/// The log files of a plan, which can be written.
pub(super) struct LogFiles(Vec<LogFile>);

impl LogFiles {
    /// Looks whether they can be written and take the place of nothing that is needed.
    ///
    /// # Errors
    /// Where one can't be.
    pub(super) fn prepare(
        plan: &Plan,
        job_files: &[String],
        output: Option<&Path>,
    ) -> Outcome<Self> {
        let files = logs::files(plan);
        let paths: Vec<&Path> = files.iter().map(|file| file.path.as_path()).collect();
        surroundings::keep_logs_apart(&paths, job_files, output, plan)?;
        let mut folder = None;
        for path in paths {
            let refuse = |message: &dyn std::fmt::Display| {
                let message = format!("the log {} can't be written: {message}", path.display());
                Failure::usage(message)
            };
            if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
                return Err(refuse(&"it exists and is not a file; use another name"));
            }
            if folder != path.parent() {
                stage(path).map_err(|error| refuse(&error))?;
                folder = path.parent();
            }
        }
        Ok(Self(files))
    }

    /// Writes those with a thread that played.
    ///
    /// # Errors
    /// The first one that can't be written, when all others are.
    pub(super) fn write(&self, played: &[Played]) -> Outcome {
        let mut written = 0;
        let mut failure = None;
        for file in &self.0 {
            let threads = file.copies.iter().filter_map(|index| played.get(*index));
            let threads: Vec<&Played> = threads.collect();
            if threads.is_empty() {
                continue;
            }
            let result = replace_with(&file.path, |out| {
                threads
                    .iter()
                    .try_for_each(|played| write_thread(out, file.kind, played))
            });
            match result {
                Ok(()) => written += 1,
                Err(error) => {
                    let message = format!("{}: {error}", file.path.display());
                    failure.get_or_insert(Failure::Internal(message));
                }
            }
        }
        if written > 0 {
            say(format_args!("wrote {}", counted(written, "log")));
        }
        failure.map_or(Ok(()), Err)
    }
}

fn write_thread(out: &mut dyn Write, kind: LogKind, played: &Played) -> io::Result<()> {
    let Some(log) = &played.log else {
        return Ok(());
    };
    // Plain system calls have no submission apart from the transfer, and fio no lines about it.
    if kind == LogKind::Slat && played.facts.engine == SYNC {
        return Ok(());
    }
    log.points(played.window.end_ns)
        .try_for_each(|point| writeln!(out, "{}", kind.line(&point)))
}

/// Requests of these threads that found no room in their logs.
pub(super) fn lost(threads: &[&Played]) -> u64 {
    let logs = threads.iter().filter_map(|played| played.log.as_ref());
    logs.map(Log::lost).sum()
}

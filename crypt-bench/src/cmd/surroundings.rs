//! What job files may ask of this machine: files, standard input, variables, `$ncpus` and the like.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::output;

use crate::cli::{Failure, Outcome};
use crate::jobfile::job::Job;
use crate::jobfile::place::Plan;
use crate::jobfile::{self, Refusal, Surroundings};
use crate::{host, input, target};

/// Longest job file in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// This machine.
struct System;

impl Surroundings for System {
    fn read(&self, path: &str) -> Result<String, String> {
        match path {
            "-" => input::text_of(std::io::stdin(), MOST_BYTES),
            _ => input::text(Path::new(path), MOST_BYTES),
        }
    }

    fn lines(&self, path: &str) -> Result<Box<dyn BufRead>, String> {
        // Before it is opened, which waits for the other end of a pipe; and that could be read only once.
        let kind = fs::metadata(path)
            .map_err(|error| error.to_string())?
            .file_type();
        if !kind.is_file() {
            return Err(format!("{}; give a regular file", input::kind_of(kind)));
        }
        let file = File::open(path).map_err(|error| error.to_string())?;
        Ok(Box::new(BufReader::new(file)))
    }

    fn variable(&self, name: &str) -> Option<String> {
        // Names that the system can't have make this function of std panic.
        if name.is_empty() || name.contains(['=', '\0']) {
            return None;
        }
        std::env::var(name).ok()
    }

    fn keyword(&self, name: &str) -> Option<u64> {
        match name {
            "pagesize" => Some(rustix::param::page_size() as u64),
            "ncpus" => Some(host::allowed_cpus().len() as u64),
            "mb_memory" => host::memory_bytes().map(|bytes| bytes >> 20),
            _ => None,
        }
    }
}

/// The jobs of the files, typed and checked.
pub(super) fn load(files: &[String], sections: &[String], readonly: bool) -> Outcome<Vec<Job>> {
    let jobs = jobfile::load(files, sections, &System).map_err(refused)?;
    if let Some(job) = jobs.iter().find(|job| readonly && job.writes()) {
        let message = format!(
            "[{}]: rw={} writes, which --readonly forbids",
            job.section,
            job.pattern.rw.name()
        );
        return Err(refused(job.refuse("rw", message)));
    }
    Ok(jobs)
}

/// Where the jobs do their work on this machine.
pub(super) fn plan(jobs: Vec<Job>) -> Outcome<Plan> {
    Plan::new(jobs, &target::file_size_bytes).map_err(refused)
}

/// Results must not replace what jobs are made of or work on.
///
/// # Errors
/// Where `output` is a job file, a key, a trace, or a file of a job.
pub(super) fn keep_apart(output: Option<&Path>, files: &[String], plan: &Plan) -> Outcome {
    output::keep_apart("--output", output.as_slice(), needed(files, plan))
}

/// Nor must logs replace such a file, or results.
///
/// # Errors
/// Where a log is one of them.
pub(super) fn keep_logs_apart(
    logs: &[&Path],
    files: &[String],
    output: Option<&Path>,
    plan: &Plan,
) -> Outcome {
    output::keep_apart("the log", logs, needed(files, plan).chain(output))
}

/// Files that jobs are made of or work on.
fn needed<'a>(files: &'a [String], plan: &'a Plan) -> impl Iterator<Item = &'a Path> {
    let job_files = files.iter().map(Path::new);
    let data = plan.files.iter().map(|file| file.path.as_path());
    let named = plan.jobs.iter().flat_map(|job| {
        let texts = ["crypt_key_file", "read_iolog"].map(|name| job.settings.text(name));
        texts.into_iter().flatten().map(Path::new)
    });
    job_files.chain(data).chain(named)
}

/// What a job file got wrong ends the program as bad input does.
#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
pub(super) fn refused(refusal: Refusal) -> Failure {
    Failure::usage(refusal.to_string())
}

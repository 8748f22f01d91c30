//! Starts the process that may die, and tells how it ended.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use sha2::{Digest, Sha256};

use crate::inside::{Limits, TOO_SLOW};
use crate::targets::Target;

/// Most of what a dying process says that is repeated.
const MOST_SAID_BYTES: usize = 4 << 10;

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Well,
    /// By an input.
    Broke {
        /// The input.
        input: Vec<u8>,
        /// What happened and where, the same for all inputs that break the same thing.
        how: String,
        /// All that it said.
        said: String,
    },
}

/// Runs a target in a process of its own, with these arguments.
///
/// # Errors
/// Where the process can't be started, or ended for another reason than an input.
pub fn run(target: &Target, limits: Limits, arguments: &[String]) -> Result<Ended, String> {
    let words = |error: std::io::Error| format!("{}: {error}", target.name);
    let current = tempfile::NamedTempFile::new().map_err(words)?;
    let mut stderr = tempfile::tempfile().map_err(words)?;
    let status = Command::new(std::env::current_exe().map_err(words)?)
        .arg("--inside")
        .arg(current.path())
        .args(["--target", target.name])
        .arg(format!("--most-ms={}", limits.most_ms))
        .arg(format!("--most-mib={}", limits.most_mib))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(stderr.try_clone().map_err(words)?)
        .status()
        .map_err(words)?;
    let mut said = Vec::new();
    stderr
        .rewind()
        .and_then(|()| stderr.read_to_end(&mut said))
        .map_err(words)?;
    said.truncate(MOST_SAID_BYTES);
    let said = String::from_utf8_lossy(&said).into_owned();
    match (status.success(), how(status, &said)) {
        (true, _) => Ok(Ended::Well),
        (false, Some(how)) => Ok(Ended::Broke {
            input: current_input(current.path()).map_err(words)?,
            how,
            said,
        }),
        (false, None) => Err(said
            .trim_end()
            .trim_start_matches("crypt-fuzz: ")
            .to_owned()),
    }
}

/// Tries one input in a process of its own.
///
/// # Errors
/// As [`run`].
pub fn once(target: &Target, limits: Limits, input: &[u8]) -> Result<Ended, String> {
    let file = tempfile::NamedTempFile::new()
        .and_then(|file| fs::write(file.path(), input).map(|()| file));
    let file = file.map_err(|error| format!("{}: {error}", target.name))?;
    // Its own word on it is of no interest here.
    let path = file.path().display().to_string();
    run(target, limits, &["--quiet".to_owned(), path])
}

/// A name for an input: the beginning of its SHA-256.
#[must_use]
pub fn name_of(input: &[u8]) -> String {
    Sha256::digest(input)
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What an input did; `None` where it was none.
fn how(status: ExitStatus, said: &str) -> Option<String> {
    let line = |mark: &str| said.lines().find(|line| line.contains(mark));
    match (status.code(), status.signal()) {
        (Some(TOO_SLOW), _) => Some("too slow".to_owned()),
        // The thread's number differs from process to process.
        (Some(101), _) => Some(
            match line("panicked at ").and_then(|line| line.split("panicked at ").nth(1)) {
                Some(place) => format!("panic at {place}"),
                None => "panic".to_owned(),
            },
        ),
        (None, Some(_)) if line("memory allocation of").is_some() => {
            Some("too much memory".to_owned())
        }
        (None, Some(_)) if line("has overflowed its stack").is_some() => {
            Some("stack overflow".to_owned())
        }
        (None, Some(signal)) => Some(format!("signal {signal}")),
        _ => None,
    }
}

/// What [`crate::inside::Guard::check`] noted down last.
fn current_input(path: &Path) -> std::io::Result<Vec<u8>> {
    let noted = fs::read(path)?;
    let Some((len, rest)) = noted.split_first_chunk() else {
        return Ok(Vec::new());
    };
    let len = u64::from_le_bytes(*len) as usize;
    Ok(rest[..len.min(rest.len())].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_apart() {
        let how = |raw: i32, said: &str| how(ExitStatus::from_raw(raw), said);
        let panic = "\nthread 'main' (7) panicked at src/a.rs:1:2:\nwhy\n";
        assert_eq!(how(101 << 8, panic).unwrap(), "panic at src/a.rs:1:2:");
        assert_eq!(how(TOO_SLOW << 8, "").unwrap(), "too slow");
        assert_eq!(
            how(6, "memory allocation of 9 bytes failed").unwrap(),
            "too much memory"
        );
        assert_eq!(
            how(6, "\nthread 'main' has overflowed its stack\n").unwrap(),
            "stack overflow"
        );
        assert_eq!(how(9, "").unwrap(), "signal 9");
        assert_eq!(how(1 << 8, "crypt-fuzz: no"), None);
    }
}

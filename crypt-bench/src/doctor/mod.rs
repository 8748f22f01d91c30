//! What on a host disturbs measurements, and what to do about each: one finding per check.
//!
//! Pure but for [`System`], through which checks read procfs and sysfs, and which tests make up. What can't be read is
//! a finding too.

#![forbid(unsafe_code)]

mod cpu;
mod memory;
mod storage;
pub mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub check: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do; nothing where all is well.
    pub advice: Option<&'static str>,
}

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It disturbs nothing.
    Good,
    /// It bears on the figures, equally at all times: to be known when they are compared with those of others.
    Note,
    /// It can't be seen here.
    Unknown,
    /// It makes figures vary, or slower than they need to be.
    Disturbs,
}

/// Where checks look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// This machine.
    Here,
    /// Files by their path, for tests.
    MadeUp(BTreeMap<String, String>),
}

/// What is not in files.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    /// The fastest cipher backend, and what the CPU lacks for the fastest one there is.
    pub backend: (String, Option<String>),
    /// Whether io_uring works, or why not.
    pub io_uring: Result<(), String>,
    /// Source of time stamps.
    pub clock: String,
    /// Share of all processor time that the hypervisor took while looking on, in percent.
    pub steal_percent: f64,
    /// Share of all processor time that was in use meanwhile, in percent.
    pub busy_percent: f64,
    /// CPUs that the process may use.
    pub cpus: usize,
    /// RLIMIT_MEMLOCK in bytes; `None` for unlimited.
    pub memlock_bytes: Option<u64>,
    /// Whether this build is optimised.
    pub optimised: bool,
}

impl System {
    /// The text of a file without white space around it.
    fn read(&self, path: &str) -> Option<String> {
        let text = match self {
            Self::Here => fs::read_to_string(path).ok()?,
            Self::MadeUp(files) => files.get(path)?.clone(),
        };
        Some(text.trim().to_owned())
    }

    /// Names in a folder, in order.
    fn list(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Self::Here => fs::read_dir(Path::new(folder))
                .map(|entries| {
                    entries
                        .flatten()
                        .map(|entry| entry.file_name().to_string_lossy().into_owned())
                        .collect()
                })
                .unwrap_or_default(),
            Self::MadeUp(files) => {
                let inside = files
                    .keys()
                    .filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/'));
                inside
                    .filter_map(|rest| Some(rest.split('/').next()?.to_owned()))
                    .collect()
            }
        };
        names.sort();
        names.dedup();
        names
    }
}

/// Every check.
#[must_use]
pub fn examine(system: &System, probed: &Probed) -> Vec<Finding> {
    let mut findings = vec![
        cpu::governor(system),
        cpu::turbo(system),
        cpu::threads(system),
        cpu::idle(system),
        cpu::thermal(system),
        cpu::mitigations(system),
        cpu::hypervisor(system),
        cpu::steal(probed),
        cpu::load(probed),
        cpu::quota(system),
        cpu::allowed(system, probed),
        cpu::backend(probed),
        cpu::clock(probed),
        memory::locked(probed),
        memory::swap(system),
        memory::balancing(system),
        storage::io_uring(system, probed),
        build(probed),
    ];
    findings.extend(storage::devices(system));
    findings
}

impl Finding {
    fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            state: State::Good,
            found: found.into(),
            advice: None,
        }
    }

    fn unknown(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: State::Unknown,
            ..Self::good(check, found)
        }
    }

    fn note(check: &'static str, found: impl Into<String>, advice: &'static str) -> Self {
        Self {
            state: State::Note,
            advice: Some(advice),
            ..Self::good(check, found)
        }
    }

    fn disturbs(check: &'static str, found: impl Into<String>, advice: &'static str) -> Self {
        Self {
            state: State::Disturbs,
            advice: Some(advice),
            ..Self::good(check, found)
        }
    }
}

fn build(probed: &Probed) -> Finding {
    if probed.optimised {
        Finding::good("build", "optimised")
    } else {
        Finding::disturbs("build", "not optimised", "build with --release")
    }
}

#[cfg(test)]
mod tests;

//! Log files of jobs: `write_bw_log`, `write_iops_log` and `write_lat_log`, with what goes with them. Pure.
//!
//! Files are named as fio names them: `PREFIX_KIND.N.log`, where N counts the threads of all jobs from 1, or
//! `PREFIX_KIND.log` with `per_job_logs=0`, which threads share. A prefix without a folder means the current one,
//! whatever `directory` says.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::PathBuf;

use super::Refusal;
use super::job::Job;
use super::place::{Copy, Plan};
use super::settings::Settings;
use crate::fio::log::LogKind;
use crate::log::LogRule;

/// Most requests that there is room for where nobody says how many.
const MOST_REQUESTS: u64 = 1 << 21;
/// Most windows likewise.
const MOST_WINDOWS: u64 = 1 << 18;
/// Time for the last completions, behind the time of a job, in milliseconds.
const LAST_MS: u64 = 60_000;

/// The options that ask for logs, and the kinds of log that each one asks for.
const ASKED: [(&str, &[LogKind]); 3] = [
    ("write_bw_log", &[LogKind::Bandwidth]),
    ("write_iops_log", &[LogKind::Iops]),
    (
        "write_lat_log",
        &[LogKind::Lat, LogKind::Slat, LogKind::Clat],
    ),
];

/// Options that need one of those.
const DEPENDENT: [&str; 3] = ["log_avg_msec", "log_entries", "per_job_logs"];

/// The logs that a job asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// Kinds, and how the names of their files begin.
    prefixes: Vec<(LogKind, String)>,
    /// Length of a window in milliseconds; `None` for every request by itself.
    window_ms: Option<u64>,
    per_thread: bool,
    /// Requests or windows, where somebody says how many.
    room: Option<u64>,
}

/// A log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its path.
    pub path: PathBuf,
    /// What is in it.
    pub kind: LogKind,
    /// Copies whose logs are in it, one after the other, by their place in the plan.
    pub copies: Vec<usize>,
}

impl Logs {
    /// Those of a job; `None` where it asks for none.
    ///
    /// # Errors
    /// Options of its own section that have no effect.
    pub fn of(job: &Job) -> Result<Option<Self>, Refusal> {
        let settings = &job.settings;
        let prefixes = prefixes(settings, &job.name);
        if prefixes.is_empty() {
            return lonely(job).map(|()| None);
        }
        Ok(Some(Self {
            prefixes,
            window_ms: settings.number("log_avg_msec").filter(|ms| *ms > 0),
            per_thread: settings.flag_or("per_job_logs", true),
            room: settings.number("log_entries"),
        }))
    }

    /// How a thread keeps them: with room for all requests or windows, as far as their number is known and not
    /// too large.
    #[must_use]
    pub fn rule(&self, job: &Job, copy: &Copy) -> LogRule {
        let room = self.room.unwrap_or_else(|| match self.window_ms {
            None => requests(job, copy).unwrap_or(u64::MAX).min(MOST_REQUESTS),
            Some(ms) => windows(job, ms).unwrap_or(u64::MAX).min(MOST_WINDOWS),
        });
        LogRule {
            window_ms: self.window_ms,
            room: usize::try_from(room).unwrap_or(usize::MAX),
        }
    }

    /// Kinds and files of the thread with this number, from 1.
    fn files(&self, number: usize) -> impl Iterator<Item = (LogKind, PathBuf)> {
        self.prefixes.iter().map(move |(kind, prefix)| {
            let name = kind.name();
            let path = match self.per_thread {
                true => format!("{prefix}_{name}.{number}.log"),
                false => format!("{prefix}_{name}.log"),
            };
            (*kind, PathBuf::from(path))
        })
    }
}

/// The log files of a plan, each once.
#[must_use]
pub fn files(plan: &Plan) -> Vec<LogFile> {
    let mut files: Vec<LogFile> = Vec::new();
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    for (index, copy) in plan.copies.iter().enumerate() {
        let logs = plan.jobs.get(copy.job).and_then(|job| job.logs.as_ref());
        for (kind, path) in logs.into_iter().flat_map(|logs| logs.files(index + 1)) {
            let at = *known.entry(path.clone()).or_insert(files.len());
            match files.get_mut(at) {
                Some(file) => file.copies.push(index),
                None => files.push(LogFile {
                    path,
                    kind,
                    copies: vec![index],
                }),
            }
        }
    }
    files
}

fn prefixes(settings: &Settings, name: &str) -> Vec<(LogKind, String)> {
    let asked = ASKED.iter().filter_map(|(option, kinds)| {
        let prefix = settings.prefix(option, name)?;
        Some(kinds.iter().map(move |kind| (*kind, prefix.to_owned())))
    });
    asked.flatten().collect()
}

fn lonely(job: &Job) -> Result<(), Refusal> {
    for name in DEPENDENT {
        if job
            .settings
            .find(name)
            .is_some_and(|setting| !setting.global)
        {
            let message = format!(
                "{name}: without a log this has no effect; add write_bw_log, write_iops_log or write_lat_log, or \
                 remove it"
            );
            return Err(job.refuse(name, message));
        }
    }
    Ok(())
}

/// Most requests that a copy can make, where that is known.
fn requests(job: &Job, copy: &Copy) -> Option<u64> {
    if let Some(replay) = &job.replay {
        return replay.summary.reads.checked_add(replay.summary.writes);
    }
    let smallest = job.smallest_bytes().max(1);
    let of_bytes = copy.total_bytes.map(|bytes| bytes.div_ceil(smallest));
    [of_bytes, copy.total_ios].into_iter().flatten().min()
}

/// Most windows that a job lasts, where that is known.
fn windows(job: &Job, window_ms: u64) -> Option<u64> {
    let runtime_ms = job.runtime_us?.div_ceil(1000);
    Some(
        runtime_ms
            .saturating_add(LAST_MS)
            .div_ceil(window_ms.max(1)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn plan(text: &str) -> Result<Plan, Refusal> {
        let fake = Fake::default().file("a.fio", text);
        let jobs = super::super::load(&["a.fio".to_owned()], &[], &fake)?;
        Plan::new(jobs, &|_| Ok(None))
    }

    fn names(text: &str) -> Vec<String> {
        let files = files(&plan(text).unwrap());
        let names = files.iter().map(|file| file.path.to_str().unwrap());
        names.map(str::to_owned).collect()
    }

    const NULL: &str = "[global]\nioengine=null\nsize=64k\n";

    #[test]
    fn names_are_those_that_fio_gives() {
        let text = format!(
            "{NULL}write_bw_log=out/w\n[a]\nwrite_lat_log\n[b]\nnumjobs=2\nwrite_iops_log=x\n"
        );
        let expected = [
            "out/w_bw.1.log",
            "a_lat.1.log",
            "a_slat.1.log",
            "a_clat.1.log",
            "out/w_bw.2.log",
            "x_iops.2.log",
            "out/w_bw.3.log",
            "x_iops.3.log",
        ];
        assert_eq!(names(&text), expected);
        // Nothing keeps the name of [global], an empty name is the job's.
        let text = format!("{NULL}write_bw_log=w\nname=z\n[a]\nwrite_bw_log\n[b]\nwrite_bw_log=\n");
        assert_eq!(names(&text), ["w_bw.1.log", "z_bw.2.log"]);
        assert_eq!(names(&format!("{NULL}[a]\n")), Vec::<String>::new());
    }

    #[test]
    fn threads_may_share_files() {
        let text = format!(
            "{NULL}per_job_logs=0\nwrite_iops_log=w\n[a]\nnumjobs=2\n[b]\nstonewall\n[c]\nwrite_iops_log=v\n"
        );
        let files = files(&plan(&text).unwrap());
        let seen: Vec<_> = files
            .iter()
            .map(|file| (file.path.to_str().unwrap(), file.copies.as_slice()))
            .collect();
        let expected: [(&str, &[usize]); 2] = [("w_iops.log", &[0, 1, 2]), ("v_iops.log", &[3])];
        assert_eq!(seen, expected);
    }

    #[test]
    fn there_is_room_for_all_that_is_known() {
        for (options, window_ms, room) in [
            ("bs=4k", None, 16),
            ("bs=3k", None, 21),
            ("number_ios=5", None, 5),
            ("time_based\nruntime=1", None, MOST_REQUESTS),
            ("log_entries=2k", None, 2048),
            ("log_avg_msec=500\nruntime=1", Some(500), 122),
            ("log_avg_msec=500", Some(500), MOST_WINDOWS),
        ] {
            let plan = plan(&format!("{NULL}[a]\nwrite_bw_log\n{options}\n")).unwrap();
            let logs = plan.jobs[0].logs.as_ref().unwrap();
            let room = usize::try_from(room).unwrap();
            let expected = LogRule { window_ms, room };
            assert_eq!(
                logs.rule(&plan.jobs[0], &plan.copies[0]),
                expected,
                "{options}"
            );
        }
    }

    #[test]
    fn options_without_a_log_are_refused_where_they_are_of_the_job() {
        let refusal = plan(&format!("{NULL}[a]\nlog_avg_msec=500\n")).unwrap_err();
        let message = refusal.to_string();
        assert!(
            message.starts_with("a.fio:5: log_avg_msec: without a log"),
            "{message}"
        );
        assert!(plan(&format!("{NULL}log_avg_msec=500\n[a]\n")).is_ok());
    }
}

//! A plan as text: jobs with the origin of every value, byte ranges, and what happens to files. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write;

use crate::definition::device::Engine;
use crate::fio::log::LogKind;
use crate::jobfile::job::{Access, Job};
use crate::jobfile::logs::{self, LogFile};
use crate::jobfile::place::{Copy, FileUse, Place, Plan, Range};
use crate::jobfile::replay::Replay;
use crate::jobfile::settings::Setting;
use crate::jobfile::value::Value;
use crate::jobfile::verify::Verify;
use crate::report::format;

/// Most copies of a job that are shown one by one.
const MOST_SHOWN: usize = 8;
/// Most logs that are listed.
const MOST_LOGS: usize = 64;

/// Defaults that are worth a line where nothing is said.
const DEFAULTS: &[(&str, &str)] = &[
    ("bs", "4096"),
    ("direct", "0"),
    ("iodepth", "1"),
    ("ioengine", "psync"),
    ("numjobs", "1"),
    ("rw", "read"),
];

/// Everything about a plan.
#[must_use]
pub fn text(plan: &Plan) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}, {}, {}",
        format::counted(plan.jobs.len(), "job"),
        format::counted(plan.copies.len(), "thread"),
        format::counted(plan.stages(), "stage")
    );
    let mut rest = plan.copies.as_slice();
    for (index, job) in plan.jobs.iter().enumerate() {
        // Copies are in the order of their jobs.
        let (own, others) = rest.split_at(rest.partition_point(|copy| copy.job <= index));
        let copies: Vec<&Copy> = own.iter().collect();
        rest = others;
        write_job(&mut text, job, &copies);
    }
    write_files(&mut text, &plan.files);
    write_logs(&mut text, &logs::files(plan));
    text
}

fn write_job(text: &mut String, job: &Job, copies: &[&Copy]) {
    let (stage, group) = copies
        .first()
        .map_or((0, 0), |copy| (copy.stage, copy.group));
    let _ = writeln!(
        text,
        "\n[{}]  {}  stage {}, group {group}",
        job.name,
        job.position,
        stage + 1
    );
    for (name, value, origin) in values(job) {
        let _ = writeln!(text, "  {name:<18} {value:<20} {origin}");
    }
    let _ = writeln!(text, "  runs as            {}", engine(job));
    if let Some(replay) = &job.replay {
        let _ = writeln!(text, "  plays              {}", played(replay));
    }
    if let Some(verify) = &job.verify {
        let _ = writeln!(text, "  verifies           {}", verification(job, verify));
    }
    for copy in copies.iter().take(MOST_SHOWN) {
        write_ranges(text, job, copy);
    }
    if copies.len() > MOST_SHOWN {
        let _ = writeln!(text, "  ... and {} more", copies.len() - MOST_SHOWN);
    }
    let total = copies
        .iter()
        .try_fold(0_u64, |sum, copy| sum.checked_add(copy.total_bytes?));
    let _ = writeln!(text, "  ends               {}", end(job, total));
}

/// Name, value and origin of every option, set or default, by name.
fn values(job: &Job) -> Vec<(&str, &str, String)> {
    let mut rows: Vec<(&str, &str, String)> = job
        .settings
        .iter()
        .map(|(name, setting)| (name, shown(setting), origin(setting)))
        .collect();
    for (name, value) in DEFAULTS {
        let said_otherwise = match *name {
            "bs" => job
                .settings
                .find("bsrange")
                .or(job.settings.find("bssplit")),
            "direct" => job.settings.find("buffered"),
            _ => None,
        };
        if job.settings.find(name).is_none() && said_otherwise.is_none() {
            rows.push((name, value, "default".to_owned()));
        }
    }
    rows.sort_by_key(|row| row.0);
    rows
}

fn shown(setting: &Setting) -> &str {
    match (&setting.value, setting.text.as_str()) {
        (Value::Prefix(Some(prefix)), _) if !prefix.is_empty() => prefix,
        (Value::Prefix(_), _) => "as the job",
        (_, "") => "1",
        (_, text) => text,
    }
}

fn origin(setting: &Setting) -> String {
    let mut origin = setting.position.to_string();
    if setting.global {
        origin.push_str("  [global]");
    }
    if !setting.overrides.is_empty() {
        let overridden: Vec<String> = setting.overrides.iter().map(ToString::to_string).collect();
        let _ = write!(origin, "  instead of {}", overridden.join(", "));
    }
    origin
}

fn engine(job: &Job) -> String {
    let access = match job.access {
        Access::Null => "null device",
        Access::File(Engine::Sync) if job.depth > 1 => {
            "plain system calls, one at a time whatever iodepth says"
        }
        Access::File(Engine::Sync) => "plain system calls",
        Access::File(_) => "io_uring",
    };
    match &job.crypt {
        None => format!("{access}, no cipher"),
        Some(crypt) => format!(
            "{access}, {} in sectors of {} bytes, placed by {}",
            crypt.cipher_text,
            crypt.cipher.sector_size().bytes(),
            crypt.policy
        ),
    }
}

/// What is in a trace.
fn played(replay: &Replay) -> String {
    let summary = &replay.summary;
    let speed = match replay.speed_percent {
        None => "as fast as possible".to_owned(),
        Some(percent) => format!(
            "in {} s, {percent} % of its speed",
            seconds(summary.length_us.saturating_mul(100) / percent.max(1))
        ),
    };
    let taken = match summary.of_devices {
        true => format!(" taken at {}", replay.changes.stage.sign()),
        false => String::new(),
    };
    format!(
        "{}: {} reads, {} writes, {} flushes{taken}, {speed}",
        replay.path, summary.reads, summary.writes, summary.syncs
    )
}

/// What is compared, and when.
fn verification(job: &Job, verify: &Verify) -> String {
    let when = match (job.pattern.rw.writes(), verify.only, verify.read_back) {
        (false, ..) => "compares what it reads",
        (_, true, _) => "writes nothing, reads what it would write and compares it",
        (_, _, true) => "reads back what it wrote, after the last write, and compares it",
        (_, _, false) => "writes blocks that can be compared later",
    };
    format!("{when}, by {}", verify.method.name())
}

fn write_ranges(text: &mut String, job: &Job, copy: &Copy) {
    let mut title = format!("thread {}", copy.number);
    for range in copy.ranges.iter().take(MOST_SHOWN) {
        let _ = writeln!(text, "  {title:<18} {}", described(job, range));
        title.clear();
    }
    if copy.ranges.len() > MOST_SHOWN {
        let more = copy.ranges.len() - MOST_SHOWN;
        let _ = writeln!(text, "  {:<18} ... and {more} more files", "");
    }
}

fn described(job: &Job, range: &Range) -> String {
    let place = match &range.place {
        Place::Null => "null device".to_owned(),
        Place::File(path) => path.display().to_string(),
    };
    let does = match (job.pattern.rw.reads(), job.writes()) {
        (true, true) => "reads and WRITES",
        (false, true) => "WRITES",
        (_, false) => "reads",
    };
    format!(
        "{does} bytes {} to {} of {place} ({})",
        range.start_bytes,
        range.start_bytes + range.len_bytes - 1,
        format::size(range.len_bytes)
    )
}

fn end(job: &Job, total: Option<u64>) -> String {
    let ramp = match job.ramp_us {
        0 => String::new(),
        us => format!(", after a ramp of {} s that does not count", seconds(us)),
    };
    let bytes = total.map(|bytes| format!("after {bytes} bytes in all"));
    let time = job.runtime_us.map(|us| format!("after {} s", seconds(us)));
    let ios = job.settings.number("number_ios").filter(|ios| *ios > 0);
    let ios = ios.map(|ios| format!("after {ios} requests per thread"));
    let ends: Vec<String> = [bytes, ios, time].into_iter().flatten().collect();
    format!("{}{ramp}", ends.join(" or "))
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn write_files(text: &mut String, files: &[FileUse]) {
    if files.is_empty() {
        text.push_str("\nno file is touched\n");
        return;
    }
    text.push_str("\nfiles\n");
    for file in files {
        let what = match (file.existing_bytes, file.written) {
            (None, _) => "does not exist; would be created with --create and filled",
            (Some(_), false) => "exists; is opened read-only",
            (Some(_), true) => "exists; its DATA WOULD BE LOST, which needs --destroy-data-on",
        };
        let _ = writeln!(
            text,
            "  {}  {} bytes, {what}",
            file.path.display(),
            file.bytes
        );
    }
}

fn write_logs(text: &mut String, logs: &[LogFile]) {
    if logs.is_empty() {
        return;
    }
    text.push_str("\nlogs, written after the run\n");
    for log in logs.iter().take(MOST_LOGS) {
        let what = match log.kind {
            LogKind::Bandwidth => "throughput",
            LogKind::Iops => "requests per second",
            LogKind::Lat => "latency from submission to completion",
            LogKind::Slat => "latency from submission to issue",
            LogKind::Clat => "latency from issue to completion",
        };
        let threads = format::counted(log.copies.len(), "thread");
        let _ = writeln!(text, "  {}  {what}, {threads}", log.path.display());
    }
    if logs.len() > MOST_LOGS {
        let _ = writeln!(text, "  ... and {} more", logs.len() - MOST_LOGS);
    }
}

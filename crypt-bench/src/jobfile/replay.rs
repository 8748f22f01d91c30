//! Jobs that play a trace: `read_iolog` and the options `replay_*`.
//!
//! The trace is read once when the job is, so that its files, ranges and directions are known, and everything that
//! can't be played is refused, before anything is opened for writing.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use super::job::{Access, Job};
use super::place::{Copy, Place, Range};
use super::settings::Settings;
use super::value::Pattern;
use super::{Refusal, Surroundings};
use crate::generate::Lengths;
use crate::result::Rw;
use crate::trace::{Changes, Kind, Reader, Summary};

/// Options that a trace leaves nothing to.
const REPLACED: &[&str] = &[
    "bs",
    "bsrange",
    "bssplit",
    "file_service_type",
    "filename",
    "filename_format",
    "filesize",
    "fdatasync",
    "fsync",
    "io_size",
    "loops",
    "nrfiles",
    "number_ios",
    "offset",
    "offset_increment",
    "openfiles",
    "ramp_time",
    "rate",
    "rate_iops",
    "rw",
    "size",
    "thinktime",
    "time_based",
    "verify",
];

/// Options that need one.
const DEPENDENT: &[&str] = &[
    "read_iolog_chunked",
    "replay_align",
    "replay_no_stall",
    "replay_redirect",
    "replay_scale",
    "replay_skip",
    "replay_time_scale",
];

/// A trace and how it is played.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The trace's file.
    pub path: String,
    /// What it plays on.
    pub target: String,
    /// What is changed.
    pub changes: Changes,
    /// Percent of the trace's speed; `None` for as fast as possible, in order.
    pub speed_percent: Option<u64>,
    /// What is in it.
    pub summary: Summary,
}

impl Replay {
    /// The replay of a job that is complete but for this.
    ///
    /// # Errors
    /// Options that have no effect beside it, and the first line of the trace that can't be played.
    pub fn of(job: &Job, surroundings: &dyn Surroundings) -> Result<Option<Self>, Refusal> {
        let settings = &job.settings;
        let Some(path) = settings.text("read_iolog") else {
            return lonely(job).map(|()| None);
        };
        for name in REPLACED {
            if settings.find(name).is_some_and(|setting| !setting.global) {
                let message = format!("{name}: the trace of read_iolog says that; remove it");
                return Err(job.refuse(name, message));
            }
        }
        if path.contains(':') {
            let message = "read_iolog: one trace per job; write one job for each";
            return Err(job.refuse("read_iolog", message));
        }
        let changes = changes(job)?;
        let refuse =
            |message: String| job.refuse("read_iolog", format!("read_iolog: {path}: {message}"));
        let input = surroundings.lines(path).map_err(refuse)?;
        let reader =
            Reader::new(input, changes.clone()).map_err(|error| refuse(error.to_string()))?;
        let summary = Summary::of(reader).map_err(|error| refuse(error.to_string()))?;
        if summary.reads + summary.writes == 0 {
            return Err(refuse(
                "there is neither a read nor a write in it".to_owned(),
            ));
        }
        Ok(Some(Self {
            target: target(job, &summary)?,
            path: path.to_owned(),
            changes,
            speed_percent: (!settings.flag("replay_no_stall"))
                .then(|| settings.number("replay_time_scale").unwrap_or(100)),
            summary,
        }))
    }

    /// Makes the job one of this trace: what the trace says counts, whatever `[global]` says.
    pub fn apply(self, job: &mut Job) {
        let rw = match (self.summary.reads, self.summary.writes) {
            (_, 0) => Rw::Read,
            (0, _) => Rw::Write,
            _ => Rw::ReadWrite,
        };
        job.pattern = Pattern { rw, modifier: None };
        job.read_lengths = Lengths::Fixed(self.summary.longest_bytes);
        job.write_lengths = Lengths::Fixed(self.summary.longest_bytes);
        (job.loops, job.time_based, job.ramp_us, job.verify) = (1, false, 0, None);
        job.replay = Some(self);
    }

    /// Where a copy of its job plays: from the start of the file to the end of the last request.
    ///
    /// # Errors
    /// A file that is too short.
    pub fn place(
        &self,
        job: &Job,
        index: usize,
        number: u32,
        size_of: &dyn Fn(&Path) -> Option<u64>,
    ) -> Result<Copy, Refusal> {
        let place = match job.access {
            Access::Null => Place::Null,
            Access::File(_) => Place::File(PathBuf::from(&self.target)),
        };
        let end = self.summary.end_bytes;
        if let Place::File(path) = &place
            && let Some(bytes) = size_of(path).filter(|bytes| *bytes < end)
        {
            let message = format!(
                "read_iolog: the trace ends at byte {end}, but {} has {bytes} bytes, and a file is never made longer; \
                 use a longer one, or add replay_scale=NUMBER",
                path.display()
            );
            return Err(job.refuse("read_iolog", message));
        }
        Ok(Copy {
            job: index,
            number,
            ranges: vec![Range {
                place,
                base_bytes: 0,
                start_bytes: 0,
                len_bytes: end,
            }],
            total_bytes: Some(self.summary.bytes),
            total_ios: None,
            stage: 0,
            group: 0,
            after: None,
        })
    }
}

fn lonely(job: &Job) -> Result<(), Refusal> {
    let found = DEPENDENT
        .iter()
        .find(|name| job.settings.find(name).is_some());
    match found {
        None => Ok(()),
        Some(name) => Err(job.refuse(
            name,
            format!("{name}: without a trace this has no effect; add read_iolog=FILE"),
        )),
    }
}

fn changes(job: &Job) -> Result<Changes, Refusal> {
    let settings = &job.settings;
    let align = settings.number("replay_align").unwrap_or(0).max(1);
    if !align.is_power_of_two() {
        return Err(job.refuse("replay_align", "replay_align: use a power of 2"));
    }
    let unit = job.crypt.as_ref();
    Ok(Changes {
        scale: settings.number("replay_scale").unwrap_or(0).max(1),
        align_bytes: align,
        skip: skip(settings).map_err(|message| job.refuse("replay_skip", message))?,
        unit_bytes: unit.map_or(512, |crypt| crypt.cipher.sector_size().bytes() as u64),
    })
}

fn skip(settings: &Settings) -> Result<Vec<Kind>, String> {
    let Some(text) = settings.text("replay_skip") else {
        return Ok(Vec::new());
    };
    let kinds = text.split(',').map(|name| match name.trim() {
        "read" => Ok(Kind::Read),
        "write" => Ok(Kind::Write),
        "sync" => Ok(Kind::Sync),
        "trim" => Ok(Kind::Trim),
        name => Err(format!(
            "replay_skip: `{name}`: use read, write, trim and sync, with commas between them"
        )),
    });
    kinds.collect()
}

fn target(job: &Job, summary: &Summary) -> Result<String, Refusal> {
    if let Some(target) = job.settings.text("replay_redirect") {
        return Ok(target.to_owned());
    }
    match summary.files.as_slice() {
        [file] => Ok(file.clone()),
        files => {
            let message = format!(
                "read_iolog: requests for {} files ({}) can't be played by one job; add \
                 replay_redirect=FILE to play all of them on one, or split the trace",
                files.len(),
                files.join(", ")
            );
            Err(job.refuse("read_iolog", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    const TRACE: &str = "fio version 3 iolog\n0 /d add\n0 /d open\n9 /d read 8192 4096\n\
                         20 /d write 0 4096\n";

    fn job(options: &str, trace: &str) -> Result<Job, Refusal> {
        let text = format!("[global]\nrw=randread\nbs=64k\n[a]\n{options}\n");
        let fake = Fake::default().file("a.fio", &text).file("t", trace);
        super::super::load(&["a.fio".to_owned()], &[], &fake).map(|mut jobs| jobs.remove(0))
    }

    #[test]
    fn the_trace_says_what_the_job_does() {
        let job = job("read_iolog=t\nreplay_time_scale=200", TRACE).unwrap();
        assert_eq!((job.pattern.rw, job.largest_bytes()), (Rw::ReadWrite, 4096));
        assert!(job.writes());
        let replay = job.replay.unwrap();
        assert_eq!(
            (replay.target.as_str(), replay.speed_percent),
            ("/d", Some(200))
        );
        assert_eq!(replay.summary.end_bytes, 12_288);
        let reads = self::job(
            "read_iolog=t\nreplay_skip=write,sync\nreplay_redirect=x\nreplay_no_stall=1",
            TRACE,
        );
        let reads = reads.unwrap();
        assert!(!reads.writes());
        let replay = reads.replay.unwrap();
        assert_eq!((replay.target.as_str(), replay.speed_percent), ("x", None));
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let two =
            "fio version 2 iolog\n/a add\n/a open\n/b add\n/b open\n/a read 0 512\n/b read 0 512\n";
        for (options, trace, reason) in [
            (
                "read_iolog=none",
                TRACE,
                "a.fio:5: read_iolog: none: no such file",
            ),
            (
                "read_iolog=t",
                "x",
                "a.fio:5: read_iolog: t: line 1: a trace begins",
            ),
            (
                "read_iolog=t",
                "fio version 2 iolog\n",
                "neither a read nor a write",
            ),
            ("read_iolog=t", two, "add replay_redirect=FILE"),
            ("read_iolog=t:u", TRACE, "one trace per job"),
            ("read_iolog=t\nbs=4k", TRACE, "a.fio:6: bs: the trace"),
            (
                "read_iolog=t\nreplay_align=3",
                TRACE,
                "a.fio:6: replay_align: use a power",
            ),
            (
                "read_iolog=t\nreplay_skip=flush",
                TRACE,
                "a.fio:6: replay_skip: `flush`",
            ),
            (
                "replay_scale=2\nsize=1m",
                TRACE,
                "a.fio:5: replay_scale: without a trace",
            ),
            (
                "read_iolog=t\nreplay_scale=3",
                TRACE,
                "line 4: offset 2730 is not a multiple",
            ),
        ] {
            let refusal = job(options, trace).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
        assert!(job("read_iolog=t\nreplay_redirect=x", two).is_ok());
    }
}

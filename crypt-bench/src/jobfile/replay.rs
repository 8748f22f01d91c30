//! Jobs that play a trace: `read_iolog` and the options `replay_*`.
//!
//! The trace is read once when the job is, so that its files, ranges and directions are known, and everything that
//! can't be played is refused, before anything is opened for writing.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use super::job::{Access, Job};
use super::place::{Copy, Place, Range, SizeOf};
use super::range::existing_bytes;
use super::settings::Settings;
use super::value::Pattern;
use super::{Refusal, Surroundings};
use crate::generate::Lengths;
use crate::result::Rw;
use crate::trace::{Changes, Kind, Reader, Stage, Summary};

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
    /// What it plays on instead of its own files.
    pub redirect: Option<String>,
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
        let mut changes = changes(job)?;
        let refuse =
            |message: String| job.refuse("read_iolog", format!("read_iolog: {path}: {message}"));
        let input = surroundings.lines(path).map_err(refuse)?;
        let summary_of = |input, changes: &Changes| {
            let reader = Reader::new(input, changes.clone());
            let summary = reader.and_then(Summary::of);
            summary.map_err(|error| refuse(error.to_string()))
        };
        let mut summary = summary_of(input, &changes)?;
        if summary.of_devices && summary.reads + summary.writes == 0 {
            changes.stage = Stage::Issued;
            let again = surroundings.lines(path).map_err(refuse)?;
            summary = summary_of(again, &changes)?;
        }
        if summary.reads + summary.writes == 0 {
            return Err(refuse(
                "there is neither a read nor a write in it".to_owned(),
            ));
        }
        Ok(Some(Self {
            redirect: settings.text("replay_redirect").map(str::to_owned),
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

    /// Where a copy of its job plays: from the start of each file to the end of its last request.
    ///
    /// # Errors
    /// A file that is too short, and a device that is not there.
    pub fn place(
        &self,
        job: &Job,
        index: usize,
        number: u32,
        size_of: SizeOf<'_>,
    ) -> Result<Copy, Refusal> {
        let ranges = self.ranges(job);
        for range in &ranges {
            if let Place::File(path) = &range.place {
                let fits = self.fits(path, range.len_bytes, existing_bytes(job, path, size_of)?);
                fits.map_err(|message| job.refuse("read_iolog", format!("read_iolog: {message}")))?;
            }
        }
        Ok(Copy {
            job: index,
            number,
            ranges,
            total_bytes: Some(self.summary.bytes),
            total_ios: None,
            stage: 0,
            group: 0,
            after: None,
        })
    }
}

impl Replay {
    /// Each file of the trace by itself, or all requests in one place.
    fn ranges(&self, job: &Job) -> Vec<Range> {
        let range = |place, len_bytes| Range {
            place,
            base_bytes: 0,
            start_bytes: 0,
            len_bytes,
        };
        let file = |path: &str| Place::File(PathBuf::from(path));
        match (job.access, &self.redirect) {
            (Access::Null, _) => vec![range(Place::Null, self.summary.end_bytes())],
            (_, Some(path)) => vec![range(file(path), self.summary.end_bytes())],
            (_, None) => {
                let files = self.summary.files.iter();
                files
                    .map(|found| range(file(&found.name), found.end_bytes))
                    .collect()
            }
        }
    }

    fn fits(&self, path: &Path, end: u64, found_bytes: Option<u64>) -> Result<(), String> {
        let path = path.display();
        match found_bytes {
            Some(bytes) if bytes < end => Err(format!(
                "the trace ends at byte {end}, but {path} has {bytes} bytes, and a file is never made longer; \
                 use a longer one, or add replay_scale=NUMBER"
            )),
            None if self.summary.of_devices && self.redirect.is_none() => Err(format!(
                "the trace is of a device that is not there, {path}; add replay_redirect=FILE"
            )),
            _ => Ok(()),
        }
    }

    /// Where the files of the trace begin on the device that a copy of its job plays on, by the numbers that events
    /// have; none where all are one.
    #[must_use]
    pub fn starts_bytes(&self, copy: &Copy) -> Vec<u64> {
        let mut starts = Vec::new();
        if copy.ranges.len() > 1 {
            for (file, range) in self.summary.files.iter().zip(&copy.ranges) {
                starts.resize(starts.len().max(file.number + 1), 0);
                starts[file.number] = range.base_bytes;
            }
        }
        starts
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
        stage: Stage::default(),
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

#[cfg(test)]
mod tests {
    use super::super::place::Plan;
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
            (replay.redirect.as_deref(), replay.speed_percent),
            (None, Some(200))
        );
        assert_eq!(replay.summary.end_bytes(), 12_288);
        let reads = self::job(
            "read_iolog=t\nreplay_skip=write,sync\nreplay_redirect=x\nreplay_no_stall=1",
            TRACE,
        );
        let reads = reads.unwrap();
        assert!(!reads.writes());
        let replay = reads.replay.unwrap();
        assert_eq!(
            (replay.redirect.as_deref(), replay.speed_percent),
            (Some("x"), None)
        );
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
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
    }

    fn plan(options: &str, trace: &str) -> Result<Plan, Refusal> {
        let job = job(options, trace)?;
        Plan::new(vec![job], &|path| {
            let sizes = [("/a", 3 << 20), ("/dev/block/8:0", 1 << 30)];
            let mut sizes = sizes.into_iter();
            Ok(sizes.find_map(|(known, bytes)| (Path::new(known) == path).then_some(bytes)))
        })
    }

    fn places(plan: &Plan) -> Vec<(&str, u64, u64)> {
        let ranges = plan.copies[0].ranges.iter();
        ranges
            .map(|range| match &range.place {
                Place::File(path) => (path.to_str().unwrap(), range.base_bytes, range.len_bytes),
                Place::Null => ("null", range.base_bytes, range.len_bytes),
            })
            .collect()
    }

    const SEVERAL: &str = "fio version 2 iolog\n/a add\n/a open\n/idle add\n/idle open\n/b add\n/b open\n\
                           /a read 0 512\n/idle sync 0 0\n/b write 4096 512\n/b read 0 512\n/a close\n";

    #[test]
    fn files_of_a_trace_are_kept_apart_unless_all_go_to_one() {
        let apart = plan("read_iolog=t\nioengine=psync", SEVERAL).unwrap();
        // The idle one has no bytes of its own; the others begin at whole MiB.
        assert_eq!(places(&apart), [("/a", 0, 512), ("/b", 3 << 20, 4608)]);
        let replay = apart.jobs[0].replay.as_ref().unwrap();
        assert_eq!(replay.starts_bytes(&apart.copies[0]), [0, 0, 3 << 20]);
        let one = plan("read_iolog=t\nreplay_redirect=/a", SEVERAL).unwrap();
        assert_eq!(places(&one), [("/a", 0, 4608)]);
        let replay = one.jobs[0].replay.as_ref().unwrap();
        assert_eq!(replay.starts_bytes(&one.copies[0]), [0; 0]);
        let null = plan("read_iolog=t\nioengine=null", SEVERAL).unwrap();
        assert_eq!(places(&null), [("null", 0, 4608)]);
    }

    #[test]
    fn block_traces_are_played_at_one_step_on_devices_that_are_there() {
        let queued = "8,0 0 1 0.000000000 7 Q R 8 + 8 [x]\n8,0 0 2 0.000001000 7 D R 8 + 16 [x]\nCPU0 (8,0):\nReads\n";
        let plan_of = |trace: &str| plan("read_iolog=t", trace);
        let plan = plan_of(queued).unwrap();
        assert_eq!(places(&plan), [("/dev/block/8:0", 0, 8192)]);
        let issued = plan_of(&queued.replace(" Q ", " G ")).unwrap();
        let replay = issued.jobs[0].replay.as_ref().unwrap();
        assert_eq!(
            (replay.changes.stage, replay.summary.bytes),
            (Stage::Issued, 8192)
        );
        let refusal = plan_of(&queued.replace("8,0", "8,1"))
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains("not there, /dev/block/8:1; add replay_redirect=FILE"),
            "{refusal}"
        );
    }
}

//! Where jobs do their work: byte ranges of every copy of every job, how much is transferred, and
//! which copies run at the same time. Pure: sizes of files come from the caller.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crypt_core::device::file::starts_bytes;

use super::job::Job;
pub use super::range::{Place, Range, SizeOf};
use super::value::Share;
use super::{Refusal, range};

/// One copy of a job, with its ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Index of its job.
    pub job: usize,
    /// Which copy, from 0.
    pub number: u32,
    /// What it works on, in one or several files.
    pub ranges: Vec<Range>,
    /// Bytes to transfer; `None` where only time ends it.
    pub total_bytes: Option<u64>,
    /// Requests to make at most; `None` for no limit.
    pub total_ios: Option<u64>,
    /// Copies of one stage run at the same time, stages one after the other. From 0.
    pub stage: usize,
    /// Copies of one group are reported together where `group_reporting` is set. From 0.
    pub group: usize,
    /// The job of the same stage whose copies must have ended before this one starts.
    pub after: Option<usize>,
}

/// A file that jobs use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Its path.
    pub path: PathBuf,
    /// Its size, where it exists.
    pub existing_bytes: Option<u64>,
    /// Its size, or that of the file to create.
    pub bytes: u64,
    /// Whether some job may write to it.
    pub written: bool,
}

/// What all jobs do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Their copies, in order.
    pub copies: Vec<Copy>,
    /// The files, each once.
    pub files: Vec<FileUse>,
    /// Where each stands in `files`.
    index: HashMap<PathBuf, usize>,
}

impl Copy {
    /// The range with this byte of the device that all its files are.
    #[must_use]
    pub fn range_at(&self, offset_bytes: u64) -> Option<&Range> {
        let mut ranges = self.ranges.iter();
        ranges.find(|range| offset_bytes < range.end_bytes())
    }
}

impl Plan {
    /// Places the jobs.
    ///
    /// # Errors
    /// A range that is not there or is too small, a file that would have to grow or is none.
    pub fn new(jobs: Vec<Job>, size_of: SizeOf<'_>) -> Result<Self, Refusal> {
        let mut copies = Vec::new();
        let mut files = Files::default();
        let (mut stage, mut group, mut jobs_in_group) = (0, 0, 0);
        for (index, job) in jobs.iter().enumerate() {
            if index > 0 && job.stonewall {
                stage += 1;
            }
            if jobs_in_group > 0 && (job.stonewall || job.settings.flag("new_group")) {
                (group, jobs_in_group) = (group + 1, 0);
            }
            jobs_in_group += 1;
            let after = awaited(&jobs, index)?;
            for number in 0..job.numjobs {
                let copy = place(job, index, number, size_of)?;
                for range in &copy.ranges {
                    files.note(range, job, size_of)?;
                }
                copies.push(Copy {
                    stage,
                    group,
                    after,
                    ..copy
                });
            }
        }
        for copy in &mut copies {
            set_bases(copy, &files)?;
        }
        Ok(Self {
            jobs,
            copies,
            files: files.uses,
            index: files.index,
        })
    }

    /// What is known of a file that jobs use.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<&FileUse> {
        self.files.get(*self.index.get(path)?)
    }

    /// Number of stages.
    #[must_use]
    pub fn stages(&self) -> usize {
        self.copies.last().map_or(0, |copy| copy.stage + 1)
    }
}

/// The files of a copy stand one behind the other, as they will be when they are opened.
fn set_bases(copy: &mut Copy, files: &Files) -> Result<(), Refusal> {
    let size_of = |range: &Range| {
        let Place::File(path) = &range.place else {
            return 0;
        };
        let file = files.index.get(path).map(|at| files.uses[*at].bytes);
        file.unwrap_or(0)
    };
    let sizes: Vec<u64> = copy.ranges.iter().map(size_of).collect();
    for (range, base_bytes) in copy.ranges.iter_mut().zip(starts_bytes(sizes)) {
        range.base_bytes = base_bytes;
    }
    let fits = copy
        .ranges
        .iter()
        .all(|range| i64::try_from(range.end_bytes()).is_ok());
    match fits {
        true => Ok(()),
        false => Err(Refusal::whole(
            "the files of a job have more bytes together than 63 bits can count".to_owned(),
        )),
    }
}

/// `wait_for` names a job above; one that a stonewall already waits for costs nothing.
fn awaited(jobs: &[Job], index: usize) -> Result<Option<usize>, Refusal> {
    let job = &jobs[index];
    let Some(name) = job.settings.text("wait_for") else {
        return Ok(None);
    };
    let Some(other) = jobs[..index].iter().rposition(|job| job.name == name) else {
        let message = format!("wait_for={name}: there is no such job above this one");
        return Err(job.refuse("wait_for", message));
    };
    let walled = jobs[other + 1..=index].iter().any(|job| job.stonewall);
    if walled {
        return Ok(None);
    }
    Ok(Some(other))
}

fn place(job: &Job, index: usize, number: u32, size_of: SizeOf<'_>) -> Result<Copy, Refusal> {
    if let Some(replay) = &job.replay {
        return replay.place(job, index, number, size_of);
    }
    let (ranges, asked_bytes) = range::ranges(job, number, size_of)?;
    Ok(Copy {
        job: index,
        number,
        total_bytes: total(job, asked_bytes)?,
        total_ios: job.settings.number("number_ios").filter(|ios| *ios > 0),
        ranges,
        stage: 0,
        group: 0,
        after: None,
    })
}

/// `io_size`, else all of the range, as often as `loops` says.
fn total(job: &Job, len: u64) -> Result<Option<u64>, Refusal> {
    if job.time_based {
        return Ok(None);
    }
    let once = match job.settings.share("io_size") {
        // A pass over the range leaves out what is shorter than a block.
        Some(Share::Bytes(0)) | None => len - len % job.smallest_bytes().max(1),
        Some(share) => share.bytes_of(len),
    };
    if once == 0 {
        let option = match job.settings.share("io_size") {
            Some(Share::Percent(_)) => "io_size",
            _ => "size",
        };
        let block = job.smallest_bytes();
        let message = format!(
            "{option}: less than a block of {block} bytes, so nothing would be transferred"
        );
        return Err(job.refuse(option, message));
    }
    match once.checked_mul(job.loops) {
        Some(total) => Ok(Some(total)),
        None => Err(job.refuse("loops", "more bytes than 64 bits can count")),
    }
}

/// The files of a plan, found by their path.
#[derive(Default)]
struct Files {
    uses: Vec<FileUse>,
    index: HashMap<PathBuf, usize>,
}

impl Files {
    fn note(&mut self, range: &Range, job: &Job, size_of: SizeOf<'_>) -> Result<(), Refusal> {
        let Place::File(path) = &range.place else {
            return Ok(());
        };
        let end = range.start_bytes + range.len_bytes;
        let known = self.index.get(path).and_then(|at| self.uses.get_mut(*at));
        if let Some(file) = known {
            file.written |= job.writes();
            file.bytes = file.existing_bytes.unwrap_or(file.bytes.max(end));
            return Ok(());
        }
        let existing_bytes = range::existing_bytes(job, path, size_of)?;
        self.index.insert(path.clone(), self.uses.len());
        self.uses.push(FileUse {
            path: path.clone(),
            existing_bytes,
            bytes: existing_bytes.unwrap_or(end),
            written: job.writes(),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    /// One file, `/disk`, of 1 MiB.
    fn plan(text: &str) -> Result<Plan, Refusal> {
        let fake = Fake::default().file("a.fio", text);
        let jobs = super::super::load(&["a.fio".to_owned()], &[], &fake)?;
        Plan::new(jobs, &|path| match path.to_str() {
            Some("/disk") => Ok(Some(1 << 20)),
            Some("/pipe") => Err("a pipe".to_owned()),
            _ => Ok(None),
        })
    }

    fn ranges(plan: &Plan) -> Vec<(u64, u64, Option<u64>)> {
        let copies = plan.copies.iter();
        copies
            .flat_map(|copy| {
                let total = copy.total_bytes;
                let ranges = copy.ranges.iter();
                ranges.map(move |range| (range.start_bytes, range.len_bytes, total))
            })
            .collect()
    }

    #[test]
    fn ranges_follow_size_offset_and_increment() {
        let all = 1 << 20;
        for (options, expected) in [
            ("", vec![(0, all, Some(all))]),
            ("size=64k", vec![(0, 65536, Some(65536))]),
            (
                "size=50%\noffset=25%",
                vec![(all / 4, all / 2, Some(all / 2))],
            ),
            ("offset=50%", vec![(all / 2, all / 2, Some(all / 2))]),
            (
                "size=100%\noffset=50%",
                vec![(all / 2, all / 2, Some(all / 2))],
            ),
            (
                "size=8k\nio_size=1m\nloops=2",
                vec![(0, 8192, Some(2 * all))],
            ),
            ("size=8k\ntime_based\nruntime=1", vec![(0, 8192, None)]),
            (
                "size=4k\noffset_increment=8k\nnumjobs=2",
                vec![(0, 4096, Some(4096)), (8192, 4096, Some(4096))],
            ),
        ] {
            let plan = plan(&format!("[a]\nfilename=/disk\n{options}\n")).unwrap();
            assert_eq!(ranges(&plan), expected, "{options}");
        }
    }

    #[test]
    fn files_without_a_name_get_fio_names() {
        let plan = plan("[a]\nsize=8k\ndirectory=/x\nnumjobs=2\nrw=write\n").unwrap();
        let files: Vec<_> = plan
            .files
            .iter()
            .map(|file| (file.path.to_str().unwrap(), file.bytes, file.written))
            .collect();
        assert_eq!(files, [("/x/a.0.0", 8192, true), ("/x/a.1.0", 8192, true)]);
    }

    #[test]
    fn stonewalls_make_stages_and_groups() {
        let text = "[global]\nioengine=null\nsize=4k\n[a]\n[b]\n[c]\nstonewall\n[d]\nnew_group\n\
                    [e]\nwait_for=b\n";
        let plan = plan(text).unwrap();
        let seen: Vec<_> = plan
            .copies
            .iter()
            .map(|copy| (copy.stage, copy.group))
            .collect();
        assert_eq!(seen, [(0, 0), (0, 0), (1, 1), (1, 2), (1, 2)]);
        // A stonewall waits for b already, d runs at the same time.
        assert!(plan.copies.iter().all(|copy| copy.after.is_none()));
        let beside = format!("{text}[f]\nwait_for=d\n");
        assert_eq!(self::plan(&beside).unwrap().copies[5].after, Some(3));
        assert_eq!(plan.stages(), 2);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (options, reason) in [
            (
                "filename=/disk\nsize=2m",
                "a.fio:3: [a]: the range ends at byte 2097152",
            ),
            (
                "filename=/disk\noffset=1m",
                "a.fio:3: offset 1048576 is not inside",
            ),
            ("filename=/disk\nsize=512", "smaller than a block"),
            ("filename=/none", "a.fio:1: [a]: /none does not exist"),
            (
                "filename=/none\nsize=50%",
                "a percentage of a file that does not exist",
            ),
            ("ioengine=null", "add size=SIZE"),
            ("filename=/a:/b\nsize=4k", "range of 0 bytes is smaller"),
            ("filename=/disk:/none", "/none does not exist"),
            (
                "rw=read\nfilename=/pipe\nsize=4k",
                "a.fio:3: [a]: /pipe: a pipe",
            ),
            ("filename=/disk\nfilesize=2m", "a file is never made longer"),
            ("filename=/disk\noffset=100", "multiple of the sector size"),
            (
                "filename=/none\nsize=1\nfilesize=1m",
                "a.fio:3: size: less than a block of 4096 bytes",
            ),
            ("filename=/disk\nwait_for=z", "no such job above"),
            (
                "filename=/disk\nsize=4k\noffset=9223372036854775296",
                "beyond 63 bits",
            ),
        ] {
            let refusal = plan(&format!("[a]\n{options}\n")).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
    }
}

//! Where jobs do their work: byte ranges of every copy of every job, how much is transferred, and
//! which copies run at the same time. Pure: sizes of files come from the caller.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use super::Refusal;
use super::job::{Access, Job};
use super::offsets;
use super::value::Share;

/// What a copy of a job works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Null,
    /// An existing or new file or block device.
    File(PathBuf),
}

/// One copy of a job, with its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Index of its job.
    pub job: usize,
    /// Which copy, from 0.
    pub number: u32,
    /// What it works on.
    pub place: Place,
    /// First byte.
    pub start_bytes: u64,
    /// Length of the range in bytes.
    pub len_bytes: u64,
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
}

impl Plan {
    /// Places the jobs. `size_of` gives the size in bytes of a file or block device that exists.
    ///
    /// # Errors
    /// A range that is not there or is too small, a file that would have to grow.
    pub fn new(
        jobs: Vec<Job>,
        size_of: &dyn Fn(&std::path::Path) -> Option<u64>,
    ) -> Result<Self, Refusal> {
        let mut copies = Vec::new();
        let mut files: Vec<FileUse> = Vec::new();
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
                note_file(&mut files, &copy, job, size_of);
                copies.push(Copy {
                    stage,
                    group,
                    after,
                    ..copy
                });
            }
        }
        Ok(Self {
            jobs,
            copies,
            files,
        })
    }

    /// Number of stages.
    #[must_use]
    pub fn stages(&self) -> usize {
        self.copies.last().map_or(0, |copy| copy.stage + 1)
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

fn place(
    job: &Job,
    index: usize,
    number: u32,
    size_of: &dyn Fn(&std::path::Path) -> Option<u64>,
) -> Result<Copy, Refusal> {
    if let Some(replay) = &job.replay {
        return replay.place(job, index, number, size_of);
    }
    let place = place_of(job, number)?;
    let existing = match &place {
        Place::Null => None,
        Place::File(path) => size_of(path),
    };
    let filesize = job.settings.number("filesize");
    let whole = existing.or(filesize);
    let start_bytes = start(job, number, whole)?;
    let asked_bytes = len(job, start_bytes, whole, &place)?;
    // Strided zones go on to the end of the file, as in fio; a size then says how much is transferred.
    let rest_bytes = whole.map_or(0, |whole| whole.saturating_sub(start_bytes));
    let len_bytes = match job.offsets.strides {
        Some(_) => asked_bytes.max(rest_bytes),
        None => asked_bytes,
    };
    check_end(job, &place, start_bytes, len_bytes, whole)?;
    check_zones(job, len_bytes)?;
    let largest = job.largest_bytes();
    if len_bytes < largest {
        let message = format!(
            "[{}]: the range of {len_bytes} bytes is smaller than a block of {largest} bytes",
            job.section
        );
        return Err(job.refuse("size", message));
    }
    Ok(Copy {
        job: index,
        number,
        total_bytes: total(job, asked_bytes)?,
        total_ios: job.settings.number("number_ios").filter(|ios| *ios > 0),
        place,
        start_bytes,
        len_bytes,
        stage: 0,
        group: 0,
        after: None,
    })
}

/// fio's name for a file that has none: `job.copy.file`.
fn place_of(job: &Job, number: u32) -> Result<Place, Refusal> {
    if job.access == Access::Null {
        return Ok(Place::Null);
    }
    let name = match job.settings.text("filename") {
        Some(names) => one_name(job, names)?,
        None => format!("{}.{number}.0", job.name),
    };
    let folder = job.settings.text("directory");
    Ok(Place::File(match folder {
        Some(folder) => PathBuf::from(folder).join(name.trim_start_matches('/')),
        None => PathBuf::from(name),
    }))
}

/// A `:` separates names, `\:` is part of one.
fn one_name(job: &Job, names: &str) -> Result<String, Refusal> {
    let mut name = String::with_capacity(names.len());
    let mut escaped = false;
    for c in names.chars() {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            ':' if !escaped => {
                let message = format!(
                    "filename={names}: several files are not supported yet; write one job per file, \
                     or `\\:` for a `:` in a name"
                );
                return Err(job.refuse("filename", message));
            }
            ':' => {}
            _ if escaped => name.push('\\'),
            _ => {}
        }
        escaped = false;
        name.push(c);
    }
    Ok(name)
}

/// A percentage is taken of the whole file, and aligned to blocks.
fn bytes_of(job: &Job, option: &str, whole: Option<u64>) -> Result<Option<u64>, Refusal> {
    let Some(share) = job.settings.share(option) else {
        return Ok(None);
    };
    match (share, whole) {
        (Share::Bytes(bytes), _) => Ok(Some(bytes)),
        (Share::Percent(_), None) => Err(job.refuse(
            option,
            format!("{option}: a percentage of a file that does not exist; write bytes"),
        )),
        (Share::Percent(_), Some(whole)) => {
            let bytes = share.bytes_of(whole);
            Ok(Some(bytes - bytes % job.smallest_bytes().max(1)))
        }
    }
}

fn start(job: &Job, number: u32, whole: Option<u64>) -> Result<u64, Refusal> {
    let offset = bytes_of(job, "offset", whole)?.unwrap_or(0);
    let step = bytes_of(job, "offset_increment", whole)?.unwrap_or(0);
    let start = step
        .checked_mul(u64::from(number))
        .and_then(|step| step.checked_add(offset));
    let too_far = || job.refuse("offset_increment", "offsets beyond 64 bits");
    let start = start.ok_or_else(too_far)?;
    let unit = job.crypt.as_ref().map_or(512, |crypt| {
        (crypt.cipher.sector_size().bytes() as u64).min(job.smallest_bytes())
    });
    if !start.is_multiple_of(unit) {
        let message = format!("offset {start} is not a multiple of the sector size, {unit} bytes");
        return Err(job.refuse("offset", message));
    }
    Ok(start)
}

fn len(job: &Job, start: u64, whole: Option<u64>, place: &Place) -> Result<u64, Refusal> {
    let asked = bytes_of(job, "size", whole)?.filter(|bytes| *bytes > 0);
    if let Some(len) = asked {
        return Ok(match (job.settings.share("size"), whole) {
            // fio: a percentage never reaches beyond the end.
            (Some(Share::Percent(_)), Some(whole)) => len.min(whole.saturating_sub(start)),
            _ => len,
        });
    }
    let Some(whole) = whole else {
        let message = match place {
            Place::Null => format!(
                "[{}]: ioengine=null needs a size; add size=SIZE",
                job.section
            ),
            Place::File(path) => format!(
                "[{}]: {} does not exist, so its size is unknown; add size=SIZE",
                job.section,
                path.display()
            ),
        };
        return Err(Refusal::at(&job.position, message));
    };
    match whole.checked_sub(start) {
        Some(len) if len > 0 => Ok(len),
        _ => {
            let message = format!("offset {start} is not inside of the {whole} bytes there are");
            Err(job.refuse("offset", message))
        }
    }
}

/// fio would let the file grow, or go on reading somewhere else.
fn check_end(
    job: &Job,
    place: &Place,
    start: u64,
    len: u64,
    whole: Option<u64>,
) -> Result<(), Refusal> {
    let end = start
        .checked_add(len)
        .filter(|end| i64::try_from(*end).is_ok());
    let Some(end) = end else {
        return Err(job.refuse("size", "the range ends beyond 63 bits"));
    };
    match (place, whole) {
        (Place::File(path), Some(whole)) if end > whole => {
            let message = format!(
                "[{}]: the range ends at byte {end}, but {} has {whole} bytes, and a file is never \
                 made longer; use a smaller size or offset",
                job.section,
                path.display()
            );
            Err(job.refuse("size", message))
        }
        _ => Ok(()),
    }
}

/// Zones must be there.
fn check_zones(job: &Job, len: u64) -> Result<(), Refusal> {
    let zone = job.offsets.strides.map_or(0, |strides| strides.zone_bytes);
    let zoned = offsets::zoned_bytes(&job.offsets.spread);
    for (option, needed) in [("zonerange", zone), ("random_distribution", zoned)] {
        let option = match job.settings.find(option) {
            None if needed > 0 => "zonesize",
            _ => option,
        };
        if needed > len {
            let message = format!(
                "{option}: the zones need {needed} bytes, but the range has {len}; use smaller zones \
                 or a larger size"
            );
            return Err(job.refuse(option, message));
        }
    }
    Ok(())
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
    match once.checked_mul(job.loops) {
        Some(total) => Ok(Some(total)),
        None => Err(job.refuse("loops", "more bytes than 64 bits can count")),
    }
}

fn note_file(
    files: &mut Vec<FileUse>,
    copy: &Copy,
    job: &Job,
    size_of: &dyn Fn(&std::path::Path) -> Option<u64>,
) {
    let Place::File(path) = &copy.place else {
        return;
    };
    let end = copy.start_bytes + copy.len_bytes;
    let wanted = job.settings.number("filesize").unwrap_or(0).max(end);
    match files.iter_mut().find(|file| file.path == *path) {
        Some(file) => {
            file.written |= job.writes();
            file.bytes = file.existing_bytes.unwrap_or(file.bytes.max(wanted));
        }
        None => {
            let existing_bytes = size_of(path);
            files.push(FileUse {
                path: path.clone(),
                existing_bytes,
                bytes: existing_bytes.unwrap_or(wanted),
                written: job.writes(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;
    use std::path::Path;

    /// One file, `/disk`, of 1 MiB.
    fn plan(text: &str) -> Result<Plan, Refusal> {
        let fake = Fake::default().file("a.fio", text);
        let jobs = super::super::load(&["a.fio".to_owned()], &[], &fake)?;
        Plan::new(jobs, &|path| {
            (path == Path::new("/disk")).then_some(1 << 20)
        })
    }

    fn ranges(plan: &Plan) -> Vec<(u64, u64, Option<u64>)> {
        let copies = plan.copies.iter();
        copies
            .map(|copy| (copy.start_bytes, copy.len_bytes, copy.total_bytes))
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
            ("filename=/a:/b\nsize=4k", "several files"),
            ("filename=/disk\noffset=100", "multiple of the sector size"),
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

//! Job files: read, placed, explained, and their first requests made.

#![forbid(unsafe_code)]

use std::io::{BufRead, Cursor};
use std::path::Path;

use crypt_bench::cmd::{explain, run};
use crypt_bench::generate::Stream;
use crypt_bench::jobfile::job::{Access, Job};
use crypt_bench::jobfile::place::{Copy, Place, Plan, Range};
use crypt_bench::jobfile::{self, Refusal, Surroundings, catalog};
use crypt_core::request::Op;

/// Size of every file that exists.
const DISK_BYTES: u64 = 1 << 20;
/// Copies of each input whose requests are looked at, and how many.
const MOST_STREAMS: usize = 8;
const MOST_STEPS: usize = 256;
/// The name that the input has.
const NAME: &str = "fuzz.fio";

/// Files that an input may include or play.
const FILES: &[(&str, &str)] = &[
    (
        "parts/job.inc",
        include_str!("../../../crypt-bench/tests/jobs/parts/job.inc"),
    ),
    (
        "parts/deep.inc",
        include_str!("../../../crypt-bench/tests/jobs/parts/deep.inc"),
    ),
    (
        "parts/global.inc",
        include_str!("../../../crypt-bench/tests/jobs/parts/global.inc"),
    ),
    (
        "parts/two.log",
        include_str!("../../../crypt-bench/tests/jobs/parts/two.log"),
    ),
    (
        "parts/three.log",
        include_str!("../../../crypt-bench/tests/jobs/parts/three.log"),
    ),
];

/// Signs that mean something.
const SIGNS: &[&str] = &[
    "[",
    "]",
    "=",
    "\n",
    ";",
    "#",
    "${",
    "}",
    "$ncpus",
    "$pagesize",
    "*",
    "(",
    ")",
    "%",
    ":",
    ",",
    "/",
    "-",
    "0x",
    "k",
    "KiB",
    "g",
    "e",
    "z",
    "[global]\n",
    "[a]\n",
    "include parts/job.inc\n",
    "include fuzz.fio\n",
    "\0",
    "é",
    "\r",
    "\u{1b}",
    "\\",
    "99p",
    "\"",
    "'",
    "%o",
    "\u{2028}",
    "1.5",
    "..",
    "nan",
];
/// Values of each kind.
const VALUES: &[&str] = &[
    "",
    "=",
    "=0",
    "=1",
    "=-1",
    "=4k",
    "=1m",
    "=100%",
    "=18446744073709551615",
    "=9223372036854775807",
    "=4096",
    "=512,1m",
    "=4k-64k",
    "=4k/50:8k/50",
    "=zipf:1.2",
    "=zoned:50/10:50/",
    "=normal:99",
    "=1s",
    "=0.5us",
    "=randrw:8",
    "=write:-64k",
    "=read",
    "=1e400",
    "=nan",
    "=inf",
    "=disk",
    "=parts/two.log",
    "=0xdeadbeef",
    "=(1+2)*4k",
    "=aes-xts-plain64",
    "=adaptive",
    "=1-3",
    "=crc32c",
    "=io_uring",
    "=null",
];

/// Reads a job file.
///
/// # Panics
/// Where an accepted job makes no sense, or a refusal does not say what is wrong.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let jobs = jobfile::load(&[NAME.to_owned()], &[], &Input(text));
    let plan = match jobs.and_then(|jobs| Plan::new(jobs, &size_of)) {
        Ok(plan) => plan,
        Err(refusal) => {
            check_refusal(&refusal);
            return false;
        }
    };
    check_plan(&plan);
    assert!(!explain::text(&plan).is_empty());
    for copy in plan.copies.iter().take(MOST_STREAMS) {
        check_requests(copy, &plan.jobs[copy.job]);
    }
    true
}

/// The job files of the tests.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    super::files("../crypt-bench/tests/jobs", ".fio")
}

/// Options with values of each kind, and signs that mean something.
#[must_use]
pub fn pieces() -> Vec<String> {
    let options = catalog::OPTIONS.iter().flat_map(|info| {
        let line = |value: &&str| format!("\n{}{value}\n", info.name);
        VALUES.iter().map(line).collect::<Vec<_>>()
    });
    let signs = SIGNS.iter().map(|sign| (*sign).to_owned());
    options.chain(signs).collect()
}

/// Files that are named like disks exist, those that are named like pipes are some.
fn size_of(path: &Path) -> Result<Option<u64>, String> {
    let name = path.to_string_lossy();
    match name.contains("pipe") {
        true => Err("a pipe".to_owned()),
        false => Ok(name.contains('d').then_some(DISK_BYTES)),
    }
}

/// Something is said, in one line, and not megabytes of it.
fn check_refusal(refusal: &Refusal) {
    let message = refusal.to_string();
    assert!(refusal.message.len() > 10, "says little: {message:?}");
    assert!(message.len() < 2000, "says a lot: {message}");
    let control = message.chars().any(|c| c.is_control() && c != '\n');
    assert!(!control, "control characters: {message:?}");
}

fn check_plan(plan: &Plan) {
    let threads: u64 = plan.jobs.iter().map(|job| u64::from(job.numjobs)).sum();
    assert_eq!(plan.copies.len() as u64, threads);
    assert!(threads > 0 && plan.stages() <= plan.jobs.len());
    let mut stage = 0;
    for copy in &plan.copies {
        assert!(copy.stage == stage || copy.stage == stage + 1, "stages");
        stage = copy.stage;
        assert!(
            copy.after.is_none_or(|other| other < copy.job),
            "waits for itself"
        );
        check_copy(copy, &plan.jobs[copy.job], plan);
    }
}

fn check_copy(copy: &Copy, job: &Job, plan: &Plan) {
    assert!(!copy.ranges.is_empty(), "works on nothing");
    assert!(job.smallest_bytes() > 0, "empty requests");
    assert_ne!(copy.total_bytes, Some(0), "nothing to transfer");
    assert_ne!(copy.total_ios, Some(0), "nothing to do");
    assert!(job.depth > 0 && job.rwmixread_percent <= 100);
    assert!(
        job.delay_us.0 <= job.delay_us.1,
        "a delay that ends before it begins"
    );
    let mut free = 0;
    for range in &copy.ranges {
        check_range(range, job, plan);
        assert!(range.base_bytes >= free, "files that overlap");
        free = range.end_bytes();
    }
}

fn check_range(range: &Range, job: &Job, plan: &Plan) {
    let end = range.start_bytes.checked_add(range.len_bytes);
    let end = end.expect("the range ends beyond 64 bits");
    let whole = end.checked_add(range.base_bytes);
    let whole = whole.and_then(|whole| i64::try_from(whole).ok());
    assert!(whole.is_some(), "the range ends beyond 63 bits");
    assert!(
        job.replay.is_some() || range.len_bytes >= job.largest_bytes(),
        "less than a block"
    );
    match &range.place {
        Place::Null => assert_eq!(job.access, Access::Null),
        Place::File(path) => {
            let file = plan.files.iter().find(|file| file.path == *path);
            let file = file.expect("a file that is not among those that are used");
            assert!(end <= file.bytes, "{end} is beyond {}", file.bytes);
            assert!(file.written || !job.writes(), "written unseen");
            assert!(!path.as_os_str().is_empty(), "a file without a name");
        }
    }
}

/// Requests stay in their range, as long and as often as they are said to be.
fn check_requests(copy: &Copy, job: &Job) {
    if job.replay.is_some() {
        return;
    }
    let mut stream = Stream::new(run::script(copy, job), 1);
    let (mut bytes, mut ios) = (0, 0);
    for _ in 0..MOST_STEPS {
        let Some(step) = stream.next_step() else {
            let enough = copy.total_bytes.is_some_and(|total| bytes >= total)
                || copy.total_ios.is_some_and(|total| ios >= total);
            assert!(enough, "ended after {bytes} bytes, {ios} requests");
            return;
        };
        match step.op {
            Op::Read => assert!(job.pattern.rw.reads(), "an unasked read"),
            Op::Write => assert!(job.pattern.rw.writes(), "an unasked write"),
            _ => continue,
        }
        assert!(
            copy.total_bytes.is_none_or(|total| bytes < total),
            "too many bytes"
        );
        assert!(
            copy.total_ios.is_none_or(|total| ios < total),
            "too many requests"
        );
        let end = step.offset_bytes + step.len_bytes;
        let holds = |range: &Range| {
            step.offset_bytes >= range.base_bytes + range.start_bytes && end <= range.end_bytes()
        };
        assert!(copy.ranges.iter().any(holds), "{step:?} is outside");
        let lengths = job.smallest_bytes()..=job.largest_bytes();
        assert!(
            lengths.contains(&step.len_bytes),
            "{step:?} has another length"
        );
        assert!(
            (step.offset_bytes | step.len_bytes).is_multiple_of(512),
            "{step:?} is not aligned"
        );
        (bytes, ios) = (bytes + step.len_bytes, ios + 1);
    }
}

/// The input and what it may ask for.
struct Input<'a>(&'a str);

impl Surroundings for Input<'_> {
    fn read(&self, path: &str) -> Result<String, String> {
        if path == NAME {
            return Ok(self.0.to_owned());
        }
        let found = FILES.iter().find(|(name, _)| *name == path);
        found
            .map(|(_, text)| (*text).to_owned())
            .ok_or_else(|| "no such file".to_owned())
    }

    fn lines(&self, path: &str) -> Result<Box<dyn BufRead>, String> {
        self.read(path)
            .map(|text| Box::new(Cursor::new(text)) as Box<dyn BufRead>)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let known = [("JOB_SIZE", "1m"), ("JOB_BLOCK", "8")];
        let found = known.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn keyword(&self, name: &str) -> Option<u64> {
        let known = [("pagesize", 4096), ("mb_memory", 2048), ("ncpus", 2)];
        known
            .iter()
            .find_map(|(known, value)| (*known == name).then_some(*value))
    }
}

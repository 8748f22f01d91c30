//! The options `verify` and `verify_*`, checked against what the job reads and writes.
//!
//! fio lets verification fail, or skips it, where blocks overlap that don't agree; such jobs are refused.

#![forbid(unsafe_code)]

use super::Refusal;
use super::data::pattern;
use super::job::{Access, Job};
use super::value::Piece;
use crate::generate::Lengths;
use crate::verify::{HEADER_BYTES, Method};

/// Options that mean nothing without `verify`.
const DEPENDENT: [&str; 4] = [
    "verify_pattern",
    "verify_interval",
    "verify_fatal",
    "verify_only",
];

/// How a job compares what it reads with what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// The checksum.
    pub method: Method,
    /// `verify_pattern`, in pieces.
    pub pattern: Option<Vec<Piece>>,
    /// `verify_interval`.
    pub interval_bytes: Option<u64>,
    /// `verify_fatal`: the first block that is wrong ends the thread.
    pub fatal: bool,
    /// `do_verify`: what was written is read back.
    pub read_back: bool,
    /// `verify_only`: nothing is written, what would be is read.
    pub only: bool,
}

impl Verify {
    /// From the options of a job that is complete but for this.
    ///
    /// # Errors
    /// Options that contradict each other, and blocks that could not be compared, at their line.
    pub fn of(job: &Job) -> Result<Option<Self>, Refusal> {
        let settings = &job.settings;
        let Some(name) = settings.text("verify").filter(|name| *name != "0") else {
            return match DEPENDENT.iter().find(|name| asks(job, name)) {
                Some(name) => Err(job.refuse(
                    name,
                    format!("{name}: without verify this has no effect; add verify=crc32c"),
                )),
                None => Ok(None),
            };
        };
        let Some(method) = Method::named(name) else {
            return Err(job.refuse("verify", format!("verify={name} is not known")));
        };
        let verify = Self {
            method,
            pattern: pattern(settings, "verify_pattern"),
            interval_bytes: settings
                .number("verify_interval")
                .filter(|bytes| *bytes > 0),
            fatal: settings.flag("verify_fatal"),
            read_back: settings.flag_or("do_verify", true),
            only: settings.flag("verify_only"),
        };
        verify.check(job)?;
        verify.check_blocks(job)?;
        Ok(Some(verify))
    }

    fn check(&self, job: &Job) -> Result<(), Refusal> {
        if job.access == Access::Null {
            let message =
                "verify: the null engine keeps nothing that could be compared; use a file";
            return Err(job.refuse("verify", message));
        }
        for name in [
            "buffer_pattern",
            "zero_buffers",
            "buffer_compress_percentage",
            "dedupe_percentage",
        ] {
            if asks(job, name) {
                let message = format!(
                    "{name}: verify fills blocks with random bytes or verify_pattern; remove it"
                );
                return Err(job.refuse(name, message));
            }
        }
        if self.method == Method::Pattern && self.pattern.is_none() {
            return Err(job.refuse("verify", "verify=pattern needs verify_pattern=BYTES"));
        }
        if self.method == Method::Pattern && self.interval_bytes.is_some() {
            let message = "verify_interval: verify=pattern has no headers; remove it";
            return Err(job.refuse("verify_interval", message));
        }
        if self.only && job.time_based {
            let message =
                "verify_only: what was written within a time is not known; remove time_based";
            return Err(job.refuse("verify_only", message));
        }
        if self.only && !job.pattern.rw.writes() {
            let message = "verify_only: this job only reads, and compares what it reads; remove it";
            return Err(job.refuse("verify_only", message));
        }
        Ok(())
    }

    /// Requests may overlap only in whole intervals.
    fn check_blocks(&self, job: &Job) -> Result<(), Refusal> {
        let writes = job.pattern.rw.writes();
        let lengths = if writes {
            &job.write_lengths
        } else {
            &job.read_lengths
        };
        let interval = match (self.interval_bytes, lengths) {
            (Some(bytes), _) => bytes,
            (None, Lengths::Fixed(bytes)) => *bytes,
            (None, _) => return Err(self.refuse_blocks(job, "the blocks have several sizes")),
        };
        let needed = HEADER_BYTES + self.method.digest_bytes().unwrap_or(0);
        if interval <= needed as u64 && self.method != Method::Pattern {
            let message = format!(
                "verify_interval: {} needs more than {needed} bytes",
                self.method.name()
            );
            return Err(job.refuse("verify_interval", message));
        }
        let fits = |bytes: u64| bytes.is_multiple_of(interval);
        if !lengths.are_multiples_of(interval) {
            return Err(self.refuse_blocks(job, "an interval does not divide all blocks"));
        }
        let modifier = job.pattern.modifier.filter(|_| !job.pattern.rw.is_random());
        let align = job.settings.numbers("ba")[usize::from(writes)];
        let zones = ["zonesize", "zoneskip", "zonerange"].map(|name| job.settings.number(name));
        let distances = [modifier.map(i64::unsigned_abs), align]
            .into_iter()
            .chain(zones);
        if !distances.flatten().all(fits) {
            return Err(self.refuse_blocks(job, "blocks would overlap in part"));
        }
        Ok(())
    }

    fn refuse_blocks(&self, job: &Job, why: &str) -> Refusal {
        let advice = match self.method {
            Method::Pattern => "use blocks of one size",
            _ => "use blocks of one size, or a verify_interval that divides all of them",
        };
        job.refuse("verify", format!("verify: {why}; {advice}"))
    }
}

/// Whether an option is set and asks for something.
fn asks(job: &Job, name: &str) -> bool {
    let found = job.settings.find(name);
    found.is_some_and(|setting| setting.text != "0")
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn job(options: &str) -> Result<Job, Refusal> {
        let fake = Fake::default().file("a.fio", &format!("[a]\n{options}\n"));
        super::super::load(&["a.fio".to_owned()], &[], &fake).map(|mut jobs| jobs.remove(0))
    }

    #[test]
    fn options_about_verification_are_typed() {
        assert_eq!(
            job("verify=0\ndo_verify=0\nverify_fatal=0").unwrap().verify,
            None
        );
        let job =
            job("rw=write\nverify=sha256\nverify_interval=512\nverify_only\nverify_pattern=%o")
                .unwrap();
        assert!(!job.writes());
        let verify = job.verify.unwrap();
        assert_eq!(
            (verify.method, verify.interval_bytes),
            (Method::Sha256, Some(512))
        );
        assert!(verify.only && verify.read_back && !verify.fatal);
        assert_eq!(verify.pattern, Some(vec![Piece::Offset]));
    }

    #[test]
    fn what_could_not_be_compared_is_refused() {
        for (options, reason) in [
            ("verify_fatal=1", "a.fio:2: verify_fatal: without verify"),
            ("verify=crc7", "crc32c, "),
            ("verify=pattern", "needs verify_pattern"),
            (
                "verify=md5\nioengine=null\nsize=1m",
                "the null engine keeps nothing",
            ),
            (
                "rw=write\nverify=md5\nzero_buffers",
                "a.fio:4: zero_buffers: verify fills",
            ),
            ("rw=write\nverify=md5\nbsrange=4k-8k", "several sizes"),
            (
                "rw=randwrite\nverify=md5\nblockalign=512",
                "overlap in part",
            ),
            ("rw=write:512\nverify=md5", "overlap in part"),
            (
                "rw=write\nverify=md5\nbs=4k\nverify_interval=3000",
                "does not divide",
            ),
            (
                "rw=write\nverify=md5\nbs=4k\nverify_interval=8k",
                "does not divide",
            ),
            (
                "rw=write\nverify=sha512\nverify_interval=80",
                "needs more than 104 bytes",
            ),
            ("rw=read\nverify=md5\nverify_only", "only reads"),
            (
                "rw=write\nverify=md5\nverify_only\ntime_based\nruntime=1",
                "within a time",
            ),
            (
                "verify=pattern\nverify_pattern=1\nverify_interval=512",
                "no headers",
            ),
        ] {
            let refusal = job(options).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
        assert!(job("rw=write\nverify=md5\nbsrange=4k-8k\nverify_interval=4k").is_ok());
    }
}

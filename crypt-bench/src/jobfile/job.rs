//! A job as its options say, typed and checked as a whole, before any file is looked at.
//!
//! Contradictions that fio settles silently are refused: two mixes that don't add up, block sizes of
//! which one would be ignored, encryption options without a cipher.

#![forbid(unsafe_code)]

use crypt_core::policy::PolicySpec;
use crypt_core::spec::CipherSpec;
use crypt_core::units::SectorSize;

use super::data::Buffers;
use super::logs::Logs;
use super::offsets::Offsets;
use super::replay::Replay;
use super::settings::{JobSection, Settings};
use super::value::{Pattern, Value};
use super::verify::Verify;
use super::{Position, Refusal, files, goals};
use crate::definition::device::Engine;
use crate::generate::{Lengths, Service};
use crate::play::Conduct;
use crate::result::Rw;

/// fio's default block size, in bytes.
const DEFAULT_BLOCK_BYTES: u64 = 4096;
/// Largest block, in bytes.
const MOST_BLOCK_BYTES: u64 = 1 << 30;

/// How a job reaches its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing is transferred.
    Null,
    /// A file, with this engine.
    File(Engine),
}

/// Encryption between a job and its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Crypt {
    /// In dm-crypt's notation, with its sector size.
    pub cipher: CipherSpec,
    /// As written.
    pub cipher_text: String,
    /// Where the cipher runs.
    pub policy: PolicySpec,
    /// File with the key; a random one without.
    pub key_file: Option<String>,
}

/// A job, without what depends on its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name for reports.
    pub name: String,
    /// Name of its section.
    pub section: String,
    /// Where its section begins.
    pub position: Position,
    /// Values in force, with their origin.
    pub settings: Settings,
    /// Direction and order.
    pub pattern: Pattern,
    /// Lengths of reads.
    pub read_lengths: Lengths,
    /// Lengths of writes.
    pub write_lengths: Lengths,
    /// Share of reads of a mix.
    pub rwmixread_percent: u8,
    /// How offsets follow from each other.
    pub offsets: Offsets,
    /// How it behaves beyond its requests.
    pub conduct: Conduct,
    /// Requests in flight.
    pub depth: u32,
    /// Copies.
    pub numjobs: u32,
    /// How it reaches its data.
    pub access: Access,
    /// Past the page cache.
    pub direct: bool,
    /// Poll for completions.
    pub hipri: bool,
    /// Encryption; `None` for none.
    pub crypt: Option<Crypt>,
    /// Longest time, in microseconds; `None` for no limit.
    pub runtime_us: Option<u64>,
    /// Go on for all of the time.
    pub time_based: bool,
    /// Time before measuring, in microseconds.
    pub ramp_us: u64,
    /// Delay of the start, from and to, in microseconds.
    pub delay_us: (u64, u64),
    /// Passes over what is to be transferred.
    pub loops: u64,
    /// Wait for all jobs above.
    pub stonewall: bool,
    /// How its files have their turns.
    pub service: Service,
    /// What is written.
    pub buffers: Buffers,
    /// Whether and how it is compared.
    pub verify: Option<Verify>,
    /// A trace to play instead of a pattern.
    pub replay: Option<Replay>,
    /// What is written down while it runs.
    pub logs: Option<Logs>,
}

impl Job {
    /// Types and checks a section.
    ///
    /// # Errors
    /// What is contradictory or missing, at its line.
    pub fn new(section: JobSection) -> Result<Self, Refusal> {
        let JobSection {
            name,
            position,
            settings,
        } = section;
        let pattern = match settings.find("rw").map(|setting| &setting.value) {
            Some(Value::Pattern(pattern)) => *pattern,
            _ => Pattern {
                rw: Rw::Read,
                modifier: None,
            },
        };
        let crypt = crypt(&settings)?;
        let unit = crypt
            .as_ref()
            .map_or(512, |crypt| crypt.cipher.sector_size().bytes() as u64);
        check_blocks(&settings)?;
        let lengths = |direction| lengths(&settings, direction, unit, &position);
        let (read_lengths, write_lengths) = (lengths(0)?, lengths(1)?);
        let both = [&read_lengths, &write_lengths];
        let offsets = Offsets::new(&settings, pattern, both, unit)?;
        let depth = settings.number("iodepth").unwrap_or(1) as u32;
        let mut job = Self {
            name: settings.text("name").unwrap_or(&name).to_owned(),
            section: name,
            pattern,
            read_lengths,
            write_lengths,
            rwmixread_percent: mix(&settings)?,
            offsets,
            conduct: goals::conduct(&settings, depth)?,
            depth,
            numjobs: settings.number("numjobs").unwrap_or(1) as u32,
            access: access(&settings),
            direct: direct(&settings)?,
            hipri: settings.flag("hipri"),
            crypt,
            runtime_us: settings
                .time_us("runtime")
                .map(|time| time.0)
                .filter(|us| *us > 0),
            time_based: settings.flag("time_based"),
            ramp_us: settings.time_us("ramp_time").map_or(0, |time| time.0),
            delay_us: settings.time_us("startdelay").unwrap_or((0, 0)),
            loops: settings.number("loops").unwrap_or(1),
            stonewall: settings.flag("stonewall"),
            service: Service::default(),
            buffers: Buffers::new(&settings)?,
            verify: None,
            replay: None,
            logs: None,
            position,
            settings,
        };
        job.check()?;
        job.service = files::service(&job)?;
        job.verify = Verify::of(&job)?;
        job.logs = Logs::of(&job)?;
        Ok(job)
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.time_based && self.runtime_us.is_none() {
            return Err(self.refuse("time_based", "time_based needs a runtime; add runtime=TIME"));
        }
        let rate = ["rate", "rate_iops"].map(|name| self.settings.find(name));
        if self.settings.text("rate_process") == Some("poisson") && rate == [None, None] {
            return Err(self.refuse("rate_process", "add rate or rate_iops, or remove it"));
        }
        if self.hipri && !self.direct {
            return Err(self.refuse("hipri", "polling needs direct I/O; add direct=1"));
        }
        if self.hipri && self.access == Access::File(Engine::Sync) {
            return Err(self.refuse("hipri", "polling needs ioengine=io_uring"));
        }
        Ok(())
    }

    /// A refusal at the line of an option, or of the section where it is not set.
    #[must_use]
    pub fn refuse(&self, option: &str, message: impl Into<String>) -> Refusal {
        let setting = self.settings.find(option);
        let position = setting.map_or(&self.position, |setting| &setting.position);
        Refusal::at(position, message)
    }

    /// Whether it may change data.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.pattern.rw.writes() && !self.verify.as_ref().is_some_and(|verify| verify.only)
    }

    /// Largest request in bytes, of the directions that it uses.
    #[must_use]
    pub fn largest_bytes(&self) -> u64 {
        self.used_lengths().map(Lengths::largest).max().unwrap_or(0)
    }

    /// Smallest request in bytes, of the directions that it uses.
    #[must_use]
    pub fn smallest_bytes(&self) -> u64 {
        self.used_lengths()
            .map(Lengths::smallest)
            .min()
            .unwrap_or(0)
    }

    fn used_lengths(&self) -> impl Iterator<Item = &Lengths> {
        let rw = self.pattern.rw;
        let read = rw.reads().then_some(&self.read_lengths);
        read.into_iter()
            .chain(rw.writes().then_some(&self.write_lengths))
    }
}

/// fio takes bssplit over bsrange over bs, wherever each stands.
fn check_blocks(settings: &Settings) -> Result<(), Refusal> {
    for (weak, strong) in [("bs", "bsrange"), ("bs", "bssplit"), ("bsrange", "bssplit")] {
        if let (Some(weaker), Some(stronger)) = (settings.find(weak), settings.find(strong))
            && (weaker.global == stronger.global || stronger.global)
        {
            let message = format!(
                "{weak}: {strong} at {} would win over it; remove one of the two",
                stronger.position
            );
            return Err(Refusal::at(&weaker.position, message));
        }
    }
    Ok(())
}

fn lengths(
    settings: &Settings,
    direction: usize,
    unit: u64,
    section: &Position,
) -> Result<Lengths, Refusal> {
    let fixed = settings.numbers("bs")[direction];
    let mut found = Lengths::Fixed(fixed.unwrap_or(DEFAULT_BLOCK_BYTES));
    let mut position = settings
        .find("bs")
        .map_or(section, |setting| &setting.position);
    for name in ["bsrange", "bssplit"] {
        let Some(setting) = settings.find(name) else {
            continue;
        };
        let lengths = match &setting.value {
            Value::Ranges(ranges) => {
                ranges[direction].map(|(min, max)| Lengths::Range { min, max })
            }
            Value::Splits(splits) => splits[direction]
                .as_ref()
                .map(|parts| Lengths::Split(parts.clone().into())),
            _ => None,
        };
        if let Some(lengths) = lengths {
            (found, position) = (lengths, &setting.position);
        }
    }
    if found.smallest() == 0 || found.largest() > MOST_BLOCK_BYTES {
        let message = format!("block sizes go from {unit} bytes to {MOST_BLOCK_BYTES}");
        return Err(Refusal::at(position, message));
    }
    if !found.are_multiples_of(unit) {
        let message = format!(
            "block sizes must be multiples of the sector size of {unit} bytes; the smallest is {}",
            found.smallest()
        );
        return Err(Refusal::at(position, message));
    }
    Ok(found)
}

/// The last of rwmixread and rwmixwrite counts; in one section they must agree.
fn mix(settings: &Settings) -> Result<u8, Refusal> {
    let (read, write) = (settings.find("rwmixread"), settings.find("rwmixwrite"));
    let read_percent = settings.number("rwmixread");
    let from_write = settings.number("rwmixwrite").map(|percent| 100 - percent);
    let percent = match (read, write) {
        (Some(reads), Some(writes)) if reads.global == writes.global => {
            if read_percent != from_write {
                let message = format!(
                    "rwmixwrite={} contradicts rwmixread={} at {}; remove one of the two",
                    writes.text, reads.text, reads.position
                );
                return Err(Refusal::at(&writes.position, message));
            }
            read_percent
        }
        (Some(reads), Some(_)) if !reads.global => read_percent,
        (_, Some(_)) => from_write,
        _ => read_percent,
    };
    Ok(percent.unwrap_or(50) as u8)
}

fn access(settings: &Settings) -> Access {
    match settings.text("ioengine") {
        Some("null") => Access::Null,
        Some("libaio" | "posixaio" | "io_uring") => Access::File(Engine::IoUring),
        _ => Access::File(Engine::Sync),
    }
}

fn direct(settings: &Settings) -> Result<bool, Refusal> {
    let value = |name: &str| settings.find(name).map(|_| settings.flag(name));
    match (settings.find("direct"), settings.find("buffered")) {
        (Some(direct), Some(buffered)) if direct.global == buffered.global => {
            if value("direct") == value("buffered") {
                let message = format!(
                    "buffered={} contradicts direct={} at {}; remove one of the two",
                    buffered.text, direct.text, direct.position
                );
                return Err(Refusal::at(&buffered.position, message));
            }
            Ok(settings.flag("direct"))
        }
        (Some(direct), Some(_)) if !direct.global => Ok(settings.flag("direct")),
        (_, Some(_)) => Ok(!settings.flag("buffered")),
        _ => Ok(settings.flag("direct")),
    }
}

fn crypt(settings: &Settings) -> Result<Option<Crypt>, Refusal> {
    let Some(text) = settings.text("crypt_cipher").filter(|text| *text != "none") else {
        let names = ["crypt_policy", "crypt_sector_size", "crypt_key_file"];
        return match names.into_iter().find_map(|name| settings.find(name)) {
            Some(setting) => Err(Refusal::at(
                &setting.position,
                "without a cipher this has no effect; add crypt_cipher=aes-xts-plain64",
            )),
            None => Ok(None),
        };
    };
    let at = |name: &str, message: String| match settings.find(name) {
        Some(setting) => Refusal::at(&setting.position, format!("{name}: {message}")),
        None => Refusal::whole(message),
    };
    let cipher: CipherSpec = text
        .parse()
        .map_err(|error: crypt_core::Error| at("crypt_cipher", format!("{error}, none")))?;
    let sector_size = match settings.number("crypt_sector_size") {
        None => SectorSize::default(),
        Some(bytes) => SectorSize::from_bytes(bytes)
            .ok_or_else(|| at("crypt_sector_size", "use 512, 1k, 2k or 4k".to_owned()))?,
    };
    let policy: PolicySpec = settings
        .text("crypt_policy")
        .unwrap_or("inline")
        .parse()
        .map_err(|error: crypt_core::Error| at("crypt_policy", error.to_string()))?;
    Ok(Some(Crypt {
        cipher: cipher.with_sector_size(sector_size),
        cipher_text: text.to_owned(),
        policy,
        key_file: settings.text("crypt_key_file").map(str::to_owned),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn jobs(text: &str) -> Result<Vec<Job>, Refusal> {
        let fake = Fake::default().file("a.fio", text);
        super::super::load(&["a.fio".to_owned()], &[], &fake)
    }

    fn job(options: &str) -> Result<Job, Refusal> {
        jobs(&format!("[a]\n{options}\n")).map(|mut jobs| jobs.remove(0))
    }

    #[test]
    fn defaults_are_fio_defaults() {
        let job = job("").unwrap();
        assert_eq!((job.pattern.rw, job.depth, job.numjobs), (Rw::Read, 1, 1));
        assert_eq!(job.read_lengths, Lengths::Fixed(4096));
        assert_eq!(job.access, Access::File(Engine::Sync));
        assert_eq!((job.rwmixread_percent, job.direct), (50, false));
    }

    #[test]
    fn block_sizes_of_each_direction() {
        let blocks = |options: &str| {
            let job = job(options).unwrap();
            (job.read_lengths, job.write_lengths)
        };
        let fixed = Lengths::Fixed;
        assert_eq!(blocks("bs=8k"), (fixed(8192), fixed(8192)));
        assert_eq!(blocks("bs=,8k"), (fixed(4096), fixed(8192)));
        let range = |min, max| Lengths::Range { min, max };
        assert_eq!(
            blocks("bsrange=1k-2k,4k-8k"),
            (range(1024, 2048), range(4096, 8192))
        );
        let split = Lengths::Split(vec![(4096, 50), (8192, 50)].into());
        assert_eq!(blocks("bssplit=4k/50:8k/50"), (split.clone(), split));
    }

    #[test]
    fn the_nearer_of_two_ways_to_say_it_counts() {
        let jobs = jobs(
            "[global]\nrwmixread=70\ndirect=1\nbs=4k\n[a]\nrwmixwrite=10\nbuffered=1\n\
             bsrange=8k-8k\n[b]\n[c]\nrwmixread=20\n",
        )
        .unwrap();
        let seen: Vec<_> = jobs
            .iter()
            .map(|job| (job.rwmixread_percent, job.direct))
            .collect();
        assert_eq!(seen, [(90, false), (70, true), (20, true)]);
        assert_eq!(jobs[0].largest_bytes(), 8192);
    }

    #[test]
    fn contradictions_are_refused_at_their_line() {
        for (options, place, reason) in [
            (
                "rwmixread=70\nrwmixwrite=70",
                "a.fio:3",
                "contradicts rwmixread=70",
            ),
            ("direct=1\nbuffered=1", "a.fio:3", "contradicts direct=1"),
            ("bs=4k\nbsrange=4k-8k", "a.fio:2", "would win over it"),
            ("time_based", "a.fio:2", "needs a runtime"),
            ("rate_process=poisson", "a.fio:2", "add rate"),
            ("hipri", "a.fio:2", "add direct=1"),
            ("bs=700", "a.fio:2", "multiples of the sector size of 512"),
            ("bs=0", "a.fio:2", "block sizes go from"),
            ("bs=2g", "a.fio:2", "block sizes go from"),
            ("crypt_policy=inline", "a.fio:2", "add crypt_cipher"),
            ("crypt_cipher=rot13", "a.fio:2", "aes-xts-plain64"),
            (
                "crypt_cipher=aes-xts-plain64\ncrypt_sector_size=4k\nbs=512",
                "a.fio:4",
                "4096",
            ),
            (
                "crypt_cipher=aes-xts-plain64\ncrypt_policy=fast",
                "a.fio:3",
                "adaptive",
            ),
        ] {
            let refusal = job(options).unwrap_err().to_string();
            assert!(refusal.starts_with(place), "{options}: {refusal}");
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
        assert!(job("rwmixread=70\nrwmixwrite=30").is_ok());
    }

    #[test]
    fn files_follow_each_other() {
        let fake = Fake::default().file("a", "[a]\n").file("b", "[b]\n[c]\n");
        let names = ["a".to_owned(), "b".to_owned()];
        let jobs = super::super::load(&names, &[], &fake).unwrap();
        let walls: Vec<bool> = jobs.iter().map(|job| job.stonewall).collect();
        assert_eq!(walls, [false, true, false]);
    }
}

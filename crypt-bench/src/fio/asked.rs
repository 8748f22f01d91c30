//! What a job of fio's JSON was asked to do, from the options that the file holds, as a cell.
//!
//! Options are read as those of a job file are, so `bs=4k` means the same in both. Only those are taken that a cell
//! expresses; others that bear on the figures are named in [`Asked::others`], and what neither the file nor the user
//! says is named in [`Asked::not_said`] and stands in the cell as 0, `unknown` or fio's default. Pure.

#![forbid(unsafe_code)]

use std::io::BufRead;
use std::sync::Arc;

use super::read::{Document, Entry, Options};
use crate::definition::device::Engine;
use crate::generate::Blocks;
use crate::jobfile::job::{Access, Job};
use crate::jobfile::settings;
use crate::jobfile::source::{Line, Section};
use crate::jobfile::value::{self, Kind, Share, Units};
use crate::jobfile::{Position, Surroundings, catalog};
use crate::result::{CellParams, RAW_POLICY};

/// Options that a cell expresses.
const TAKEN: &[&str] = &[
    "bs",
    "bsrange",
    "bssplit",
    "buffered",
    "crypt_cipher",
    "crypt_policy",
    "crypt_sector_size",
    "direct",
    "directory",
    "filename",
    "hipri",
    "iodepth",
    "ioengine",
    "kb_base",
    "numjobs",
    "ramp_time",
    "randseed",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "size",
];

/// Options that change no figure: how jobs are arranged and what is written of them.
const QUIET: &[&str] = &[
    "clat_percentiles",
    "crypt_key_file",
    "description",
    "exitall",
    "fallocate",
    "group_reporting",
    "invalidate",
    "lat_percentiles",
    "log_avg_msec",
    "log_unix_epoch",
    "name",
    "new_group",
    "per_job_logs",
    "percentile_list",
    "randrepeat",
    "slat_percentiles",
    "stonewall",
    "thread",
    "time_based",
    "unlink",
    "wait_for",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
];

/// What the user says of files that don't say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Name of the policy.
    pub policy: Option<String>,
    /// Device in the notation of cells.
    pub device: Option<String>,
    /// Cipher in dm-crypt's notation.
    pub cipher: Option<String>,
    /// Length of the volume key.
    pub key_bits: Option<u32>,
    /// Unit of one IV.
    pub sector_size_bytes: Option<u32>,
}

/// What a job was asked to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// As a cell.
    pub cell: CellParams,
    /// What nobody says.
    pub not_said: Vec<String>,
    /// Options that bear on the figures and that no cell holds: `rate_iops=500`.
    pub others: Vec<String>,
}

impl Asked {
    /// The cell of an entry of which there are `copies`.
    ///
    /// # Errors
    /// A job that no cell describes, or whose policy nobody says; in words.
    pub fn new(
        document: &Document,
        entry: &Entry,
        copies: u32,
        said: &Said,
    ) -> Result<Self, String> {
        let own = entry.crypt_bench.as_ref().and_then(|own| own.cell.clone());
        if let Some(cell) = own {
            return Ok(Self {
                cell: changed(cell, said),
                not_said: Vec::new(),
                others: Vec::new(),
            });
        }
        let mut others = Vec::new();
        let job = job(document, entry, &mut others)?;
        let mut not_said = Vec::new();
        let cell = cell(&job, copies, said, &mut not_said)?;
        Ok(Self {
            cell,
            not_said,
            others,
        })
    }

    /// Whether something but the device kept the depth down on purpose.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        let paces = [
            "rate",
            "thinktime",
            "latency_target",
            "iodepth_batch",
            "iodepth_low",
        ];
        self.others
            .iter()
            .any(|other| paces.iter().any(|pace| other.starts_with(pace)))
    }
}

/// A cell that the file holds, with what the user says instead.
fn changed(cell: CellParams, said: &Said) -> CellParams {
    let said = said.clone();
    CellParams {
        policy: said.policy.unwrap_or(cell.policy),
        device: said.device.unwrap_or(cell.device),
        cipher: said.cipher.unwrap_or(cell.cipher),
        key_bits: said.key_bits.or(cell.key_bits),
        sector_size_bytes: said.sector_size_bytes.unwrap_or(cell.sector_size_bytes),
        ..cell
    }
}

/// The options as a job of a job file.
fn job(document: &Document, entry: &Entry, others: &mut Vec<String>) -> Result<Job, String> {
    let sections = [
        section("global", &document.global_options, others),
        section("job", &entry.options, others),
    ];
    let section = settings::resolve(&sections, &[], &Nowhere)
        .map_err(|refusal| refusal.message)?
        .pop()
        .ok_or("no options")?;
    Job::new(section).map_err(|refusal| refusal.message)
}

/// Options as lines; those that are not taken or not understood go to `others`.
fn section(name: &str, options: &Options, others: &mut Vec<String>) -> Section {
    let position = Position {
        file: Arc::from("job options"),
        line: 1,
    };
    let mut lines = Vec::new();
    for (option, text) in options {
        let value = Some(text.clone()).filter(|text| !text.is_empty());
        let info = catalog::find(option).ok();
        let known = info.map_or(option.as_str(), |info| info.name);
        let understood = info.is_some_and(|info| is_understood(info.kind, value.as_deref()));
        if TAKEN.contains(&known) && understood {
            lines.push(Line {
                position: position.clone(),
                name: option.clone(),
                value,
                glued_comment: false,
            });
        } else if !QUIET.contains(&known) {
            others.push(match value {
                Some(value) => format!("{option}={value}"),
                None => option.clone(),
            });
        }
    }
    Section {
        position,
        name: name.to_owned(),
        lines,
    }
}

fn is_understood(kind: Kind, text: Option<&str>) -> bool {
    value::parse(kind, text, Units::default()).is_ok()
}

/// No files, no variables: fio has put their values in place.
struct Nowhere;

impl Surroundings for Nowhere {
    fn read(&self, _path: &str) -> Result<String, String> {
        Err("can't be read from here".to_owned())
    }

    fn lines(&self, _path: &str) -> Result<Box<dyn BufRead>, String> {
        Err("can't be read from here".to_owned())
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn keyword(&self, _name: &str) -> Option<u64> {
        None
    }
}

fn cell(
    job: &Job,
    copies: u32,
    said: &Said,
    not_said: &mut Vec<String>,
) -> Result<CellParams, String> {
    let blocks = Blocks::new(job.read_lengths.clone(), job.write_lengths.clone());
    let only = blocks.only(job.pattern.rw);
    let (policy, cipher, sector_size_bytes) = crypt(job, said, not_said)?;
    let runtime_ms = job.runtime_us.unwrap_or(0) / 1_000;
    if runtime_ms == 0 {
        not_said.push("runtime".to_owned());
    }
    Ok(CellParams {
        device: device(job, said, not_said),
        key_bits: said.key_bits,
        cipher,
        sector_size_bytes,
        rw: job.pattern.rw,
        rwmixread_percent: share_of_reads(job),
        block_size_bytes: only.unwrap_or_else(|| blocks.largest(job.pattern.rw)),
        block_sizes: only.is_none().then(|| blocks.to_string()),
        // Plain system calls are one at a time.
        depth: if job.access == Access::File(Engine::Sync) {
            1
        } else {
            job.depth
        },
        jobs: if copies > 1 { copies } else { job.numjobs },
        issuer_cpus: Vec::new(),
        devices: 1,
        cores: None,
        workers: 0,
        policy,
        hipri: job.hipri,
        readahead: false,
        direct: job.direct,
        engine: engine(job).to_owned(),
        cipher_throttle_bytes_per_s: None,
        size_bytes: size(job, not_said),
        runtime_ms,
        ramp_ms: job.ramp_us / 1_000,
        slice_us: None,
        seed: job.settings.number("randseed").unwrap_or(0),
    })
}

/// Policy, cipher and sector size.
fn crypt(
    job: &Job,
    said: &Said,
    not_said: &mut Vec<String>,
) -> Result<(String, String, u32), String> {
    let own = job.crypt.as_ref();
    let policy = said
        .policy
        .clone()
        .or_else(|| own.map(|crypt| crypt.policy.to_string()))
        .ok_or("the file does not say under which policy it was measured; give --policy NAME, or NAME=FILE")?;
    let mut absent = |what: &str| {
        if policy != RAW_POLICY {
            not_said.push(what.to_owned());
        }
    };
    let cipher = said
        .cipher
        .clone()
        .or_else(|| own.map(|crypt| crypt.cipher_text.clone()));
    let cipher = cipher.unwrap_or_else(|| {
        absent("cipher");
        if policy == RAW_POLICY {
            "none"
        } else {
            "unknown"
        }
        .to_owned()
    });
    let sector = own.map(|crypt| crypt.cipher.sector_size().bytes() as u32);
    let sector = said.sector_size_bytes.or(sector).unwrap_or_else(|| {
        absent("sector size");
        0
    });
    Ok((policy, cipher, sector))
}

fn device(job: &Job, said: &Said, not_said: &mut Vec<String>) -> String {
    if let Some(device) = &said.device {
        return device.clone();
    }
    if job.access == Access::Null {
        return "null".to_owned();
    }
    let Some(name) = job.settings.text("filename") else {
        not_said.push("device".to_owned());
        return "unknown".to_owned();
    };
    match job.settings.text("directory") {
        Some(folder) => format!("file:{folder}/{}", name.trim_start_matches('/')),
        None => format!("file:{name}"),
    }
}

fn share_of_reads(job: &Job) -> u8 {
    match (job.pattern.rw.reads(), job.pattern.rw.writes()) {
        (true, false) => 100,
        (false, _) => 0,
        (true, true) => job.rwmixread_percent,
    }
}

fn engine(job: &Job) -> &'static str {
    match job.access {
        Access::Null | Access::File(Engine::Auto) => "auto",
        Access::File(Engine::IoUring) => "io_uring",
        Access::File(Engine::Sync) => "sync",
    }
}

fn size(job: &Job, not_said: &mut Vec<String>) -> u64 {
    match job.settings.share("size") {
        Some(Share::Bytes(bytes)) if bytes > 0 => bytes,
        _ => {
            not_said.push("size".to_owned());
            0
        }
    }
}

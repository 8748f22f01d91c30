//! What to measure, as people write it: flags, `--matrix FILE.toml` and the presets in `benches/`.
//!
//! All three are one type, [`Definition`], whose fields are optional; [`Definition::over`] lays one
//! over another. A matrix that is no full product has cases: definitions inside it, each a product of its own. What neither flags nor file say comes from `benches/default.toml`. Nothing is
//! checked across fields here; that is `matrix`'s part.

#![forbid(unsafe_code)]

mod cases;
pub mod device;
mod over;
pub mod policy;
pub mod quantity;
mod shard;

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::input;
use crate::result::Rw;
use device::{DeviceSpec, Engine};
use quantity::{Count, CpuList, Rate, Size, Time};
pub use shard::Shard;

/// The definitions that come with the program, by name.
pub const PRESETS: [(&str, &str); 8] = [
    ("default", include_str!("../../../benches/default.toml")),
    ("flags", include_str!("../../../benches/flags.toml")),
    ("gate", include_str!("../../../benches/gate.toml")),
    ("hand-off", include_str!("../../../benches/hand-off.toml")),
    ("policy", include_str!("../../../benches/policy.toml")),
    ("scaling", include_str!("../../../benches/scaling.toml")),
    ("simulate", include_str!("../../../benches/simulate.toml")),
    ("smoke", include_str!("../../../benches/smoke.toml")),
];

/// A matrix to measure: lists are axes, every combination is a cell. An empty list or `None` means
/// "not said".
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Definition {
    /// null, memory, scratch (a file made for the run, then removed), scratch:DIR, file:PATH, or model:NAME with
    /// hdd, sata-ssd, optane, nvme, hdd-array:N, sata-array:N, sata-array:N:OPS, null-blk:none, :softirq, :timer or
    /// :timer:NS
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "DEVICE,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<DeviceSpec>,

    /// read, write, randread, randwrite, readwrite, randrw
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "RW,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rw: Vec<Rw>,

    /// Share of reads of readwrite and randrw, in percent
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PERCENT,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rwmixread: Vec<u8>,

    /// Block sizes: 512, 4k, 1m (1024-based)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bs: Vec<Size>,

    /// Requests of several lengths, as an alternative to --bs: fio's 64k/60:1m/40 or 4k-64k, and after a comma those
    /// of writes. May be given several times
    #[arg(long, value_name = "SPLIT", help_heading = "Axes")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bssplit: Vec<String>,

    /// Requests in flight per job
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depth: Vec<u32>,

    /// Jobs (threads with a queue of their own) per volume; cpus for one per CPU
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Count>,

    /// Volumes that share one worker pool
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<u32>,

    /// Cores of the simulated machine, whatever its file says; each has the threads that the file gives it
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,

    /// inline, workqueue, adaptive, each with its flags: workqueue:no_read_workqueue,same_cpu_crypt, or
    /// adaptive:latency,max_workers=2 (also throughput, efficiency, max_cpu=PERCENT); raw for the device
    /// without any crypt stage
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "POLICY,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<String>,

    /// Ciphers in dm-crypt's notation, cipher_null-ecb, or none for no crypt stage at all
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "CIPHER,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cipher: Vec<String>,

    /// Key lengths in bits; XTS needs two keys, so 512 is AES-256
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "BITS,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key_bits: Vec<u32>,

    /// Crypto sectors, the unit of one IV: 512, 1k, 2k, 4k
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE,..",
        help_heading = "Axes"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sector_size: Vec<Size>,

    /// Run only the policies named: don't add inline and workqueue where all are adaptive
    #[arg(
        long, num_args = 0..=1, default_missing_value = "true", require_equals = true,
        hide_possible_values = true, value_name = "BOOL", help_heading = "Conditions"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<bool>,

    /// CPUs that jobs are pinned to, round-robin: 0,2,4-7
    #[arg(long, value_name = "CPULIST", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuers: Option<CpuList>,

    /// Threads of the worker pool [default: one per CPU]
    #[arg(long, value_name = "N", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,

    /// Ask for polled completions (HIPRI)
    #[arg(
        long, num_args = 0..=1, default_missing_value = "true", require_equals = true,
        hide_possible_values = true, value_name = "BOOL", help_heading = "Conditions"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hipri: Option<bool>,

    /// Mark reads as read-ahead
    #[arg(
        long, num_args = 0..=1, default_missing_value = "true", require_equals = true,
        hide_possible_values = true, value_name = "BOOL", help_heading = "Conditions"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readahead: Option<bool>,

    /// Bypass the page cache of files (the default); --buffered for the opposite
    #[arg(
        long, num_args = 0..=1, default_missing_value = "true", require_equals = true,
        hide_possible_values = true, value_name = "BOOL", help_heading = "Conditions"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,

    /// How files are read and written: auto (io_uring, or sync where it is refused), io_uring, sync
    #[arg(long, value_name = "ENGINE", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,

    /// Slow the cipher down to this speed on one core: 0.2GB/s
    #[arg(long, value_name = "RATE", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher_throttle: Option<Rate>,

    /// Bytes of each volume that requests fall into [default: a file's size, otherwise 128m]
    #[arg(long, value_name = "SIZE", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,

    /// Measuring time of each run: 200ms, 2s
    #[arg(long, value_name = "TIME", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Time>,

    /// Warm-up before it, which counts towards nothing
    #[arg(long, value_name = "TIME", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Time>,

    /// Slices of throughput over time, down to a power of two nanoseconds [default: a 16th of the
    /// runtime]
    #[arg(long, value_name = "TIME", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<Time>,

    /// Runs of each cell under each policy, interleaved
    #[arg(long, value_name = "N", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,

    /// Seed of the request generators
    #[arg(long, value_name = "N", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,

    /// Measure only this many of the cells, drawn evenly over the matrix by the seed
    #[arg(long, value_name = "N", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,

    /// Measure only this part of the cells: 1/4 to 4/4 are all of them, each once; `merge` joins the results
    #[arg(long, value_name = "N/OF", help_heading = "Conditions")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,

    /// Parts of a matrix that is no full product: each lies over the rest of the definition, and what they
    /// give together is measured. Policies and repeats are the same in all.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub case: Vec<Self>,
}

impl Definition {
    /// Reads a definition: a file, or the name of a preset where there is no such file.
    ///
    /// # Errors
    /// A missing file (with the presets' names) or one that does not parse (with line and column).
    pub fn load(name: &Path) -> Result<Self, String> {
        let shown = name.display();
        let preset = name.to_str().and_then(Self::preset_text);
        let text = match (input::text(name, input::MOST_BYTES), preset) {
            (Ok(text), _) => text,
            (Err(_), Some(text)) => text.to_owned(),
            (Err(error), None) => {
                let names = PRESETS.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "{shown}: {error}; a file, or one of the presets {names}"
                ));
            }
        };
        let definition = Self::parse(&text).map_err(|error| format!("{shown}: {error}"))?;
        if definition.is_empty() {
            return Err(format!(
                "{shown}: there is nothing in it; write what to measure, as in bs = [\"4k\"]"
            ));
        }
        Ok(definition)
    }

    /// Parses a definition from TOML.
    ///
    /// # Errors
    /// The parser's message, with line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// What everything falls back to.
    ///
    /// # Errors
    /// Only where this build's own preset is broken.
    pub fn fallback() -> Result<Self, String> {
        Self::parse(PRESETS[0].1)
    }

    /// The definition as TOML; parses to the same again.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| unreachable!("plain data: {error}"))
    }

    /// Whether it says nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn preset_text(name: &str) -> Option<&'static str> {
        let (_, text) = PRESETS.iter().find(|(preset, _)| *preset == name)?;
        Some(text)
    }
}

impl FromStr for Rw {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = match text {
            "rw" => Some(Self::ReadWrite),
            _ => Self::ALL.into_iter().find(|rw| rw.name() == text),
        };
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not a pattern: use one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_parses_and_prints_as_itself() {
        for (name, text) in PRESETS {
            let preset = Definition::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Definition::parse(&preset.to_toml()), Ok(preset), "{name}");
        }
    }

    #[test]
    fn the_fallback_says_everything_that_has_no_other_default() {
        let fallback = Definition::fallback().unwrap();
        let same = Definition::default().over(fallback.clone());
        assert_eq!(same, fallback);
        assert!(!fallback.device.is_empty() && !fallback.policy.is_empty());
        assert!(fallback.runtime.is_some() && fallback.repeats.is_some());
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line() {
        let message = Definition::parse("bs = [\"4k\"]\nblocksize = [\"4k\"]\n").unwrap_err();
        assert!(
            message.contains("blocksize") && message.contains("line 2"),
            "{message}"
        );
        let message = Definition::parse("bs = [\"4kb\"]\n").unwrap_err();
        assert!(message.contains("ambiguous"), "{message}");
    }

    #[test]
    fn flags_lie_over_files() {
        let flags = Definition {
            repeats: Some(7),
            ..Definition::default()
        };
        let file = Definition::parse("repeats = 3\nseed = 9\nrw = [\"randread\"]").unwrap();
        let both = flags.over(file);
        assert_eq!((both.repeats, both.seed), (Some(7), Some(9)));
        assert_eq!(both.rw, [Rw::RandRead]);
    }
}

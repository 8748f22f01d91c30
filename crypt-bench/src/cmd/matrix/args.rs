//! The options of `crypt-bench matrix`, and what they say together.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use crypt_core::key::Key;

use super::Shown;
use super::import;
use crate::cli::{Failure, Outcome};
use crate::cmd::{key, surroundings};
use crate::definition::Definition;
use crate::definition::quantity::Size;
use crate::host;
use crate::manifest::Manifest;
use crate::preset::Preset;
use crate::progress::say;
use crate::result::CellParams;

/// What `--help` says after the options.
const EXAMPLES: &str = "\
Examples:
  crypt-bench matrix --policy adaptive
      adaptive against inline and workqueue, on memory, a modelled NVMe drive and a scratch file
  crypt-bench matrix --device file:disk.img --rw randread --bs 4k,64k --depth 1,32
      reads of an existing file or block device; it is opened read-only
  crypt-bench matrix --device file:new.img --create --size 4g --rw randwrite
      a new file, fully written before measuring; it stays
  crypt-bench matrix --matrix benches/flags.toml --repeats 10 --out results
      a definition from a file (or a preset's name: default, flags, gate, hand-off, policy, scaling, simulate, smoke)
  crypt-bench matrix --preset dorminy-optane
      a published table of dm-crypt with and without workqueues, measured again on a modelled Optane
  crypt-bench matrix --import job.fio --bs 4k,64k
      the job of a fio job file, under every policy and with these block sizes
  crypt-bench matrix --out results --resume
      go on with an interrupted run

Sizes count in 1024: 4k is 4096 bytes. Times have a unit: 200ms, 2s.";

/// Measure a matrix of workloads under several dispatch policies.
///
/// Every combination of the axes is a cell; each cell runs under every policy, interleaved. What is not
/// given comes from --matrix, and what that does not say from benches/default.toml. Results go to a
/// folder: results.jsonl, manifest.json, report.html.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub(super) definition: Definition,

    /// Definition to start from: a TOML file, or the name of a preset
    #[arg(long, value_name = "FILE.toml", help_heading = "Axes")]
    pub(super) matrix: Option<PathBuf>,

    /// Measure a published table again, its figures beside the measured ones; list says which there are.
    /// Axes given here pick its rows, or multiply them where no row has the value
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "matrix",
        help_heading = "Axes"
    )]
    pub(super) preset: Option<String>,

    /// Start from a fio job file: its job is the cell that axes given here replace or multiply
    #[arg(long, value_name = "FILE.fio", conflicts_with_all = ["matrix", "preset"], help_heading = "Axes")]
    pub(super) import: Option<String>,

    /// Take only this section of the job file; may be given several times
    #[arg(long, value_name = "NAME", requires = "import", help_heading = "Axes")]
    pub(super) section: Vec<String>,

    /// Go through the page cache instead of --direct
    #[arg(long, conflicts_with = "direct", help_heading = "Conditions")]
    pub(super) buffered: bool,

    /// Folder for the results [default: reports/TIME-HOST]
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(super) out: Option<PathBuf>,

    /// Go on with the interrupted run in --out
    #[arg(long, requires = "out", help_heading = "Results")]
    pub(super) resume: bool,

    #[command(flatten)]
    pub(super) shown: Shown,

    /// Allow cells that write to destroy the data on this existing file or block device. A device is
    /// named by its identity, which the refusal without this flag tells
    #[arg(long, value_name = "IDENTITY", help_heading = "Data")]
    pub(super) destroy_data_on: Vec<String>,

    /// Create files of --device file:PATH that don't exist; they stay
    #[arg(long, help_heading = "Data")]
    pub(super) create: bool,

    /// Raw volume key [default: a random one]
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub(super) key_file: Option<PathBuf>,

    /// Most memory to use [default: three quarters of what is available]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    pub(super) memory_limit: Option<Size>,
}

impl Args {
    /// Flags over file over default; a resumed run's own where neither flags nor file are given.
    pub(super) fn definition(&self, resumed: Option<&Manifest>) -> Outcome<Definition> {
        let mut flags = self.definition.clone();
        if self.buffered {
            flags.direct = Some(false);
        }
        let base = match (&self.matrix, self.preset()?, self.imported()?, resumed) {
            (Some(file), ..) => Definition::load(file).map_err(Failure::Usage)?,
            (None, Some(preset), ..) => preset.plan.matrix,
            (None, None, Some(imported), _) => imported,
            (None, None, None, Some(manifest)) => {
                Definition::parse(&manifest.definition_toml).map_err(Failure::Usage)?
            }
            (None, None, None, None) => Definition::default(),
        };
        let fallback = Definition::fallback().map_err(Failure::Internal)?;
        Ok(flags.over(base).over(fallback))
    }

    /// The published table that is asked for.
    fn preset(&self) -> Outcome<Option<Preset>> {
        let name = self.preset.as_deref();
        name.map(Preset::named).transpose().map_err(Failure::Usage)
    }

    /// What the job file says.
    fn imported(&self) -> Outcome<Option<Definition>> {
        let Some(file) = &self.import else {
            return Ok(None);
        };
        let jobs = surroundings::load(std::slice::from_ref(file), &self.section, false)?;
        let definition = import::definition(&jobs).map_err(surroundings::refused)?;
        if let Some(remark) = import::remark(&jobs) {
            say(remark);
        }
        Ok(Some(definition))
    }

    /// A key that is long enough for every cell.
    pub(super) fn key(&self, cells: &[CellParams]) -> Outcome<Key> {
        let file = self.key_file.as_deref();
        let bits = cells.iter().filter_map(|cell| cell.key_bits);
        let (shortest, longest) = (bits.clone().min().unwrap_or(0), bits.max().unwrap_or(0));
        let len = longest as usize / 8;
        let source = file.unwrap_or(Path::new(key::RANDOM));
        let failed =
            |error: std::io::Error| Failure::Usage(format!("{}: {error}", source.display()));
        if file.is_some() {
            let len_found = fs::metadata(source).map_err(failed)?.len();
            if len_found != len as u64 || shortest != longest {
                return Err(Failure::Usage(format!(
                    "{}: {len_found} bytes, but the matrix has keys of {shortest} to {longest} bits; give \
                 one --key-bits and a file of that length",
                    source.display()
                )));
            }
        }
        let bytes = key::read(source, len).map_err(failed)?;
        Key::from_bytes(&bytes).map_err(|error| Failure::Internal(error.to_string()))
    }

    /// Where the results go.
    pub(super) fn folder(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(default_folder)
    }
}

pub(in crate::cmd) fn default_folder() -> PathBuf {
    let time = jiff::ZonedDateTime::now()
        .strftime("%Y%m%d-%H%M%S")
        .to_string();
    PathBuf::from("reports").join(format!("{time}-{}", host::hostname()))
}

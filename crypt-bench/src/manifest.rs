//! `manifest.json`: what a results folder is the result of - program, host, definition and plan.
//!
//! Written when a run starts and replaced atomically when it ends, so a folder without an end is
//! an unfinished run. Published as `schema/manifest.schema.json`. Plain data.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use crate::result::CellParams;

#[cfg(test)]
use schemars::JsonSchema;

/// Describes one results folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Manifest {
    /// Version of the format, the results' own.
    pub schema_version: u32,
    /// The program that measures.
    pub tool: Tool,
    /// The machine that it runs on.
    pub environment: Environment,
    /// The command line that started the run, the program's name first and without its folder.
    pub command_line: Vec<String>,
    /// The definition that the plan was made from, as TOML.
    pub definition_toml: String,
    /// The published table that was measured again, by its name (`--preset`). Left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Files that the run made because it was told to, which `--resume` may therefore write to.
    pub created_files: Vec<CreatedFile>,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// End of the run, RFC 3339; null while it runs or after it was killed.
    pub finished: Option<String>,
    /// How the run stands.
    pub state: State,
    /// Every cell in the order of the plan, policies included.
    pub plan: Vec<CellParams>,
    /// Repeats of each cell.
    pub repeats: u32,
    /// SHA-256 over the plan, the repeats, the binary and the host, in hex: `--resume` continues only where
    /// it is the same.
    pub plan_hash: String,
}

/// A file that a run made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CreatedFile {
    /// Where, as named on the command line.
    pub path: String,
    /// Number of its file system.
    pub file_system: u64,
    /// Its number in there.
    pub inode: u64,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Started, and not ended by itself.
    Running,
    /// Stopped by the user; `--resume` continues.
    Interrupted,
    /// All records are there.
    Complete,
}

/// The program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Tool {
    /// Package version.
    pub version: String,
    /// Git revision it was built from, with `-dirty` where the tree had changes; null when unknown.
    pub git_revision: Option<String>,
    /// SHA-256 of the executable, in hex.
    pub binary_sha256: String,
    /// `release` or `debug`.
    pub profile: String,
}

/// The machine, as far as it bears on the numbers. All is empty where an import does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Environment {
    /// Host name.
    pub host: String,
    /// CPU model name.
    pub cpu_model: String,
    /// CPUs that the process may use.
    pub cpus: u32,
    /// CPU features that bear on ciphers.
    pub cpu_flags: Vec<String>,
    /// Kernel release and version.
    pub kernel: String,
    /// Frequency governor of CPU 0; null where there is none.
    pub governor: Option<String>,
    /// State of each CPU vulnerability and its mitigation, `name: state`.
    pub mitigations: Vec<String>,
    /// Physical memory.
    pub memory_bytes: u64,
    /// RLIMIT_MEMLOCK, which bounds registered buffers; null for unlimited.
    pub memlock_limit_bytes: Option<u64>,
    /// Whether a hypervisor is underneath.
    pub virtual_machine: bool,
    /// Source of time stamps, and its ticks per nanosecond where it is the TSC.
    pub clock: String,
    /// TSC ticks per nanosecond (not CPU cycles); null for the system clock.
    pub tsc_ticks_per_ns: Option<f64>,
    /// Where each file device lives.
    pub storage: Vec<Storage>,
}

impl Environment {
    /// Whether anything is known of the machine: an import does not say where it was measured.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.host.is_empty() || self.cpus > 0
    }
}

/// Where a file device lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Storage {
    /// Device as in the cells.
    pub device: String,
    /// Mount point of its file system; null for a block device.
    pub mount_point: Option<String>,
    /// File system type, or `block device`.
    pub filesystem: String,
    /// Source of the mount, or the block device's model.
    pub source: String,
    /// Mount options; empty for a block device.
    pub options: String,
}

//! The devices that cells run on: checked before the run, made or opened for it, and reopened per
//! cell.
//!
//! What may be written is decided in [`check`], before anything is made or opened for writing: an
//! existing file or device is written only where the user named it with `--destroy-data-on`; a cell
//! that only reads opens its file read-only. A scratch file has no name: it is gone when the process
//! ends, however it ends. No file that was there before is ever created, truncated or removed.

#![forbid(unsafe_code)]

mod check;
mod make;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crypt_core::ErrorKind;
use crypt_core::device::Device;
use crypt_core::device::claim::Claim;
use crypt_core::device::file::{FileDevice, FileEngine, FileOptions};
use rustix::fs::SeekFrom;

use crate::definition::device::DeviceSpec;
use crate::definition::quantity::Size;
use crate::input;
use crate::judge::StorageEvidence;
use crate::manifest::CreatedFile;
use crate::result::CellParams;

pub use check::check;
use make::{create_file, descriptor_path, device_over, lay_out, make_medium, nameless};

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of `linux/magic.h`.
const MEMORY_FILESYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// What the user allows.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// Existing files and devices whose data may be lost, each named as `--destroy-data-on` says.
    pub destroy_data_on: Vec<String>,
    /// Create files that don't exist.
    pub create: bool,
    /// Files that an earlier part of the same run created.
    pub created: Vec<CreatedFile>,
}

/// Capacity of a device that exists already, in bytes.
#[must_use]
pub fn existing_size_bytes(spec: &DeviceSpec) -> Option<u64> {
    let DeviceSpec::File(path) = spec else {
        return None;
    };
    file_size_bytes(path).ok().flatten()
}

/// Capacity of a regular file or block device, in bytes; `None` where there is none of this name.
///
/// # Errors
/// What is there instead, or why it can't be looked at; in words, without its name.
pub fn file_size_bytes(path: &Path) -> Result<Option<u64>, String> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let kind = metadata.file_type();
    if kind.is_block_device() {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let end = rustix::fs::seek(&file, SeekFrom::End(0));
        return end.map(Some).map_err(|error| error.to_string());
    }
    if kind.is_file() {
        return Ok(Some(metadata.len()));
    }
    Err(format!(
        "{}; give a regular file or a block device",
        input::kind_of(kind)
    ))
}

fn open_file(path: &Path, cell: &CellParams, claimed: bool) -> Result<FileDevice, String> {
    open_files(&[path], cell, claimed)
}

/// Files as one device, used as this cell says.
fn open_files<P: AsRef<Path>>(
    paths: &[P],
    cell: &CellParams,
    claimed: bool,
) -> Result<FileDevice, String> {
    let options = FileOptions {
        direct: cell.direct,
        read_only: !cell.rw.writes(),
        claimed,
        engine: match cell.engine.as_str() {
            "io_uring" => FileEngine::IoUring,
            "sync" => FileEngine::Sync,
            _ => FileEngine::Auto,
        },
    };
    FileDevice::open_all(paths, options).map_err(|error| match error.kind() {
        ErrorKind::Unsupported if cell.direct => {
            format!("{error} (--buffered goes through the page cache)")
        }
        _ => error.to_string(),
    })
}

/// The devices of one cell.
#[derive(Clone, Debug)]
pub struct Opened {
    /// One per volume: the device, and where the volume starts on it in bytes.
    pub places: Vec<(Arc<dyn Device>, u64)>,
    /// What is known about where the data lives.
    pub evidence: StorageEvidence,
}

/// A file without a name.
#[derive(Debug)]
struct Scratch {
    device: String,
    file: File,
    /// Whether its file system has direct I/O.
    direct: bool,
}

/// Media of devices that only live in this process, with the parameters that they depend on.
#[derive(Debug)]
struct Kept {
    device: String,
    size_bytes: u64,
    media: Vec<Arc<dyn Device>>,
}

/// Makes and opens devices, keeping what the next cell can use again.
#[derive(Debug, Default)]
pub struct Targets {
    scratch: Vec<Scratch>,
    kept: Option<Kept>,
    created: Vec<CreatedFile>,
    /// Block devices that are written, by their number; held until the run ends, and opened as often as jobs need.
    claims: HashMap<u64, Claim>,
}

impl Targets {
    /// Makes what the plan needs: scratch files, and files to be created. They are fully written;
    /// `say` is told before.
    ///
    /// # Errors
    /// Where the system refuses it, or `stop` becomes true. Nothing new is left then.
    pub fn prepare(
        cells: &[CellParams],
        permissions: &Permissions,
        stop: &AtomicBool,
        mut say: impl FnMut(&str),
    ) -> Result<Self, String> {
        let mut targets = Self {
            created: permissions.created.clone(),
            ..Self::default()
        };
        let needs = needs(cells);
        for cell in cells {
            let bytes = needs.get(cell.device.as_str()).copied().unwrap_or(0);
            match cell.device.parse()? {
                DeviceSpec::Scratch(folder) if targets.scratch(&cell.device).is_none() => {
                    say(&format!("writing a scratch file of {}", Size(bytes)));
                    let scratch = make_scratch(&cell.device, folder.as_deref(), bytes, stop)?;
                    targets.scratch.push(scratch);
                }
                DeviceSpec::File(path) if !path.exists() => {
                    say(&format!("writing {}: {}", path.display(), Size(bytes)));
                    targets.created.push(create_file(&path, bytes, stop)?);
                }
                _ => {}
            }
        }
        Ok(targets)
    }

    /// Files that were created under a name of the user's.
    #[must_use]
    pub fn created(&self) -> &[CreatedFile] {
        &self.created
    }

    /// Where a device's file is; `None` where it has none.
    #[must_use]
    pub fn path(&self, device: &str) -> Option<PathBuf> {
        if let Some(scratch) = self.scratch(device) {
            return Some(descriptor_path(&scratch.file));
        }
        match device.parse() {
            Ok(DeviceSpec::File(path)) => Some(path),
            _ => None,
        }
    }

    /// The devices of a cell, filled with data. A modelled drive is as new each time.
    ///
    /// # Errors
    /// Where a device can't be opened or filled, or `stop` becomes true.
    pub fn open(&mut self, cell: &CellParams, stop: &AtomicBool) -> Result<Opened, String> {
        if let Some(path) = self.path(&cell.device) {
            let scratch = self.scratch(&cell.device);
            let possible = scratch.is_none_or(|scratch| scratch.direct);
            let mut cell = cell.clone();
            cell.direct &= possible;
            self.claim(&path, &cell)?;
            return open_shared(&path, &cell);
        }
        Ok(Opened {
            places: self
                .own_media(cell, stop)?
                .iter()
                .map(|medium| Ok((device_over(medium, cell)?, 0)))
                .collect::<Result<_, String>>()?,
            evidence: StorageEvidence::default(),
        })
    }

    /// The files of cells that are alike but for their device, one behind the other as one device; a single cell is
    /// opened as it would be by itself.
    ///
    /// # Errors
    /// As [`Targets::open`]; where one of several is no file.
    pub fn open_together(
        &mut self,
        cells: &[CellParams],
        stop: &AtomicBool,
    ) -> Result<Opened, String> {
        let (first, rest) = cells.split_first().ok_or("a job without a file")?;
        if rest.is_empty() {
            return self.open(first, stop);
        }
        let path = |cell: &CellParams| {
            let path = self.path(&cell.device);
            path.ok_or_else(|| format!("{} is no file", cell.device))
        };
        let paths = cells.iter().map(path).collect::<Result<Vec<_>, _>>()?;
        for (path, cell) in paths.iter().zip(cells) {
            self.claim(path, cell)?;
        }
        let device = open_files(&paths, first, true)?;
        let each = paths.iter().zip(cells);
        let each = each.map(|(path, cell)| evidence(path, cell.size_bytes));
        Ok(Opened {
            places: vec![(Arc::new(device), 0)],
            evidence: StorageEvidence {
                is_file: true,
                never_written: each.clone().any(|one| one.never_written),
                in_memory: each.clone().any(|one| one.in_memory),
            },
        })
    }

    /// Holds a block device that a cell writes, unless it is held already.
    fn claim(&mut self, path: &Path, cell: &CellParams) -> Result<(), String> {
        let found = fs::metadata(path).ok();
        let block = found.filter(|found| found.file_type().is_block_device());
        let Some(block) = block.filter(|_| cell.rw.writes()) else {
            return Ok(());
        };
        if let Entry::Vacant(place) = self.claims.entry(block.rdev()) {
            place.insert(Claim::take(path).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Media that only live in this process; the last cell's where they fit.
    fn own_media(
        &mut self,
        cell: &CellParams,
        stop: &AtomicBool,
    ) -> Result<&[Arc<dyn Device>], String> {
        let fits = |kept: &Kept| {
            kept.device == cell.device
                && kept.size_bytes == cell.size_bytes
                && kept.media.len() == cell.devices as usize
        };
        let kept = match self.kept.take().filter(fits) {
            Some(kept) => kept,
            None => Kept {
                device: cell.device.clone(),
                size_bytes: cell.size_bytes,
                media: (0..cell.devices)
                    .map(|_| make_medium(cell, stop))
                    .collect::<Result<_, String>>()?,
            },
        };
        Ok(&self.kept.insert(kept).media)
    }

    fn scratch(&self, device: &str) -> Option<&Scratch> {
        self.scratch.iter().find(|scratch| scratch.device == device)
    }
}

fn make_scratch(
    device: &str,
    folder: Option<&Path>,
    bytes: u64,
    stop: &AtomicBool,
) -> Result<Scratch, String> {
    let (file, direct) = match folder {
        Some(folder) => nameless(folder)?,
        // Some temporary folders have no direct I/O; the current one may.
        None => match nameless(&std::env::temp_dir())? {
            (_, false) if nameless(Path::new(".")).is_ok_and(|(_, direct)| direct) => {
                nameless(Path::new("."))?
            }
            made => made,
        },
    };
    lay_out(&file, &descriptor_path(&file), bytes, stop)?;
    Ok(Scratch {
        device: device.to_owned(),
        file,
        direct,
    })
}

/// One file that all volumes of a cell share, each in its own part.
fn open_shared(path: &Path, cell: &CellParams) -> Result<Opened, String> {
    let device: Arc<dyn Device> = Arc::new(open_file(path, cell, true)?);
    let places = (0..u64::from(cell.devices))
        .map(|number| (Arc::clone(&device), number * cell.size_bytes))
        .collect();
    let used = u64::from(cell.devices) * cell.size_bytes;
    Ok(Opened {
        places,
        evidence: evidence(path, used),
    })
}

fn evidence(path: &Path, used_bytes: u64) -> StorageEvidence {
    let Ok(file) = File::open(path) else {
        return StorageEvidence {
            is_file: true,
            ..StorageEvidence::default()
        };
    };
    // On a block device there are no holes; its end is found.
    let hole = rustix::fs::seek(&file, SeekFrom::Hole(0));
    let kind = rustix::fs::fstatfs(&file).map(|stat| stat.f_type as u64);
    StorageEvidence {
        is_file: true,
        never_written: hole.is_ok_and(|offset| offset < used_bytes),
        in_memory: kind.is_ok_and(|kind| MEMORY_FILESYSTEMS.contains(&kind)),
    }
}

/// Bytes that the cells need of each device.
fn needs(cells: &[CellParams]) -> HashMap<&str, u64> {
    let mut needs = HashMap::new();
    for cell in cells {
        let bytes = cell.size_bytes.saturating_mul(u64::from(cell.devices));
        let most = needs.entry(cell.device.as_str()).or_insert(bytes);
        *most = bytes.max(*most);
    }
    needs
}

/// Memory that a cell's devices take, in bytes.
#[must_use]
pub fn memory_bytes(cell: &CellParams) -> u64 {
    match cell.device.parse() {
        Ok(DeviceSpec::Model(name)) if !make::transfers(&name) => 0,
        Ok(DeviceSpec::Memory | DeviceSpec::Model(_)) => {
            cell.size_bytes.saturating_mul(u64::from(cell.devices))
        }
        _ => 0,
    }
}

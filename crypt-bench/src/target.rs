//! The devices that cells run on: checked before the run, made or opened for it, and reopened per
//! cell.
//!
//! What may be written is decided in [`check`], before anything is made or opened for writing: an
//! existing file or device is written only where the user named it with `--destroy-data-on`; a cell
//! that only reads opens its file read-only. A scratch file has no name: it is gone when the process
//! ends, however it ends. No file that was there before is ever created, truncated or removed.

#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crypt_core::device::Device;
use crypt_core::device::file::{FileDevice, FileEngine, FileOptions};
use crypt_core::device::guard;
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::model::ModelDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::device::service::ServiceModel;
use crypt_core::{Volume, VolumeIo};
use rustix::fs::{FallocateFlags, SeekFrom};

use crate::definition::device::DeviceSpec;
use crate::generate::Random;
use crate::judge::StorageEvidence;
use crate::manifest::CreatedFile;
use crate::result::CellParams;

/// Bytes written at a time when a device is filled.
const FILL_BYTES: usize = 1 << 20;
/// Seed of the data that devices are filled with.
const FILL_SEED: u64 = 0x5c7a_7c4f;

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
    let metadata = fs::metadata(path).ok()?;
    if metadata.file_type().is_block_device() {
        let file = File::open(path).ok()?;
        return rustix::fs::seek(&file, SeekFrom::End(0)).ok();
    }
    metadata.is_file().then_some(metadata.len())
}

/// Checks that every device of the plan is there and may be used as planned. Changes nothing.
///
/// # Errors
/// What is missing or not allowed, and what to do about it.
pub fn check(cells: &[CellParams], permissions: &Permissions) -> Result<(), String> {
    let mut seen: Vec<(&str, bool, bool)> = Vec::new();
    for cell in cells {
        let use_of_device = (cell.device.as_str(), cell.rw.writes(), cell.direct);
        if !seen.contains(&use_of_device) {
            seen.push(use_of_device);
            check_one(cell, permissions)?;
        }
    }
    Ok(())
}

fn check_one(cell: &CellParams, permissions: &Permissions) -> Result<(), String> {
    match cell.device.parse()? {
        DeviceSpec::Null | DeviceSpec::Memory => Ok(()),
        DeviceSpec::Scratch(folder) => check_scratch(cell, folder.as_deref()),
        DeviceSpec::Model(name) => match ServiceModel::named(&name, cell.size_bytes, 0) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("--device model:{name}: {error}")),
        },
        DeviceSpec::File(path) => check_file(cell, &path, permissions),
    }
}

fn check_scratch(cell: &CellParams, folder: Option<&Path>) -> Result<(), String> {
    let folder = folder.map_or_else(std::env::temp_dir, Path::to_owned);
    let needed = cell.size_bytes.saturating_mul(u64::from(cell.devices));
    let space = rustix::fs::statvfs(&folder)
        .map_err(|error| format!("scratch folder {}: {error}", folder.display()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if needed > free {
        return Err(format!(
            "a scratch file of {needed} bytes does not fit into {}, which has {free} bytes free; \
             give a smaller --size or another --device scratch:DIR",
            folder.display()
        ));
    }
    Ok(())
}

fn check_file(cell: &CellParams, path: &Path, permissions: &Permissions) -> Result<(), String> {
    let shown = path.display();
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return check_missing(path, permissions);
        }
        metadata => metadata.map_err(|error| format!("{shown}: {error}"))?,
    };
    if cell.rw.writes() && !is_ours(&metadata, permissions) {
        if metadata.file_type().is_block_device() {
            check_block_device(path, permissions)?;
        } else {
            check_overwrite(path, permissions)?;
        }
    }
    // Opening shows whether it may be read, written and used directly; it changes nothing.
    open_file(path, cell).map(drop)
}

fn check_missing(path: &Path, permissions: &Permissions) -> Result<(), String> {
    let shown = path.display();
    if !permissions.create {
        return Err(format!(
            "{shown}: no such file; name an existing one, use --device scratch, or add --create"
        ));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if folder.is_dir() {
        Ok(())
    } else {
        Err(format!(
            "{shown}: there is no folder {} to create it in",
            folder.display()
        ))
    }
}

fn check_overwrite(path: &Path, permissions: &Permissions) -> Result<(), String> {
    let shown = path.display();
    let real = fs::canonicalize(path).map_err(|error| format!("{shown}: {error}"))?;
    let named = permissions
        .destroy_data_on
        .iter()
        .any(|name| fs::canonicalize(name).is_ok_and(|named| named == real));
    if named {
        return guard::check_destroy(path, None).map_err(|error| error.to_string());
    }
    Err(format!(
        "{shown} exists, and a cell that writes would destroy what is in it; if that is wanted, add \
         --destroy-data-on {}",
        real.display()
    ))
}

/// Lets the guard decide with each permission given; its message says what is needed.
fn check_block_device(path: &Path, permissions: &Permissions) -> Result<(), String> {
    let check = |permission| guard::check_destroy(path, permission);
    let mut refusal = match permissions.destroy_data_on.first() {
        None => check(None).err(),
        Some(first) => check(Some(first)).err(),
    };
    for permission in &permissions.destroy_data_on {
        refusal = refusal.and_then(|_| check(Some(permission)).err());
    }
    refusal.map_or(Ok(()), |error| Err(error.to_string()))
}

/// Whether an earlier part of the run created this file.
fn is_ours(metadata: &fs::Metadata, permissions: &Permissions) -> bool {
    permissions
        .created
        .iter()
        .any(|ours| (ours.file_system, ours.inode) == (metadata.dev(), metadata.ino()))
}

fn open_file(path: &Path, cell: &CellParams) -> Result<FileDevice, String> {
    let options = FileOptions {
        direct: cell.direct,
        read_only: !cell.rw.writes(),
        engine: match cell.engine.as_str() {
            "io_uring" => FileEngine::IoUring,
            "sync" => FileEngine::Sync,
            _ => FileEngine::Auto,
        },
    };
    FileDevice::open(path, options).map_err(|error| error.to_string())
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

/// Devices that only live in this process, with the parameters that they depend on.
#[derive(Debug)]
struct Kept {
    device: String,
    size_bytes: u64,
    devices: Vec<Arc<dyn Device>>,
}

/// Makes and opens devices, keeping what the next cell can use again.
#[derive(Debug, Default)]
pub struct Targets {
    scratch: Vec<Scratch>,
    kept: Option<Kept>,
    created: Vec<CreatedFile>,
}

impl Targets {
    /// Makes what the plan needs: scratch files, and files to be created. They are fully written.
    ///
    /// # Errors
    /// Where the system refuses it.
    pub fn prepare(cells: &[CellParams], permissions: &Permissions) -> Result<Self, String> {
        let mut targets = Self {
            created: permissions.created.clone(),
            ..Self::default()
        };
        for cell in cells {
            match cell.device.parse()? {
                DeviceSpec::Scratch(folder) => {
                    let bytes = largest(cells, &cell.device);
                    targets.make_scratch(&cell.device, folder.as_deref(), bytes)?;
                }
                DeviceSpec::File(path) if !path.exists() => {
                    let file = create_file(&path, largest(cells, &cell.device))?;
                    targets.created.push(file);
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

    /// The devices of a cell, filled with data.
    ///
    /// # Errors
    /// Where a device can't be opened or filled.
    pub fn open(&mut self, cell: &CellParams) -> Result<Opened, String> {
        if let Some(path) = self.path(&cell.device) {
            let direct = self
                .scratch(&cell.device)
                .is_none_or(|scratch| scratch.direct);
            let direct = direct && cell.direct;
            return open_shared(
                &path,
                &CellParams {
                    direct,
                    ..cell.clone()
                },
            );
        }
        Ok(Opened {
            places: self
                .own_devices(cell)?
                .iter()
                .map(|device| (Arc::clone(device), 0))
                .collect(),
            evidence: StorageEvidence::default(),
        })
    }

    /// Devices that only live in this process; the last cell's where they fit.
    fn own_devices(&mut self, cell: &CellParams) -> Result<&[Arc<dyn Device>], String> {
        let fits = |kept: &Kept| {
            kept.device == cell.device
                && kept.size_bytes == cell.size_bytes
                && kept.devices.len() == cell.devices as usize
        };
        let kept = match self.kept.take().filter(fits) {
            Some(kept) => kept,
            None => Kept {
                device: cell.device.clone(),
                size_bytes: cell.size_bytes,
                devices: (0..cell.devices)
                    .map(|_| make_device(cell))
                    .collect::<Result<_, String>>()?,
            },
        };
        Ok(&self.kept.insert(kept).devices)
    }

    fn scratch(&self, device: &str) -> Option<&Scratch> {
        self.scratch.iter().find(|scratch| scratch.device == device)
    }

    fn make_scratch(
        &mut self,
        device: &str,
        folder: Option<&Path>,
        bytes: u64,
    ) -> Result<(), String> {
        if self.scratch(device).is_some() {
            return Ok(());
        }
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
        lay_out(&file, &descriptor_path(&file), bytes)?;
        self.scratch.push(Scratch {
            device: device.to_owned(),
            file,
            direct,
        });
        Ok(())
    }
}

/// A new file without a name, and whether direct I/O works on it.
fn nameless(folder: &Path) -> Result<(File, bool), String> {
    let failed = |error: std::io::Error| format!("scratch file in {}: {error}", folder.display());
    let file = tempfile::tempfile_in(folder).map_err(failed)?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::CLOEXEC;
    let direct = rustix::fs::open(descriptor_path(&file), flags, rustix::fs::Mode::empty());
    Ok((file, direct.is_ok()))
}

/// One file that all volumes of a cell share, each in its own part.
fn open_shared(path: &Path, cell: &CellParams) -> Result<Opened, String> {
    let device: Arc<dyn Device> = Arc::new(open_file(path, cell)?);
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

fn make_device(cell: &CellParams) -> Result<Arc<dyn Device>, String> {
    match cell.device.parse()? {
        DeviceSpec::Null => Ok(Arc::new(NullDevice::new(cell.size_bytes))),
        DeviceSpec::Memory => filled_memory(cell.size_bytes),
        DeviceSpec::Model(name) => {
            let model = ServiceModel::named(&name, cell.size_bytes, cell.seed);
            let model = model.map_err(|error| error.to_string())?;
            Ok(Arc::new(ModelDevice::new(
                filled_memory(cell.size_bytes)?,
                model,
            )))
        }
        other => Err(format!("{other} can't be made")),
    }
}

fn filled_memory(bytes: u64) -> Result<Arc<dyn Device>, String> {
    let device = MemoryDevice::new(bytes).map_err(|error| error.to_string())?;
    let device: Arc<dyn Device> = Arc::new(device);
    fill(&device, bytes)?;
    Ok(device)
}

/// Creates a file under the user's name. It stays.
fn create_file(path: &Path, bytes: u64) -> Result<CreatedFile, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("create {shown}: {error}");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(failed)?;
    lay_out(&file, path, bytes)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok(CreatedFile {
        path: path.to_string_lossy().into_owned(),
        file_system: metadata.dev(),
        inode: metadata.ino(),
    })
}

/// Reserves the space of a new file, writes all of it and syncs it.
fn lay_out(file: &File, path: &Path, bytes: u64) -> Result<(), String> {
    let shown = path.display();
    let reserved = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes);
    match reserved {
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(bytes).map_err(|error| error.to_string()),
        other => other.map_err(|error| format!("reserve {bytes} bytes for {shown}: {error}")),
    }?;
    let device = FileDevice::open(path, FileOptions::default()).map_err(|e| e.to_string())?;
    let device: Arc<dyn Device> = Arc::new(device);
    fill(&device, bytes)?;
    file.sync_all()
        .map_err(|error| format!("sync {shown}: {error}"))
}

/// Writes all of a device with random data, so that reads find something.
fn fill(device: &Arc<dyn Device>, bytes: u64) -> Result<(), String> {
    let failed = |error: crypt_core::Error| format!("fill the device: {error}");
    let volume = Volume::builder(Arc::clone(device))
        .build()
        .map_err(failed)?;
    let mut io: VolumeIo = volume.io().map_err(failed)?;
    let mut random = Random::new(FILL_SEED);
    let mut buffer = vec![0; FILL_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let len = (bytes - offset).min(FILL_BYTES as u64) as usize;
        random.fill(&mut buffer[..len]);
        io.write_at(&buffer[..len], offset).map_err(failed)?;
        offset += len as u64;
    }
    io.flush().map_err(failed)
}

/// Bytes that the cells need of a shared file.
fn largest(cells: &[CellParams], device: &str) -> u64 {
    let needs = cells.iter().filter(|cell| cell.device == device);
    needs
        .map(|cell| cell.size_bytes.saturating_mul(u64::from(cell.devices)))
        .max()
        .unwrap_or(0)
}

/// A path that opens a file of this process again, though it has no name.
fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Memory that a cell's devices take, in bytes.
#[must_use]
pub fn memory_bytes(cell: &CellParams) -> u64 {
    match cell.device.parse() {
        Ok(DeviceSpec::Memory | DeviceSpec::Model(_)) => {
            cell.size_bytes.saturating_mul(u64::from(cell.devices))
        }
        _ => 0,
    }
}

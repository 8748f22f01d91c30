//! Makes what a run needs: devices in memory, and files, all of them full of data so that reads find
//! something.

#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crypt_core::device::Device;
use crypt_core::device::file::{FileDevice, FileOptions};
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::model::ModelDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::device::service::ServiceModel;
use crypt_core::{Volume, VolumeIo};
use rustix::fs::{FallocateFlags, Mode, OFlags};

use crate::definition::device::DeviceSpec;
use crate::generate::Random;
use crate::manifest::CreatedFile;
use crate::result::CellParams;

/// Bytes written at a time when a device is filled.
const FILL_BYTES: usize = 1 << 20;
/// Seed of the data that devices are filled with.
const FILL_SEED: u64 = 0x5c7a_7c4f;

/// The medium of a cell's device that only lives in this process, filled with data.
pub(super) fn make_medium(cell: &CellParams, stop: &AtomicBool) -> Result<Arc<dyn Device>, String> {
    match cell.device.parse()? {
        DeviceSpec::Null => Ok(Arc::new(NullDevice::new(cell.size_bytes))),
        DeviceSpec::Memory => filled_memory(cell.size_bytes, stop),
        DeviceSpec::Model(name) if transfers(&name) => filled_memory(cell.size_bytes, stop),
        DeviceSpec::Model(_) => Ok(Arc::new(NullDevice::new(cell.size_bytes))),
        other => Err(format!("{other} can't be made")),
    }
}

/// The device over its medium: a modelled drive with its head at the start and its cache empty, or
/// the medium itself.
pub(super) fn device_over(
    medium: &Arc<dyn Device>,
    cell: &CellParams,
) -> Result<Arc<dyn Device>, String> {
    let DeviceSpec::Model(name) = cell.device.parse()? else {
        return Ok(Arc::clone(medium));
    };
    let model = ServiceModel::named(&name, cell.size_bytes, cell.seed);
    let model = model.map_err(|error| error.to_string())?;
    Ok(Arc::new(ModelDevice::new(Arc::clone(medium), model)))
}

/// Whether a modelled drive has data; what is no model has none.
pub(super) fn transfers(name: &str) -> bool {
    ServiceModel::named(name, 0, 0).is_ok_and(|model| model.transfers())
}

fn filled_memory(bytes: u64, stop: &AtomicBool) -> Result<Arc<dyn Device>, String> {
    let device = MemoryDevice::new(bytes).map_err(|error| error.to_string())?;
    let device: Arc<dyn Device> = Arc::new(device);
    fill(&device, bytes, stop)?;
    Ok(device)
}

/// Creates a file under the user's name. It stays.
pub(super) fn create_file(
    path: &Path,
    bytes: u64,
    stop: &AtomicBool,
) -> Result<CreatedFile, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("create {shown}: {error}");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(failed)?;
    // What can't be finished is removed again; it is ours.
    lay_out(&file, path, bytes, stop).inspect_err(|_| drop(std::fs::remove_file(path)))?;
    let metadata = file.metadata().map_err(failed)?;
    Ok(CreatedFile {
        path: path.to_string_lossy().into_owned(),
        file_system: metadata.dev(),
        inode: metadata.ino(),
    })
}

/// Reserves the space of a new file, writes all of it and syncs it.
pub(super) fn lay_out(
    file: &File,
    path: &Path,
    bytes: u64,
    stop: &AtomicBool,
) -> Result<(), String> {
    let shown = path.display();
    let reserved = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes);
    match reserved {
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(bytes).map_err(|error| error.to_string()),
        other => other.map_err(|error| format!("reserve {bytes} bytes for {shown}: {error}")),
    }?;
    let device = FileDevice::open(path, FileOptions::default()).map_err(|e| e.to_string())?;
    let device: Arc<dyn Device> = Arc::new(device);
    fill(&device, bytes, stop)?;
    file.sync_all()
        .map_err(|error| format!("sync {shown}: {error}"))
}

/// Writes all of a device with random data, so that reads find something.
fn fill(device: &Arc<dyn Device>, bytes: u64, stop: &AtomicBool) -> Result<(), String> {
    let failed = |error: crypt_core::Error| format!("fill the device: {error}");
    let volume = Volume::builder(Arc::clone(device))
        .build()
        .map_err(failed)?;
    let mut io: VolumeIo = volume.io().map_err(failed)?;
    let mut random = Random::new(FILL_SEED);
    let mut buffer = vec![0; FILL_BYTES];
    let mut offset = 0;
    while offset < bytes {
        if stop.load(Ordering::Relaxed) {
            return Err("stopped while filling a device".to_owned());
        }
        let len = (bytes - offset).min(FILL_BYTES as u64) as usize;
        random.fill(&mut buffer[..len]);
        io.write_at(&buffer[..len], offset).map_err(failed)?;
        offset += len as u64;
    }
    io.flush().map_err(failed)
}

/// A new file without a name, and whether direct I/O works on it.
pub(super) fn nameless(folder: &Path) -> Result<(File, bool), String> {
    let failed = |error: std::io::Error| format!("scratch file in {}: {error}", folder.display());
    let file = tempfile::tempfile_in(folder).map_err(failed)?;
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    let direct = rustix::fs::open(descriptor_path(&file), flags, Mode::empty());
    Ok((file, direct.is_ok()))
}

/// A path that opens a file of this process again, though it has no name.
pub(super) fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

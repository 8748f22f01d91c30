//! Whether the plan's devices are there and may be used as planned. Reads, and changes nothing.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crypt_core::device::guard;
use crypt_core::device::service::ServiceModel;

use super::{Permissions, open_file};
use crate::definition::device::DeviceSpec;
use crate::result::CellParams;

/// Checks that every device of the plan is there and may be used as planned. Changes nothing.
///
/// # Errors
/// What is missing or not allowed, and what to do about it.
pub fn check(cells: &[CellParams], permissions: &Permissions) -> Result<(), String> {
    let mut seen = HashSet::new();
    for cell in cells {
        let use_of_device = (cell.device.as_str(), cell.rw.writes(), cell.direct);
        if seen.insert(use_of_device) {
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
    open_file(path, cell, false).map(drop)
}

fn check_missing(path: &Path, permissions: &Permissions) -> Result<(), String> {
    let shown = path.display();
    if !permissions.create {
        return Err(format!(
            "{shown}: no such file; name an existing one or add --create (`matrix` has --device scratch \
             for a file that is gone afterwards)"
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

//! Keeps a write test away from data that somebody needs.
//!
//! [`Guard::check_destroy`] says whether the content of a file or block device may be overwritten.
//! A block device needs the caller's permission, which names the device by its [`BlockIdentity`]
//! and everything recognisable on it: a path can mean another disk tomorrow, and a disk can hold
//! more than one remembers. What is in use - mounted, swap, under another device - can't be
//! permitted at all. Regular files need no permission, but must not be in use as a disk or as swap.
//!
//! The check reads, and changes nothing. It is about mistakes, not about attackers: between the
//! check and the opening of a device only the kernel's exclusive open stands, which
//! [`FileDevice`](crate::device::file::FileDevice) asks for.

#![forbid(unsafe_code)]

mod identity;
mod signature;
mod usage;

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, SeekFrom};

use crate::device::sysfs::{self, DeviceNumber};
use crate::error::{Error, ErrorKind, Result};

pub use identity::BlockIdentity;

/// Checks devices against what the system knows of them.
#[derive(Clone, Debug)]
pub struct Guard {
    proc_root: PathBuf,
    sys_root: PathBuf,
    dev_root: PathBuf,
}

impl Default for Guard {
    fn default() -> Self {
        Self::with_roots("/proc", "/sys", "/dev")
    }
}

/// Whether the content of `path` may be overwritten; see [`Guard::check_destroy`].
///
/// # Errors
/// As for [`Guard::check_destroy`].
pub fn check_destroy(path: &Path, permission: Option<&str>) -> Result<()> {
    Guard::default().check_destroy(path, permission)
}

impl Guard {
    /// A guard that looks below other roots than `/proc`, `/sys` and `/dev`, for tests.
    #[must_use]
    pub fn with_roots(
        proc_root: impl Into<PathBuf>,
        sys_root: impl Into<PathBuf>,
        dev_root: impl Into<PathBuf>,
    ) -> Self {
        Self {
            proc_root: proc_root.into(),
            sys_root: sys_root.into(),
            dev_root: dev_root.into(),
        }
    }

    /// The identity of a block device.
    ///
    /// # Errors
    /// Where the system refuses to look at it, or it is no block device.
    pub fn identity(&self, path: &Path) -> Result<BlockIdentity> {
        let metadata = look(path)?;
        if !metadata.file_type().is_block_device() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{} is not a block device", path.display()),
            ));
        }
        let size_bytes = size_bytes(path, OFlags::empty())?;
        Ok(self.identify(number_of(&metadata), size_bytes))
    }

    /// Whether the content of `path` may be overwritten.
    ///
    /// `permission` is the identity of the device (one of [`BlockIdentity::names`]), followed by
    /// `+` and the name of each signature on it that is to be destroyed: `serial:S3Z9+gpt+ext4`.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] where the device, its disk, a partition of it or a device on top of
    /// it is mounted, swap or held; where the permission is missing, names another device, or
    /// leaves out a signature. The message says what was found, where, and what to do.
    pub fn check_destroy(&self, path: &Path, permission: Option<&str>) -> Result<()> {
        let metadata = look(path)?;
        if metadata.file_type().is_block_device() {
            return self.check_block_device(path, number_of(&metadata), permission);
        }
        if metadata.file_type().is_file() {
            return self.check_file(path);
        }
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "{} is neither a regular file nor a block device",
                path.display()
            ),
        ))
    }

    fn check_block_device(
        &self,
        path: &Path,
        number: DeviceNumber,
        permission: Option<&str>,
    ) -> Result<()> {
        if let Some(use_found) = self.use_of(number)? {
            return Err(refused(path, &use_found));
        }
        // Asks the kernel, too: it knows of users that leave no trace in /proc or /sys.
        let size_bytes = size_bytes(path, OFlags::EXCL)?;
        let identity = self.identify(number, size_bytes);
        let found = self.signatures(path, number, size_bytes)?;
        let needed = identity.permission_for(found.iter().map(|found| found.name));
        let described = identity.describe();
        let Some(permission) = permission else {
            let listed = signature::list(&found);
            return Err(refused(
                path,
                &format!(
                    "it is a block device ({described}) and its content would be destroyed{listed}; \
                     if that is meant, pass --destroy-data-on '{needed}'"
                ),
            ));
        };
        let Some(allowed) = identity.allowed_signatures(permission) else {
            return Err(refused(
                path,
                &format!(
                    "the permission to destroy is for '{permission}', but this is {described}, \
                     '{}'; check which device is meant",
                    identity.name()
                ),
            ));
        };
        match found.iter().find(|found| !allowed.contains(&found.name)) {
            None => Ok(()),
            Some(found) => Err(refused(
                path,
                &format!(
                    "it carries {found}; remove it (wipefs --all), or pass --destroy-data-on \
                     '{needed}' to destroy it"
                ),
            )),
        }
    }

    fn check_file(&self, path: &Path) -> Result<()> {
        let path = std::fs::canonicalize(path)
            .map_err(|source| Error::io(format!("look at {}", path.display()), source))?;
        match self.use_of_file(&path)? {
            None => Ok(()),
            Some(use_found) => Err(refused(&path, &use_found)),
        }
    }

    /// Signatures on the device and on its partitions.
    fn signatures(
        &self,
        path: &Path,
        number: DeviceNumber,
        size_bytes: u64,
    ) -> Result<Vec<signature::Found>> {
        let mut found = signature::scan(path, &path.display().to_string(), size_bytes)?;
        let Some(dir) = sysfs::block_dir(&self.sys_root, number) else {
            return Ok(found);
        };
        for name in usage::partitions(&dir) {
            let node = self.dev_root.join(&name);
            // A partition without a node can't be opened by anybody.
            if node.exists() {
                let size_bytes = self::size_bytes(&node, OFlags::empty())?;
                found.extend(signature::scan(&node, &name, size_bytes)?);
            }
        }
        Ok(found)
    }
}

fn look(path: &Path) -> Result<Metadata> {
    std::fs::metadata(path)
        .map_err(|source| Error::io(format!("look at {}", path.display()), source))
}

fn number_of(metadata: &Metadata) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(metadata.rdev()),
        minor: rustix::fs::minor(metadata.rdev()),
    }
}

fn size_bytes(path: &Path, flags: OFlags) -> Result<u64> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::BUSY) => {
            let held = "the kernel says that it is in use; unmount or close what holds it";
            return Err(refused(path, held));
        }
        opened => opened,
    };
    let file = opened.map(File::from);
    let size_bytes = file.and_then(|file| rustix::fs::seek(&file, SeekFrom::End(0)));
    size_bytes.map_err(|source| Error::io(format!("look at {}", path.display()), source))
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!("{} is not written to: {why}", path.display()),
    )
}

#[cfg(test)]
mod tests;

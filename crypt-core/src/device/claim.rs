//! A claim on a block device, under which one program opens it as often as it needs: alone against others, not against
//! itself.

#![forbid(unsafe_code)]

use std::fs::File;
use std::path::Path;

use rustix::fs::OFlags;

use crate::device::file::{busy, is_block_device, open_patiently};
use crate::error::{Error, ErrorKind, Result};

/// Holds a block device: nobody mounts it, or opens it to have it alone, as long as this lives. It may meanwhile be
/// opened several times with [`FileOptions::claimed`](crate::device::file::FileOptions::claimed).
#[derive(Debug)]
pub struct Claim {
    _file: File,
}

impl Claim {
    /// Holds the block device at this path.
    ///
    /// # Errors
    /// Where the path is no block device, somebody else holds it, or it can't be opened.
    pub fn take(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if !is_block_device(path)? {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{} is not a block device, and only those can be held",
                    path.display()
                ),
            ));
        }
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOCTTY;
        match open_patiently(path, flags) {
            Err(rustix::io::Errno::BUSY) => Err(busy(path)),
            Err(source) => Err(Error::io(format!("open {}", path.display()), source)),
            Ok(file) => Ok(Self { _file: file.into() }),
        }
    }
}

//! Facts about block devices that only `/sys` tells. The root is a parameter, so that tests can
//! bring their own tree. Whatever can't be read is absent, never an error.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// Number of a block device, as in `st_rdev` of its node and `st_dev` of files on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeviceNumber {
    /// Driver.
    pub(crate) major: u32,
    /// Device or partition of that driver.
    pub(crate) minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The kernel's directory of a block device or partition, links resolved.
pub(crate) fn block_dir(sys_root: &Path, number: DeviceNumber) -> Option<PathBuf> {
    fs::canonicalize(sys_root.join(format!("dev/block/{number}"))).ok()
}

/// A file below a directory as text, without white space around it; absent when empty.
pub(crate) fn text(dir: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(dir.join(name)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number from the `queue` directory of the disk that a device is, or is a partition of.
pub(crate) fn queue_number(sys_root: &Path, number: DeviceNumber, name: &str) -> Option<u64> {
    let dir = block_dir(sys_root, number)?;
    let own = text(&dir.join("queue"), name);
    let of_disk = || text(&dir.parent()?.join("queue"), name);
    own.or_else(of_disk)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_takes_the_queue_of_its_disk() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("devices/vda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("vda1")).unwrap();
        fs::write(disk.join("queue/io_poll"), "1\n").unwrap();
        let links = root.path().join("dev/block");
        fs::create_dir_all(&links).unwrap();
        std::os::unix::fs::symlink("../../devices/vda/vda1", links.join("254:1")).unwrap();
        let partition = DeviceNumber {
            major: 254,
            minor: 1,
        };
        let read = |name| queue_number(root.path(), partition, name);
        assert_eq!(read("io_poll"), Some(1));
        assert_eq!(read("absent"), None);
    }
}

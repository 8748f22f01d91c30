//! Where a file device lives: its file system and mount, or the block device's model, for results.

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::manifest::Storage;

/// Where the file behind `device` lives; whatever can't be found out is left empty.
#[must_use]
pub fn describe(device: &str, path: &Path) -> Storage {
    let metadata = fs::metadata(path);
    if let Ok(metadata) = &metadata
        && metadata.file_type().is_block_device()
    {
        return block_device(device, metadata.rdev());
    }
    // A file without a name still has a folder: its link reads "/tmp/#123 (deleted)".
    let place = fs::canonicalize(path)
        .or_else(|_| fs::read_link(path))
        .unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mount_of(device, &mounts, &place).unwrap_or_else(|| Storage {
        device: device.to_owned(),
        mount_point: None,
        filesystem: String::new(),
        source: String::new(),
        options: String::new(),
    })
}

fn block_device(device: &str, number: u64) -> Storage {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let model = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/device/model"));
    Storage {
        device: device.to_owned(),
        mount_point: None,
        filesystem: "block device".to_owned(),
        source: model.unwrap_or_default().trim().to_owned(),
        options: String::new(),
    }
}

/// The mount that a path is on: the last of those with the longest mount point above it (proc(5),
/// `mountinfo`).
fn mount_of(device: &str, mountinfo: &str, path: &Path) -> Option<Storage> {
    let mounts = mountinfo.lines().filter_map(parse);
    let above = mounts.filter(|(point, ..)| path.starts_with(point));
    let (point, filesystem, source, options) =
        above.max_by_key(|(point, ..)| point.as_os_str().len())?;
    Some(Storage {
        device: device.to_owned(),
        mount_point: Some(point.to_string_lossy().into_owned()),
        filesystem,
        source,
        options,
    })
}

/// Mount point, type, source and options of one line.
fn parse(line: &str) -> Option<(PathBuf, String, String, String)> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.split(' ');
    let (point, mount_options) = (left.get(4)?, left.get(5)?);
    let (filesystem, source) = (right.next()?, right.next()?);
    let options = match right.next() {
        Some(more) => format!("{mount_options},{more}"),
        None => (*mount_options).to_owned(),
    };
    Some((
        PathBuf::from(unescape(point)),
        filesystem.to_owned(),
        unescape(source),
        options,
    ))
}

/// Spaces, tabs, line ends and backslashes are written as three octal digits.
fn unescape(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (escaped, plain)| {
        text.replace(escaped, plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 22 0:26 / /tmp rw,nosuid shared:5 - tmpfs tmpfs rw,size=1024k
31 22 8:1 / /mnt/my\\040disk rw - xfs /dev/sda1 rw
";

    #[test]
    fn the_longest_mount_point_above_a_path_is_its_mount() {
        let mount = |path: &str| mount_of("x", MOUNTS, Path::new(path)).unwrap();
        assert_eq!(mount("/tmp/#12 (deleted)").filesystem, "tmpfs");
        assert_eq!(mount("/tmpfile").source, "/dev/vda");
        assert_eq!(mount("/mnt/my disk/a").filesystem, "xfs");
        assert_eq!(mount("/tmp").options, "rw,nosuid,rw,size=1024k");
    }

    #[test]
    fn a_file_of_this_machine_has_a_file_system() {
        let file = tempfile::tempfile().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let storage = describe("scratch", Path::new(&path));
        assert!(!storage.filesystem.is_empty(), "{storage:?}");
        assert_ne!(storage.filesystem, "proc");
    }
}

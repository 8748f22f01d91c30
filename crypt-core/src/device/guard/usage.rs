//! Who uses a device at the moment: mounts, swap, and devices on top of it.

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::device::guard::Guard;
use crate::device::sysfs::{self, DeviceNumber};
use crate::error::{Error, Result};

impl Guard {
    /// What uses the device, its disk, one of its partitions, or a device on top of those; with
    /// what to do about it.
    pub(super) fn use_of(&self, number: DeviceNumber) -> Result<Option<String>> {
        let dir = sysfs::block_dir(&self.sys_root, number);
        let mut family: Vec<(String, DeviceNumber)> = vec![("it".to_owned(), number)];
        if let Some(dir) = &dir {
            family.extend(relatives(dir));
        }
        let mounts = self.mounts()?;
        let swaps = self.swaps()?;
        for (name, number) in &family {
            if let Some(mount) = mounts.iter().find(|mount| mount.number == Some(*number)) {
                let point = mount.point.display();
                return Ok(Some(format!("{name} is mounted at {point}; unmount it")));
            }
            if let Some(swap) = swaps.iter().find(|swap| swap.number == Some(*number)) {
                let path = swap.path.display();
                return Ok(Some(format!("{name} is swap ({path}); swapoff it")));
            }
        }
        Ok(dir.as_deref().and_then(holder))
    }

    /// What uses a regular file, given by its full path.
    pub(super) fn use_of_file(&self, path: &Path) -> Result<Option<String>> {
        if self.swaps()?.iter().any(|swap| swap.path == path) {
            return Ok(Some("it is swap; swapoff it".to_owned()));
        }
        let loops = fs::read_dir(self.sys_root.join("class/block"));
        for entry in loops.into_iter().flatten().flatten() {
            let backing = sysfs::text(&entry.path(), "loop/backing_file");
            if backing.is_some_and(|backing| Path::new(&backing) == path) {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                return Ok(Some(format!(
                    "it is the disk behind /dev/{name}; detach it (losetup --detach), or name \
                     /dev/{name}"
                )));
            }
        }
        Ok(None)
    }

    fn mounts(&self) -> Result<Vec<Mount>> {
        let text = self.proc_text("self/mountinfo")?;
        Ok(text.lines().filter_map(|line| self.mount(line)).collect())
    }

    /// One line of `mountinfo` (proc_pid_mountinfo(5)): identifiers, `major:minor`, root, mount
    /// point, options, optional fields, a dash, type, source, options.
    fn mount(&self, line: &str) -> Option<Mount> {
        let (head, tail) = line.split_once(" - ")?;
        let mut head = head.split(' ');
        let number = parse_number(head.nth(2)?)?;
        let point = PathBuf::from(unescape(head.nth(1)?));
        // btrfs and others have a number that no block device has; their source still names one.
        let number = if number.major == 0 {
            let source = unescape(tail.split(' ').nth(1)?);
            self.number_of_node(Path::new(&source))
        } else {
            Some(number)
        };
        Some(Mount { number, point })
    }

    fn swaps(&self) -> Result<Vec<Swap>> {
        let text = self.proc_text("swaps")?;
        let paths = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next());
        let swaps = paths.map(|path| PathBuf::from(unescape(path)));
        Ok(swaps
            .map(|path| Swap {
                number: self.number_of_node(&path),
                path,
            })
            .collect())
    }

    fn proc_text(&self, name: &str) -> Result<String> {
        let path = self.proc_root.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            // A kernel without swap has no list of it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && name == "swaps" => {
                Ok(String::new())
            }
            Err(source) => {
                let what = format!("find out what is in use from {}", path.display());
                Err(Error::io(what, source))
            }
        }
    }

    /// Number of the block device that a node or link in `/dev` names.
    fn number_of_node(&self, node: &Path) -> Option<DeviceNumber> {
        let below_dev = node.strip_prefix("/dev").ok()?;
        let target = fs::canonicalize(self.dev_root.join(below_dev));
        let target = target.unwrap_or_else(|_| node.to_owned());
        let dir = self.sys_root.join("class/block").join(target.file_name()?);
        parse_number(&sysfs::text(&dir, "dev")?)
    }
}

/// One mount.
struct Mount {
    number: Option<DeviceNumber>,
    point: PathBuf,
}

/// One swap area.
struct Swap {
    number: Option<DeviceNumber>,
    path: PathBuf,
}

/// Names of the partitions of a disk.
pub(super) fn partitions(dir: &Path) -> Vec<String> {
    let mut names = entries(dir);
    names.retain(|name| dir.join(name).join("partition").exists());
    names
}

/// The disk of a partition, the partitions of a disk, and all devices on top.
fn relatives(dir: &Path) -> Vec<(String, DeviceNumber)> {
    let mut dirs = Vec::new();
    if dir.join("partition").exists() {
        dirs.extend(dir.parent().map(Path::to_owned));
    }
    dirs.extend(partitions(dir).into_iter().map(|name| dir.join(name)));
    let mut bases = vec![dir.to_owned()];
    bases.extend(partitions(dir).into_iter().map(|name| dir.join(name)));
    // Grows while it is walked; a device is never on top of itself, and the depth is bounded anyway.
    let mut next = 0;
    while next < bases.len() && bases.len() < 10_000 {
        for name in entries(&bases[next].join("holders")) {
            let holder = fs::canonicalize(bases[next].join("holders").join(name));
            if let Ok(holder) = holder
                && !bases.contains(&holder)
            {
                dirs.push(holder.clone());
                bases.push(holder);
            }
        }
        next += 1;
    }
    dirs.iter().filter_map(|dir| named_number(dir)).collect()
}

fn named_number(dir: &Path) -> Option<(String, DeviceNumber)> {
    let number = parse_number(&sysfs::text(dir, "dev")?)?;
    let name = dir.file_name().map(OsStr::to_string_lossy)?.into_owned();
    let name = match sysfs::text(dir, "dm/name") {
        Some(alias) => format!("/dev/{name} ({alias})"),
        None => format!("/dev/{name}"),
    };
    Some((name, number))
}

/// A device directly on top, even if nothing uses that one: it may be used at any moment.
fn holder(dir: &Path) -> Option<String> {
    let own = Some(dir.to_owned());
    let partitions = partitions(dir).into_iter().map(|name| dir.join(name));
    for base in own.into_iter().chain(partitions) {
        let base_name = base.file_name()?.to_string_lossy().into_owned();
        if let Some(name) = entries(&base.join("holders")).first() {
            let alias = sysfs::text(&base.join("holders").join(name), "dm/name");
            let alias = alias.map(|alias| format!(" ({alias})")).unwrap_or_default();
            return Some(format!(
                "/dev/{name}{alias} is built on {base_name}; remove that first (cryptsetup close, \
                 vgchange -an, mdadm --stop)"
            ));
        }
    }
    None
}

fn entries(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// Undoes the kernel's `\ooo` for blanks and the like in paths.
fn unescape(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| byte == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => {
                plain.push(code);
                rest = &after[3..];
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_are_undone_and_others_kept() {
        assert_eq!(unescape(r"/mnt/a\040b\134c"), r"/mnt/a b\c");
        assert_eq!(unescape(r"\04"), r"\04");
        assert_eq!(unescape(r"\999\"), r"\999\");
    }
}

//! What a block device is called by, other than a path that may mean another one tomorrow.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use crate::device::guard::Guard;
use crate::device::sysfs::{self, DeviceNumber};

/// Names of one block device, the most trustworthy first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockIdentity {
    names: Vec<String>,
    description: String,
}

impl BlockIdentity {
    /// The name to use: `wwid:...`, `serial:...`, `id:...` (a link in `/dev/disk/by-id`),
    /// `dm-uuid:...`, `dm-name:...`, `loop:FILE`, or `number:MAJOR:MINOR,size:BYTES` where the
    /// device has none of those. A partition's name is its disk's with `-partN`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// All names, each of which may be used.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Model and size, for a person to recognise the device.
    #[must_use]
    pub fn describe(&self) -> &str {
        &self.description
    }

    /// The permission to destroy everything on the device.
    pub(super) fn permission_for<'a>(&self, signatures: impl Iterator<Item = &'a str>) -> String {
        let mut permission = self.name().to_owned();
        for name in signatures {
            let part = format!("+{name}");
            if !permission.ends_with(&part) && !permission.contains(&format!("{part}+")) {
                permission.push_str(&part);
            }
        }
        permission
    }

    /// The signatures that a permission covers; `None` where it is for another device.
    pub(super) fn allowed_signatures<'a>(&self, permission: &'a str) -> Option<Vec<&'a str>> {
        let permission = permission
            .strip_prefix("/dev/disk/by-id/")
            .unwrap_or(permission);
        // The longest name that fits, since one may begin like another.
        let fitting = self.names.iter().filter_map(|name| {
            let rest = permission.strip_prefix(name.as_str());
            let rest = rest.or_else(|| permission.strip_prefix(name.strip_prefix("id:")?))?;
            (rest.is_empty() || rest.starts_with('+')).then_some(rest)
        });
        let rest = fitting.min_by_key(|rest| rest.len())?;
        Some(rest.split('+').skip(1).collect())
    }
}

impl Guard {
    /// Reads the names of a device.
    pub(super) fn identify(&self, number: DeviceNumber, size_bytes: u64) -> BlockIdentity {
        let dir = sysfs::block_dir(&self.sys_root, number);
        let mut names = Vec::new();
        let mut description = format!("{size_bytes} bytes");
        if let Some(dir) = &dir {
            let partition = sysfs::text(dir, "partition");
            let disk = match (&partition, dir.parent()) {
                (Some(_), Some(disk)) => disk,
                _ => dir,
            };
            names.extend(disk_names(disk));
            if let Some(partition) = partition {
                for name in &mut names {
                    name.push_str(&format!("-part{partition}"));
                }
            }
            names.extend(self.link_names(dir));
            if let Some(model) = sysfs::text(disk, "device/model") {
                description = format!("{model}, {description}");
            }
        }
        if names.is_empty() {
            names.push(format!("number:{number},size:{size_bytes}"));
        }
        BlockIdentity { names, description }
    }

    /// Links in `/dev/disk/by-id` that lead to the device.
    fn link_names(&self, dir: &Path) -> Vec<String> {
        let links = fs::read_dir(self.dev_root.join("disk/by-id"));
        let mut names: Vec<String> = links
            .into_iter()
            .flatten()
            .flatten()
            .filter(|link| {
                let target = fs::read_link(link.path());
                target.is_ok_and(|target| target.file_name() == dir.file_name())
            })
            .map(|link| format!("id:{}", link.file_name().to_string_lossy()))
            .collect();
        names.sort_unstable();
        names
    }
}

/// Names that a whole disk, or a virtual one, has in its directory.
fn disk_names(dir: &Path) -> Vec<String> {
    const SOURCES: [(&str, &str); 7] = [
        ("wwid", "wwid"),
        ("wwid", "device/wwid"),
        ("serial", "serial"),
        ("serial", "device/serial"),
        ("dm-uuid", "dm/uuid"),
        ("dm-name", "dm/name"),
        ("loop", "loop/backing_file"),
    ];
    SOURCES
        .iter()
        .filter_map(|(kind, file)| {
            let text = sysfs::text(dir, file)?;
            // Blanks pad some serial numbers, and don't pass through a shell well.
            let text = text.split_whitespace().collect::<Vec<_>>().join("_");
            Some(format!("{kind}:{text}"))
        })
        .collect()
}

//! Disks and how they are reached.

#![forbid(unsafe_code)]

use super::{Finding, Probed, System};

/// Names of devices that are in memory or stand for a file.
const VIRTUAL: [&str; 5] = ["loop", "ram", "zram", "nbd", "dm-"];

pub(super) fn io_uring(system: &System, probed: &Probed) -> Finding {
    const NAME: &str = "io_uring";
    let Err(why) = &probed.io_uring else {
        return Finding::good(NAME, "works");
    };
    let disabled = system.read("/proc/sys/kernel/io_uring_disabled");
    let advice = match disabled.as_deref() {
        Some("2") => "write 0 to /proc/sys/kernel/io_uring_disabled",
        Some("1") => {
            "run as a member of the group in io_uring_group, or write 0 to /proc/sys/kernel/io_uring_disabled"
        }
        _ => {
            "a seccomp profile refuses it, as container engines do: allow io_uring_setup, io_uring_enter, io_uring_register"
        }
    };
    Finding::disturbs(
        NAME,
        format!("refused ({why}): files are read one request at a time"),
        advice,
    )
}

/// Every disk: scheduler and write cache.
pub(super) fn devices(system: &System) -> Vec<Finding> {
    let names = system.list("/sys/block");
    let real = names
        .iter()
        .filter(|name| !VIRTUAL.iter().any(|kind| name.starts_with(kind)));
    real.flat_map(|name| [scheduler(system, name), write_cache(system, name)])
        .flatten()
        .collect()
}

fn scheduler(system: &System, name: &str) -> Option<Finding> {
    const NAME: &str = "I/O scheduler";
    let text = system.read(&format!("/sys/block/{name}/queue/scheduler"))?;
    let chosen = text.split(['[', ']']).nth(1).unwrap_or(&text).to_owned();
    let is_disk = system
        .read(&format!("/sys/block/{name}/queue/rotational"))
        .as_deref()
        == Some("1");
    let found = format!("{name}: {chosen}");
    Some(if chosen == "none" || is_disk {
        Finding::good(NAME, found)
    } else {
        Finding::note(
            NAME,
            found,
            "it orders and delays requests: write none to queue/scheduler for the device by itself",
        )
    })
}

fn write_cache(system: &System, name: &str) -> Option<Finding> {
    const NAME: &str = "write cache";
    let text = system.read(&format!("/sys/block/{name}/queue/write_cache"))?;
    let found = format!("{name}: {text}");
    Some(if text == "write through" {
        Finding::good(NAME, found)
    } else {
        Finding::note(
            NAME,
            found,
            "writes are fast until it is full: write more than it holds, or measure with sync=1 or fsync",
        )
    })
}

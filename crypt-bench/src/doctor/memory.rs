//! Memory: what may be locked, and what the kernel moves around.

#![forbid(unsafe_code)]

use super::{Finding, Probed, System};

/// What registered buffers of an ordinary matrix take.
const ENOUGH_LOCKED_BYTES: u64 = 256 << 20;

pub(super) fn locked(probed: &Probed) -> Finding {
    const NAME: &str = "locked memory";
    match probed.memlock_bytes {
        None => Finding::good(NAME, "no limit"),
        Some(bytes) if bytes >= ENOUGH_LOCKED_BYTES => {
            Finding::good(NAME, format!("{bytes} bytes"))
        }
        Some(bytes) => Finding::disturbs(
            NAME,
            format!("at most {bytes} bytes"),
            "buffers can't be registered with io_uring, and keys not kept from swap: ulimit -l unlimited, or LimitMEMLOCK=",
        ),
    }
}

pub(super) fn swap(system: &System) -> Finding {
    const NAME: &str = "swap";
    let Some(table) = system.read("/proc/swaps") else {
        return Finding::unknown(NAME, "/proc/swaps can't be read");
    };
    let used = |line: &str| line.split_whitespace().nth(3)?.parse::<u64>().ok();
    match table.lines().skip(1).filter_map(used).sum::<u64>() {
        0 => Finding::good(NAME, "none in use"),
        kib => Finding::disturbs(
            NAME,
            format!("{kib} KiB in use"),
            "the machine is short of memory: end what takes it, then swapoff -a",
        ),
    }
}

pub(super) fn balancing(system: &System) -> Finding {
    const NAME: &str = "NUMA balancing";
    let nodes = system.list("/sys/devices/system/node");
    let nodes = nodes.iter().filter(|name| {
        name.strip_prefix("node")
            .is_some_and(|n| n.parse::<u32>().is_ok())
    });
    let several = nodes.count() > 1;
    match system.read("/proc/sys/kernel/numa_balancing").as_deref() {
        Some("0") | None => Finding::good(NAME, "off"),
        Some(_) if !several => Finding::good(NAME, "on, with one node"),
        Some(_) => Finding::disturbs(
            NAME,
            "on, with several nodes",
            "memory moves between nodes while measuring: write 0 to /proc/sys/kernel/numa_balancing, or use numactl",
        ),
    }
}

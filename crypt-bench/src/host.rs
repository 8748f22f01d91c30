//! The machine and the program, as far as they bear on the numbers: read once, from procfs and sysfs.
//!
//! Whatever can't be read is left empty; nothing here fails a run. Also the counters that are read
//! at the two edges of a measurement: processor time and time stolen by the hypervisor.

#![forbid(unsafe_code)]

use std::fs;
use std::io::Read;
use std::path::Path;

use crypt_core::clock::Clock;
use sha2::{Digest, Sha256};

use crate::manifest::{Environment, Tool};
use crate::result::CpuTime;

/// CPU features that bear on ciphers and copies.
const CPU_FLAGS: [&str; 12] = [
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "avx",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "gfni",
    "sha_ni",
    "erms",
];

/// The environment of this process, without storage.
#[must_use]
pub fn environment() -> Environment {
    let cpuinfo = text("/proc/cpuinfo");
    let flags = field(&cpuinfo, "flags");
    let has = |flag: &str| flags.split_whitespace().any(|known| known == flag);
    let clock = Clock::monotonic();
    let memlock = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    Environment {
        host: hostname(),
        cpu_model: field(&cpuinfo, "model name").to_owned(),
        cpus: allowed_cpus().len() as u32,
        cpu_flags: CPU_FLAGS
            .iter()
            .filter(|flag| has(flag))
            .map(|&flag| flag.to_owned())
            .collect(),
        kernel: format!(
            "{} {}",
            text("/proc/sys/kernel/osrelease").trim(),
            text("/proc/sys/kernel/version").trim()
        ),
        governor: governor(),
        mitigations: mitigations(),
        memory_bytes: meminfo_bytes("MemTotal"),
        memlock_limit_bytes: memlock.current,
        virtual_machine: has("hypervisor"),
        clock: clock.source().to_owned(),
        tsc_ticks_per_ns: clock.ticks_per_ns(),
        storage: Vec::new(),
    }
}

/// What was typed, but for where the program lies.
#[must_use]
pub fn command_line() -> Vec<String> {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(env!("CARGO_PKG_NAME").to_owned())
        .chain(arguments)
        .collect()
}

/// This program.
///
/// # Errors
/// Where the running executable can't be read.
pub fn tool() -> std::io::Result<Tool> {
    let mut hasher = Sha256::new();
    let mut executable = fs::File::open("/proc/self/exe")?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = executable.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    Ok(Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git_revision: option_env!("CRYPT_BENCH_GIT_REVISION").map(str::to_owned),
        binary_sha256: hex(&hasher.finalize()),
        profile: profile.to_owned(),
    })
}

/// CPUs that this process may use, in order.
#[must_use]
pub fn allowed_cpus() -> Vec<u32> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .map(|cpu| cpu as u32)
            .collect(),
        Err(_) => vec![0],
    }
}

/// Memory of the machine, in bytes; `None` when unknown.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    Some(meminfo_bytes("MemTotal")).filter(|&bytes| bytes > 0)
}

/// Memory that can be had without swapping, in bytes; `None` when unknown.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    Some(meminfo_bytes("MemAvailable")).filter(|&bytes| bytes > 0)
}

/// Name of the host, safe in a file name.
#[must_use]
pub fn hostname() -> String {
    let name = text("/proc/sys/kernel/hostname");
    let safe: String = name
        .trim()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '.' {
                c
            } else {
                '_'
            }
        })
        .collect();
    let safe = safe.trim_start_matches('.').to_owned();
    if safe.is_empty() {
        "host".to_owned()
    } else {
        safe
    }
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Counters of the process and the machine at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    cpu: CpuTime,
    stolen_ticks: u64,
    idle_ticks: u64,
    all_ticks: u64,
}

impl Counters {
    /// The counters now.
    #[must_use]
    pub fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let (user_s, system_s) = process_ticks(&text("/proc/self/stat"));
        let (stolen_ticks, idle_ticks, all_ticks) = machine_ticks(&text("/proc/stat"));
        Self {
            cpu: CpuTime {
                total_s: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9,
                user_s,
                system_s,
            },
            stolen_ticks,
            idle_ticks,
            all_ticks,
        }
    }

    /// Processor time since an earlier moment.
    #[must_use]
    pub fn cpu_since(&self, earlier: &Self) -> CpuTime {
        CpuTime {
            total_s: self.cpu.total_s - earlier.cpu.total_s,
            user_s: self.cpu.user_s - earlier.cpu.user_s,
            system_s: self.cpu.system_s - earlier.cpu.system_s,
        }
    }

    /// Share of all processor time that the hypervisor took since an earlier moment, in percent.
    #[must_use]
    pub fn steal_percent_since(&self, earlier: &Self) -> f64 {
        self.percent_since(earlier, |counters| counters.stolen_ticks)
    }

    /// Share of all processor time that was neither idle nor spent waiting for I/O since an earlier moment, in percent.
    #[must_use]
    pub fn busy_percent_since(&self, earlier: &Self) -> f64 {
        self.percent_since(earlier, |counters| {
            counters.all_ticks.saturating_sub(counters.idle_ticks)
        })
    }

    fn percent_since(&self, earlier: &Self, of: fn(&Self) -> u64) -> f64 {
        let all = self.all_ticks.saturating_sub(earlier.all_ticks);
        let part = of(self).saturating_sub(of(earlier));
        if all == 0 {
            0.0
        } else {
            100.0 * part as f64 / all as f64
        }
    }
}

/// Processor time of a thread, counted by the kernel in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadUse {
    /// In user mode, in seconds.
    pub user_s: f64,
    /// In the kernel, in seconds.
    pub system_s: f64,
}

impl ThreadUse {
    /// What the calling thread has used.
    #[must_use]
    pub fn now() -> Self {
        let (user_s, system_s) = process_ticks(&text("/proc/thread-self/stat"));
        Self { user_s, system_s }
    }

    /// What it has used since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
        }
    }
}

/// User and system time of `/proc/self/stat`, in seconds (proc(5): fields 14 and 15, in ticks of 10 ms).
fn process_ticks(stat: &str) -> (f64, f64) {
    // The command name, field 2, may hold spaces and parentheses; the last one ends it.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let seconds = |index: usize| {
        let ticks = rest.split_whitespace().nth(index);
        ticks
            .and_then(|ticks| ticks.parse::<u64>().ok())
            .unwrap_or(0) as f64
            / 100.0
    };
    (seconds(11), seconds(12))
}

/// Stolen, idle and total ticks of all CPUs in `/proc/stat`.
fn machine_ticks(stat: &str) -> (u64, u64, u64) {
    let line = stat.lines().next().unwrap_or("");
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map(|ticks| ticks.parse().unwrap_or(0))
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is part of user time.
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    (at(7), at(3) + at(4), ticks.iter().take(8).sum())
}

fn governor() -> Option<String> {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let governor = fs::read_to_string(path).ok()?;
    Some(governor.trim().to_owned())
}

fn mitigations() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return Vec::new();
    };
    let mut lines: Vec<String> = entries
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            format!("{name}: {}", text(entry.path()).trim())
        })
        .collect();
    lines.sort();
    lines
}

fn meminfo_bytes(name: &str) -> u64 {
    let meminfo = text("/proc/meminfo");
    let value = field(&meminfo, name).trim_end_matches("kB").trim();
    value.parse::<u64>().unwrap_or(0).saturating_mul(1024)
}

/// Value of the first `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map_or("", |(_, value)| value.trim())
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let environment = environment();
        assert!(!environment.host.is_empty() && !environment.kernel.trim().is_empty());
        assert!(environment.cpus >= 1 && environment.memory_bytes > 0);
        assert_eq!(tool().unwrap().binary_sha256.len(), 64);
    }

    #[test]
    fn process_times_survive_a_strange_command_name() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(process_ticks(stat), (2.5, 0.5));
        assert_eq!(process_ticks(""), (0.0, 0.0));
    }

    #[test]
    fn steal_is_a_share_of_all_time() {
        let (before, after) = (
            "cpu 10 0 10 70 0 0 0 10 0 0",
            "cpu 20 0 20 140 0 0 0 20 9 9",
        );
        let counters = |stat| {
            let (stolen_ticks, idle_ticks, all_ticks) = machine_ticks(stat);
            Counters {
                stolen_ticks,
                idle_ticks,
                all_ticks,
                ..Counters::default()
            }
        };
        let percent = counters(after).steal_percent_since(&counters(before));
        assert_eq!(percent, 10.0);
        let busy = counters(after).busy_percent_since(&counters(before));
        assert_eq!(busy, 30.0);
        assert_eq!(machine_ticks(""), (0, 0, 0));
    }
}

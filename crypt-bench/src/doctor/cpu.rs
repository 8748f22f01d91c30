//! Processors: their clock, who else uses them, and what they can.

#![forbid(unsafe_code)]

use super::{Finding, Probed, System};

/// Where the kernel tells about processors.
const CPUS: &str = "/sys/devices/system/cpu";

/// Share of processor time that disturbs, in percent.
const MUCH_STEAL: f64 = 0.5;
const MUCH_LOAD: f64 = 10.0;

pub(super) fn governor(system: &System) -> Finding {
    const NAME: &str = "frequency governor";
    let of_cpu = |name: &String| system.read(&format!("{CPUS}/{name}/cpufreq/scaling_governor"));
    let mut governors: Vec<String> = cpus(system).iter().filter_map(of_cpu).collect();
    governors.sort();
    governors.dedup();
    match governors.as_slice() {
        [] => Finding::unknown(
            NAME,
            "the kernel does not control the frequency: a virtual machine, or a fixed clock",
        ),
        [only] if only == "performance" => Finding::good(NAME, "performance"),
        some => Finding::disturbs(
            NAME,
            some.join(", "),
            "cpupower frequency-set -g performance, or write performance to cpu*/cpufreq/scaling_governor",
        ),
    }
}

pub(super) fn turbo(system: &System) -> Finding {
    const NAME: &str = "turbo";
    const ADVICE: &str = "the clock depends on load and heat: write 1 to intel_pstate/no_turbo or 0 to cpufreq/boost \
                          for steady figures";
    let no_turbo = system.read(&format!("{CPUS}/intel_pstate/no_turbo"));
    let boost = system.read(&format!("{CPUS}/cpufreq/boost"));
    match (no_turbo.as_deref(), boost.as_deref()) {
        (Some("1"), _) | (None, Some("0")) => Finding::good(NAME, "off"),
        (Some(_), _) | (None, Some(_)) => Finding::disturbs(NAME, "on", ADVICE),
        (None, None) => Finding::unknown(NAME, "the kernel does not say"),
    }
}

pub(super) fn threads(system: &System) -> Finding {
    const NAME: &str = "hardware threads";
    match system.read(&format!("{CPUS}/smt/active")).as_deref() {
        Some("0") => Finding::good(NAME, "one for each core, as far as it is seen here"),
        Some(_) => Finding::disturbs(
            NAME,
            "cores are shared by two threads",
            "pin jobs to one thread of each core with --issuers, or write off to smt/control",
        ),
        None => Finding::unknown(NAME, "the kernel does not say"),
    }
}

pub(super) fn idle(system: &System) -> Finding {
    const NAME: &str = "idle states";
    match system
        .read(&format!("{CPUS}/cpuidle/current_driver"))
        .as_deref()
    {
        None | Some("none") => Finding::unknown(
            NAME,
            "the kernel does not control them: a virtual machine, or polling",
        ),
        Some(driver) => Finding::note(
            NAME,
            format!("driver {driver}"),
            "waking a worker costs more the deeper its CPU sleeps; compare hand-offs only with the same limit \
             (cpupower idle-set)",
        ),
    }
}

pub(super) fn thermal(system: &System) -> Finding {
    const NAME: &str = "thermal throttling";
    let count = |name: &String| -> Option<u64> {
        system
            .read(&format!(
                "{CPUS}/{name}/thermal_throttle/core_throttle_count"
            ))?
            .parse()
            .ok()
    };
    let counts: Vec<u64> = cpus(system).iter().filter_map(count).collect();
    match counts.iter().sum() {
        _ if counts.is_empty() => Finding::unknown(NAME, "no counters"),
        0 => Finding::good(NAME, "never since the machine started"),
        times => Finding::disturbs(
            NAME,
            format!("{times} times since the machine started"),
            "cool the machine better, or lower its clock until that no longer happens",
        ),
    }
}

pub(super) fn mitigations(system: &System) -> Finding {
    const NAME: &str = "mitigations";
    let folder = format!("{CPUS}/vulnerabilities");
    let state = |name: &String| Some((name.clone(), system.read(&format!("{folder}/{name}"))?));
    let all: Vec<(String, String)> = system.list(&folder).iter().filter_map(state).collect();
    let active = all
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation"));
    let names: Vec<&str> = active.map(|(name, _)| name.as_str()).collect();
    if all.is_empty() {
        Finding::unknown(NAME, "the kernel does not say")
    } else if names.is_empty() {
        Finding::good(NAME, "none is active")
    } else {
        Finding::note(
            NAME,
            names.join(", "),
            "system calls and switches cost more; compare only with figures under the same ones",
        )
    }
}

pub(super) fn hypervisor(system: &System) -> Finding {
    const NAME: &str = "hypervisor";
    let Some(info) = system.read("/proc/cpuinfo") else {
        return Finding::unknown(NAME, "/proc/cpuinfo can't be read");
    };
    let mut flags = info.lines().filter(|line| line.starts_with("flags"));
    if flags.any(|line| line.split_whitespace().any(|flag| flag == "hypervisor")) {
        Finding::note(
            NAME,
            "this is a virtual machine",
            "neighbours share its processors and disks, unseen; repeat more, and compare in turns",
        )
    } else {
        Finding::good(NAME, "none")
    }
}

pub(super) fn steal(probed: &Probed) -> Finding {
    let found = format!(
        "{:.1} % of the processor time was taken by the host",
        probed.steal_percent
    );
    if probed.steal_percent > MUCH_STEAL {
        Finding::disturbs(
            "steal time",
            found,
            "measure at another time, or on dedicated processors",
        )
    } else {
        Finding::good("steal time", found)
    }
}

pub(super) fn load(probed: &Probed) -> Finding {
    let found = format!(
        "{:.0} % of all processors were in use before anything was measured",
        probed.busy_percent
    );
    if probed.busy_percent > MUCH_LOAD {
        Finding::disturbs(
            "other load",
            found,
            "stop what else is running; top shows it",
        )
    } else {
        Finding::good("other load", found)
    }
}

pub(super) fn quota(system: &System) -> Finding {
    const NAME: &str = "CPU quota";
    let own = system.read("/proc/self/cgroup").unwrap_or_default();
    let unified = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap_or("/");
    // A quota of any group above counts too.
    let mut folders = vec![String::new()];
    for name in unified.split('/').filter(|name| !name.is_empty()) {
        let above = folders.last().cloned().unwrap_or_default();
        folders.push(format!("{above}/{name}"));
    }
    let quotas = folders
        .iter()
        .filter_map(|folder| system.read(&format!("/sys/fs/cgroup{folder}/cpu.max")));
    match quotas.into_iter().find(|quota| !quota.starts_with("max")) {
        Some(quota) => Finding::disturbs(
            NAME,
            format!("{} µs (cgroup)", quota.replace(' ', " of ")),
            "threads are stopped when it is used up: lift the limit (docker --cpus, Kubernetes limits), use a cpuset",
        ),
        None => Finding::good(NAME, "none is seen"),
    }
}

pub(super) fn allowed(system: &System, probed: &Probed) -> Finding {
    const NAME: &str = "processors";
    let online = cpus(system).len();
    let cpus = probed.cpus;
    if cpus < 2 {
        Finding::disturbs(
            NAME,
            "one",
            "workers and jobs share it, and nothing is left for the rest of the system",
        )
    } else if cpus < online {
        Finding::note(
            NAME,
            format!("{cpus} of {online} may be used"),
            "others may keep the rest busy, and their caches",
        )
    } else {
        Finding::good(NAME, cpus.to_string())
    }
}

pub(super) fn backend(probed: &Probed) -> Finding {
    const NAME: &str = "cipher backend";
    match &probed.backend {
        (name, None) => Finding::good(NAME, name.clone()),
        (name, Some(lacking)) if ["portable", "batched"].contains(&name.as_str()) => {
            Finding::disturbs(
                NAME,
                format!("{name}: the CPU has no {lacking}"),
                "ciphers run without instructions of their own; in a virtual machine pass the host's CPU model through",
            )
        }
        (name, Some(lacking)) => Finding::note(
            NAME,
            format!("{name}: the CPU has no {lacking}"),
            "newer processors run AES several times faster: compare only with the same backend",
        ),
    }
}

pub(super) fn clock(probed: &Probed) -> Finding {
    if probed.clock == "tsc" {
        Finding::good("time stamps", "TSC")
    } else {
        Finding::disturbs(
            "time stamps",
            probed.clock.clone(),
            "every request pays tens of nanoseconds for its time stamps; boot with tsc=reliable where it is",
        )
    }
}

/// Processors by their names in sysfs.
fn cpus(system: &System) -> Vec<String> {
    let names = system.list(CPUS).into_iter();
    let is_cpu = |name: &String| {
        let number = name.strip_prefix("cpu");
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    names.filter(is_cpu).collect()
}

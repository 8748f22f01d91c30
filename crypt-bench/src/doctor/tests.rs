//! Machines made up.

#![forbid(unsafe_code)]

use super::*;

/// A machine on which nothing disturbs.
fn quiet() -> (BTreeMap<String, String>, Probed) {
    let files = [
        (
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "performance\n",
        ),
        (
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "performance\n",
        ),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("/sys/devices/system/cpu/smt/active", "0\n"),
        ("/sys/devices/system/cpu/cpuidle/current_driver", "none\n"),
        (
            "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
            "0\n",
        ),
        (
            "/sys/devices/system/cpu/vulnerabilities/meltdown",
            "Not affected\n",
        ),
        ("/proc/cpuinfo", "flags\t\t: fpu aes vaes\n"),
        ("/proc/self/cgroup", "0::/a/b\n"),
        ("/sys/fs/cgroup/a/cpu.max", "max 100000\n"),
        (
            "/proc/swaps",
            "Filename Type Size Used Priority\n/dev/sda2 partition 1000 0 -2\n",
        ),
        ("/proc/sys/kernel/numa_balancing", "1\n"),
        ("/sys/devices/system/node/node0/x", ""),
        ("/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n"),
        ("/sys/block/nvme0n1/queue/write_cache", "write through\n"),
        ("/sys/block/loop0/queue/scheduler", "none [mq-deadline]\n"),
    ];
    let files = files
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
    let probed = Probed {
        backend: ("vaes512".to_owned(), None),
        io_uring: Ok(()),
        clock: "tsc".to_owned(),
        steal_percent: 0.0,
        busy_percent: 1.0,
        cpus: 2,
        memlock_bytes: None,
        optimised: true,
    };
    (files, probed)
}

fn worst(findings: &[Finding]) -> State {
    findings.iter().map(|finding| finding.state).max().unwrap()
}

#[test]
fn a_quiet_machine_has_nothing_to_do() {
    let (files, probed) = quiet();
    let findings = examine(&System::MadeUp(files), &probed);
    assert!(worst(&findings) <= State::Unknown, "{findings:?}");
    assert!(findings.iter().all(|finding| finding.advice.is_none()));
    assert_eq!(
        findings
            .iter()
            .filter(|finding| finding.check == "I/O scheduler")
            .count(),
        1
    );
    assert!(text::text(&findings).ends_with("nothing is seen to disturb measurements\n"));
}

#[test]
fn everything_that_disturbs_is_found_by_itself_with_advice() {
    for (path, content, check) in [
        (
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "powersave",
            "frequency governor",
        ),
        (
            "/sys/devices/system/cpu/intel_pstate/no_turbo",
            "0",
            "turbo",
        ),
        (
            "/sys/devices/system/cpu/smt/active",
            "1",
            "hardware threads",
        ),
        (
            "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
            "3",
            "thermal throttling",
        ),
        ("/sys/fs/cgroup/a/cpu.max", "150000 100000", "CPU quota"),
        ("/proc/swaps", "h\n/dev/sda2 partition 1000 7 -2", "swap"),
        ("/sys/devices/system/node/node1/x", "", "NUMA balancing"),
    ] {
        let (mut files, probed) = quiet();
        files.insert(path.to_owned(), content.to_owned());
        let findings = examine(&System::MadeUp(files), &probed);
        let disturbing: Vec<&Finding> = findings
            .iter()
            .filter(|finding| finding.state == State::Disturbs)
            .collect();
        assert_eq!(disturbing.len(), 1, "{check}: {disturbing:?}");
        assert_eq!(disturbing[0].check, check);
        assert!(disturbing[0].advice.is_some());
    }
}

#[test]
fn what_was_tried_out_is_found_too() {
    type Change = fn(&mut Probed);
    let changes: [(Change, &str); 8] = [
        (
            |probed| probed.backend = ("batched".to_owned(), Some("aes".to_owned())),
            "cipher backend",
        ),
        (
            |probed| probed.io_uring = Err("EPERM".to_owned()),
            "io_uring",
        ),
        (
            |probed| probed.clock = "clock_monotonic".to_owned(),
            "time stamps",
        ),
        (|probed| probed.steal_percent = 3.0, "steal time"),
        (|probed| probed.busy_percent = 60.0, "other load"),
        (|probed| probed.cpus = 1, "processors"),
        (
            |probed| probed.memlock_bytes = Some(8 << 20),
            "locked memory",
        ),
        (|probed| probed.optimised = false, "build"),
    ];
    for (change, check) in changes {
        let (files, mut probed) = quiet();
        change(&mut probed);
        let findings = examine(&System::MadeUp(files), &probed);
        let found: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.state == State::Disturbs)
            .map(|finding| finding.check)
            .collect();
        assert_eq!(found, [check]);
    }
}

#[test]
fn advice_on_io_uring_depends_on_who_refuses_it() {
    for (disabled, advice) in [
        (Some("2"), "write 0"),
        (Some("1"), "io_uring_group"),
        (Some("0"), "seccomp"),
        (None, "seccomp"),
    ] {
        let (mut files, mut probed) = quiet();
        probed.io_uring = Err("EPERM".to_owned());
        if let Some(disabled) = disabled {
            files.insert(
                "/proc/sys/kernel/io_uring_disabled".to_owned(),
                disabled.to_owned(),
            );
        }
        let findings = examine(&System::MadeUp(files), &probed);
        let found = findings
            .iter()
            .find(|finding| finding.check == "io_uring")
            .unwrap();
        assert!(
            found.advice.unwrap().contains(advice),
            "{disabled:?}: {found:?}"
        );
    }
}

#[test]
fn what_is_the_same_at_all_times_is_a_note() {
    for (path, content, check) in [
        (
            "/sys/devices/system/cpu/vulnerabilities/meltdown",
            "Mitigation: PTI",
            "mitigations",
        ),
        (
            "/sys/devices/system/cpu/cpuidle/current_driver",
            "intel_idle",
            "idle states",
        ),
        ("/proc/cpuinfo", "flags\t\t: aes hypervisor", "hypervisor"),
        (
            "/sys/block/nvme0n1/queue/scheduler",
            "none [bfq]",
            "I/O scheduler",
        ),
        (
            "/sys/block/nvme0n1/queue/write_cache",
            "write back",
            "write cache",
        ),
    ] {
        let (mut files, probed) = quiet();
        files.insert(path.to_owned(), content.to_owned());
        let findings = examine(&System::MadeUp(files), &probed);
        let notes: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.state == State::Note)
            .map(|finding| finding.check)
            .collect();
        assert_eq!(
            (notes.as_slice(), worst(&findings)),
            (&[check][..], worst(&findings))
        );
        assert!(worst(&findings) < State::Disturbs);
    }
}

#[test]
fn a_machine_that_says_nothing_is_no_reason_to_panic() {
    let (_, probed) = quiet();
    let findings = examine(&System::MadeUp(BTreeMap::new()), &probed);
    assert!(
        findings
            .iter()
            .filter(|finding| finding.state == State::Unknown)
            .count()
            >= 6
    );
    let here = examine(&System::Here, &probed);
    assert!(here.len() >= 18);
}

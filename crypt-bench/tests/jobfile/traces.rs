//! Traces as `crypt-bench run` plays them, among them some that fio recorded.

#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use crate::runner::{jobs, place, run, stderr, succeed};

const TRACE: &str = "fio version 3 iolog\n0 disk add\n0 disk open\n1000 disk read 0 4096\n21000 disk write 65536 8192\n\
                     21000 disk sync 0 0\n41000 disk read 131072 16384\n41000 disk close\n";

#[test]
fn a_trace_is_played_in_its_time_and_its_lateness_is_told() {
    let place = place();
    fs::write(place.path().join("t"), TRACE).unwrap();
    let text = "[r]\nread_iolog=t\nioengine=io_uring\niodepth=4\n";
    let refused = run(&place, text, "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("--destroy-data-on"),
        "{}",
        stderr(&refused)
    );
    let readonly = run(&place, text, "--readonly");
    assert!(
        stderr(&readonly).contains("--readonly forbids"),
        "{}",
        stderr(&readonly)
    );
    let played = &jobs(&place, text, "--destroy-data-on disk")[0];
    assert_eq!(
        (&played["read"]["total_ios"], &played["read"]["io_bytes"]),
        (&2.into(), &20480.into())
    );
    assert_eq!(
        (&played["write"]["io_bytes"], &played["sync"]["total_ios"]),
        (&8192.into(), &1.into())
    );
    assert!(played["job_runtime"].as_u64().unwrap() >= 40);
    let lateness = &played["crypt_bench"]["lateness_ns"];
    assert_eq!(lateness["N"], 3);
    assert!(lateness["percentile"]["99.000000"].as_u64() <= lateness["max"].as_u64());
    assert_eq!(played["read"]["response_ns"]["N"], 2);
    let data = fs::read(place.path().join("disk")).unwrap();
    assert!(data[..65536].iter().all(|byte| *byte == 1));
    assert!(data[65536..73728].iter().any(|byte| *byte != 1));
    let slow = &jobs(
        &place,
        &format!("{text}replay_time_scale=50\nreplay_skip=write\n"),
        "",
    )[0];
    assert!(slow["job_runtime"].as_u64().unwrap() >= 80);
    assert_eq!(slow["write"]["total_ios"], 0);
    let report = succeed(&place, &format!("{text}replay_skip=write,sync\n"), "");
    assert!(
        report.contains("lateness, from the intended to the actual start"),
        "{report}"
    );
}

#[test]
fn without_pauses_a_trace_is_played_at_once() {
    let place = place();
    let lines: String = (0..5000_u64)
        .map(|n| format!("{} x read {} 4096\n", n * 1_000_000, n % 256 * 4096))
        .collect();
    let trace = format!("fio version 3 iolog\n0 x add\n0 x open\n{lines}");
    fs::write(place.path().join("t"), trace).unwrap();
    let text = "[r]\nread_iolog=t\nreplay_redirect=disk\nreplay_no_stall=1\nioengine=io_uring\niodepth=16\n";
    let played = &jobs(&place, text, "")[0];
    assert_eq!(played["read"]["total_ios"], 5000);
    assert!(played["crypt_bench"]["lateness_ns"].is_null());
}

#[test]
fn a_trace_that_does_not_fit_is_refused_before_anything_is_opened() {
    for (trace, options, reason) in [
        (TRACE, "replay_redirect=none", "none"),
        (
            "fio version 3 iolog\n0 disk add\n0 disk open\n5 disk read 2097152 512\n",
            "",
            "ends at byte 2097664",
        ),
        (
            "fio version 3 iolog\n0 disk add\n5 disk read 0 512\n",
            "",
            "a.fio:2: read_iolog: t: line 3: disk is not open",
        ),
    ] {
        let place = place();
        fs::write(place.path().join("t"), trace).unwrap();
        let output = run(
            &place,
            &format!("[r]\nread_iolog=t\n{options}\n"),
            "--destroy-data-on disk",
        );
        assert_eq!(output.status.code(), Some(2), "{options}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn what_fio_recorded_is_played() {
    let place = place();
    let recorded = Command::new("fio")
        .args([
            "--name=w",
            "--filename=disk",
            "--rw=randrw",
            "--bs=4k",
            "--size=1m",
            "--fsync=8",
        ])
        .args(["--ioengine=psync", "--write_iolog=t"])
        .current_dir(place.path())
        .output();
    let Ok(recorded) = recorded else {
        println!("skipped: fio is not installed");
        return;
    };
    assert!(recorded.status.success());
    let text = "[r]\nread_iolog=t\n";
    let played = &jobs(&place, text, "--destroy-data-on disk")[0];
    let ios = |direction: &str| played[direction]["total_ios"].as_u64().unwrap();
    assert_eq!(ios("read") + ios("write"), 256);
    assert!(ios("sync") > 0);
}

#[test]
fn files_of_a_trace_are_kept_apart() {
    let place = place();
    let path = |name: &str| place.path().join(name);
    fs::write(path("other"), vec![2; 3 << 20]).unwrap();
    let trace = "fio version 2 iolog\ndisk add\nother add\ndisk open\nother open\ndisk write 8192 4096\n\
                 other read 2097152 8192\nother write 8192 8192\nother sync 0 0\ndisk close\nother read 0 512\nother close\n";
    fs::write(path("t"), trace).unwrap();
    let text = "[r]\nread_iolog=t\nioengine=io_uring\niodepth=2\nrefill_buffers\n";
    let refused = run(&place, text, "--destroy-data-on disk");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("other exists, and a cell that writes"),
        "{}",
        stderr(&refused)
    );
    let played = &jobs(
        &place,
        text,
        "--destroy-data-on disk --destroy-data-on other",
    )[0];
    assert_eq!(played["read"]["io_bytes"], 8704);
    assert_eq!(played["write"]["io_bytes"], 4096 + 8192);
    for (name, old, written) in [("disk", 1, 8192..12_288), ("other", 2, 8192..16_384)] {
        let data = fs::read(path(name)).unwrap();
        let is_old = |part: &[u8]| part.iter().all(|byte| *byte == old);
        assert!(
            is_old(&data[..written.start]) && is_old(&data[written.end..]),
            "{name}"
        );
        assert!(data[written].iter().any(|byte| *byte != old), "{name}");
    }
    fs::remove_file(path("other")).unwrap();
    let missing = run(&place, text, "--destroy-data-on disk");
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        stderr(&missing).contains("other: no such file; name an existing one"),
        "{}",
        stderr(&missing)
    );
    assert!(!path("other").exists());
}

/// A record of blktrace: the header that the kernel writes.
fn record(sequence: u32, time_ns: u64, sector: u64, bytes: u32, action: u32) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend((0x6561_7400_u32 | 7).to_ne_bytes());
    record.extend(sequence.to_ne_bytes());
    record.extend(time_ns.to_ne_bytes());
    record.extend(sector.to_ne_bytes());
    // Process 697, device 8,0, CPU 0, no error, nothing behind the header.
    for word in [bytes, action, 697, 8 << 20, 0] {
        record.extend(word.to_ne_bytes());
    }
    record.extend([0; 4]);
    record
}

/// Steps of requests.
const QUEUED: u32 = 1 | (1 << 20);
const ISSUED: u32 = 7 | (1 << 22);
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;

#[test]
fn what_blkparse_prints_is_played() {
    let place = place();
    let records = [
        record(1, 0, 16, 4096, QUEUED | WRITE),
        record(2, 90_000, 16, 4096, ISSUED | WRITE),
        record(3, 100_000, 8, 8192, QUEUED | READ),
        record(4, 200_000, 0, 0, QUEUED | WRITE | FLUSH),
        record(5, 300_000, 8, 4096, ISSUED | READ),
        record(6, 400_000, 16, 4096, ISSUED | READ),
    ];
    fs::write(place.path().join("t.blktrace.0"), records.concat()).unwrap();
    let parsed = Command::new("blkparse")
        .args(["-i", "t"])
        .current_dir(place.path())
        .output();
    let Ok(parsed) = parsed else {
        println!("skipped: blkparse is not installed");
        return;
    };
    assert!(parsed.status.success());
    fs::write(place.path().join("t"), &parsed.stdout).unwrap();
    let text = "[r]\nread_iolog=t\nioengine=psync\n";
    let absent = run(&place, text, "");
    assert!(
        stderr(&absent).contains("/dev/block/8:0"),
        "{}",
        stderr(&absent)
    );
    let text = &format!("{text}replay_redirect=disk\n");
    let played = &jobs(&place, text, "--destroy-data-on disk")[0];
    let figures = |job: &serde_json::Value| {
        [
            &job["read"]["total_ios"],
            &job["read"]["io_bytes"],
            &job["write"]["io_bytes"],
        ]
        .map(|value| value.as_u64().unwrap())
    };
    assert_eq!(figures(played), [1, 8192, 4096]);
    assert_eq!(played["sync"]["total_ios"], 1);
    // Without queued requests, those that were issued.
    let issued = Command::new("blkparse")
        .args(["-i", "t", "-a", "issue"])
        .current_dir(place.path())
        .output()
        .unwrap();
    fs::write(place.path().join("t"), &issued.stdout).unwrap();
    assert_eq!(
        figures(&jobs(&place, text, "--destroy-data-on disk")[0]),
        [2, 8192, 4096]
    );
    // The binary form is told what to do.
    let binary = text.replace("read_iolog=t", "read_iolog=t.blktrace.0");
    let refused = run(&place, &binary, "--destroy-data-on disk");
    assert!(
        stderr(&refused).contains("blkparse -i TRACE"),
        "{}",
        stderr(&refused)
    );
}

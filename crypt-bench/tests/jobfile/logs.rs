//! Log files of `crypt-bench run`: names, columns and sums, and fio's beside them.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::runner::{jobs, place, run, stderr};

/// Time, value, direction, bytes, priority.
type Line = [u64; 5];

fn lines(folder: &Path, name: &str) -> Vec<Line> {
    let text = fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let line = |line: &str| -> Line {
        let columns: Vec<u64> = line.split(", ").map(|c| c.parse().unwrap()).collect();
        columns.try_into().unwrap()
    };
    text.lines().map(line).collect()
}

/// The logs of a folder with their number of lines.
fn found(folder: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".log") {
            let lines = lines(folder, &name).len();
            found.insert(name, lines);
        }
    }
    found
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

const EACH: &str = "[global]\nioengine=io_uring\niodepth=4\nfilename=disk\nsize=256k\nwrite_bw_log=w\nwrite_iops_log=w\n\
                    write_lat_log=w\n[a]\nrw=randrw\nfsync=4\nbssplit=4k/50:8k/50\n[b]\nrw=randread\nnumjobs=2\n";

#[test]
fn every_request_has_a_line_in_each_log() {
    let place = place();
    let jobs = jobs(&place, EACH, "--destroy-data-on disk");
    let folder = place.path();
    assert_eq!(found(folder).len(), 15);
    for (index, job) in jobs.iter().enumerate() {
        let log = |kind: &str| lines(folder, &format!("w_{kind}.{}.log", index + 1));
        for (direction, name) in [(0, "read"), (1, "write")] {
            let own = |lines: &[Line]| -> Vec<Line> {
                let own = lines.iter().filter(|line| line[2] == direction);
                own.copied().collect()
            };
            let stats = &job[name];
            let iops = own(&log("iops"));
            assert_eq!(iops.len() as u64, number(&stats["total_ios"]), "{name}");
            assert!(iops.iter().all(|line| line[1] == 1 && line[4] == 0));
            let bytes: u64 = iops.iter().map(|line| line[3]).sum();
            assert_eq!(bytes, number(&stats["io_bytes"]));
            for kind in ["lat", "slat", "clat"] {
                let values: Vec<u64> = own(&log(kind)).iter().map(|line| line[1]).collect();
                let known = &stats[format!("{kind}_ns")];
                if values.is_empty() {
                    continue;
                }
                let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
                assert!((mean - known["mean"].as_f64().unwrap()).abs() < 1e-3 * mean.max(1.0));
                assert_eq!(
                    *values.iter().max().unwrap(),
                    number(&known["max"]),
                    "{kind}"
                );
            }
            let bandwidths = own(&log("bw"));
            let clats = own(&log("clat"));
            for (bandwidth, clat) in bandwidths.iter().zip(&clats) {
                assert_eq!(bandwidth[1], bandwidth[3] * 1_000_000 / clat[1].max(1));
            }
            assert_eq!(bandwidths.len(), clats.len());
        }
        let times: Vec<u64> = log("lat").iter().map(|line| line[0]).collect();
        let last = times.iter().max().unwrap();
        assert!(*last <= number(&job["read"]["runtime"]).max(number(&job["write"]["runtime"])));
    }
}

#[test]
fn windows_hold_all_requests() {
    let place = place();
    let text = "[a]\nioengine=null\nrate_iops=400,100\nrw=randrw\nsize=4m\nnumber_ios=200\nlog_avg_msec=50\n\
                write_bw_log=w\nwrite_iops_log=w\nwrite_lat_log=w\n";
    let job = &jobs(&place, text, "")[0];
    let iops = lines(place.path(), "w_iops.1.log");
    assert!(iops.len() > 4, "{iops:?}");
    let last_ms = iops.iter().map(|line| line[0]).max().unwrap();
    for (direction, name) in [(0, "read"), (1, "write")] {
        let own: Vec<&Line> = iops.iter().filter(|line| line[2] == direction).collect();
        let ios: f64 = own
            .iter()
            .map(|line| {
                assert_eq!((line[3], line[4]), (0, 0));
                // A short rest is part of the window before it.
                let rest = line[0] % 50;
                let length_ms = if rest < 25 { 50 + rest } else { rest };
                assert!(rest == 0 || line[0] == last_ms, "{line:?}");
                line[1] as f64 * length_ms as f64 / 1000.0
            })
            .sum();
        // Each value is rounded down, and the time of the last one to a millisecond.
        let total = number(&job[name]["total_ios"]) as f64;
        let off = 0.05 * own.len() as f64 + 0.1 * total;
        assert!((ios - total).abs() <= off, "{name}: {ios} {total}");
    }
    let same = |kind: &str| -> Vec<[u64; 2]> {
        let lines = lines(place.path(), &format!("w_{kind}.1.log"));
        lines.iter().map(|line| [line[0], line[2]]).collect()
    };
    for kind in ["bw", "lat", "slat", "clat"] {
        assert_eq!(same(kind), same("iops"), "{kind}");
    }
}

#[test]
fn what_finds_no_room_is_a_doubt() {
    let text = "[a]\nioengine=null\nsize=8m\nbs=4k\nlog_entries=1024\nwrite_iops_log=w\n";
    let place = place();
    let job = &jobs(&place, text, "")[0];
    assert_eq!(lines(place.path(), "w_iops.1.log").len(), 1024);
    let doubts = job["crypt_bench"]["doubts"].as_array().unwrap();
    let full = doubts
        .iter()
        .find(|doubt| doubt["kind"] == "log_full")
        .unwrap();
    assert_eq!(
        (&full["requests"], &full["invalidates"]),
        (&1024.into(), &false.into())
    );
    let whole = text.replace("log_entries=1024\n", "");
    let job = &jobs(&place, &whole, "")[0];
    assert_eq!(lines(place.path(), "w_iops.1.log").len(), 2048);
    assert!(
        !job["crypt_bench"]["doubts"]
            .to_string()
            .contains("log_full")
    );
}

#[test]
fn logs_that_cannot_be_written_are_found_before_the_run() {
    for (options, arguments, reason) in [
        (
            "write_bw_log=no/w",
            "",
            "no/w_bw.1.log can't be written: there is no folder no; make it first",
        ),
        (
            "write_bw_log=w\nfilename=w_bw.1.log",
            "",
            "that is w_bw.1.log, which the jobs need",
        ),
        (
            "write_bw_log=w",
            "--output w_bw.1.log",
            "that is w_bw.1.log, which the jobs need",
        ),
        (
            "write_lat_log=t",
            "",
            "t_lat.1.log can't be written: it exists and is not a file",
        ),
    ] {
        let place = place();
        fs::create_dir(place.path().join("t_lat.1.log")).unwrap();
        let text = format!("[n]\nrw=write\nsize=64k\n{options}\n");
        let output = run(&place, &text, &format!("--create {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{options}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        let names = fs::read_dir(place.path()).unwrap().count();
        assert_eq!(names, 3, "{options}: something was made");
    }
}

#[test]
fn explain_lists_the_logs() {
    let place = place();
    fs::write(place.path().join("a.fio"), EACH).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(["explain", "a.fio"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("w_bw.1.log  throughput, 1 thread"), "{text}");
    assert!(text.contains("w_slat.3.log"), "{text}");
    assert!(found(place.path()).is_empty());
}

#[test]
fn files_and_lines_are_those_of_fio() {
    let text = "[global]\nsize=64k\nbs=4k\nfilename=disk\nwrite_bw_log=g\n[a]\nioengine=psync\nrw=randrw\nfsync=4\nwrite_lat_log\n\
                [b]\nstonewall\nioengine=libaio\niodepth=4\nrw=read\nnumjobs=2\nwrite_bw_log\nwrite_iops_log=\nwrite_lat_log=x\n\
                [c]\nstonewall\nioengine=psync\nper_job_logs=0\nnumjobs=2\nrw=read\nwrite_lat_log\nwrite_iops_log=s\n";
    let (ours, theirs) = (place(), place());
    fs::write(theirs.path().join("a.fio"), text).unwrap();
    let fio = Command::new("fio")
        .arg("a.fio")
        .current_dir(theirs.path())
        .output();
    let Ok(fio) = fio else {
        println!("skipped: fio is not installed");
        return;
    };
    assert!(fio.status.success(), "{}", stderr(&fio));
    jobs(&ours, text, "--destroy-data-on disk");
    assert_eq!(names_of(&ours), names_of(&theirs));
    for name in found(theirs.path()).into_keys() {
        let sorted = |place: &TempDir| {
            // Which requests of a mix are reads is drawn.
            let mixed = name.ends_with(".1.log");
            let shape = |line: &Line| [u64::from(!mixed) * line[2], line[3], line[4]];
            let lines = lines(place.path(), &name);
            lines.iter().map(shape).collect::<Vec<_>>()
        };
        assert_eq!(sorted(&ours), sorted(&theirs), "{name}");
    }
}

fn names_of(place: &TempDir) -> Vec<String> {
    found(place.path()).into_keys().collect()
}

#[test]
fn fio_plot_draws_the_logs() {
    let plot = std::env::var("FIO_PLOT").unwrap_or_else(|_| "fio-plot".to_owned());
    if Command::new(&plot).arg("--help").output().is_err() {
        println!("skipped: fio-plot is not installed (pip install fio-plot, or FIO_PLOT=PATH)");
        return;
    }
    let place = place();
    // The names that it looks for.
    let name = "randread-iodepth-8-numjobs-1";
    let text = format!(
        "[a]\nioengine=null\niodepth=8\nrw=randread\nsize=1m\nrate_iops=500\nlog_avg_msec=50\nwrite_lat_log={name}\n\
         write_iops_log={name}\nwrite_bw_log={name}\n"
    );
    jobs(&place, &text, "");
    let drawn = Command::new(&plot)
        .args(["-i", ".", "-T", "logs", "-g", "-t", "lat", "iops", "bw"])
        .args(["-r", "randread", "-d", "8", "-n", "1", "-o", "out.png"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let picture = fs::read(place.path().join("out.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"), "{}", stderr(&drawn));
}

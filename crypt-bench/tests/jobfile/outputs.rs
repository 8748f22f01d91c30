//! What `crypt-bench run` writes, where and when: formats, status lines, files that can't be written.

#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::runner::{jobs, place, run, stderr, succeed};

const PACED: &str = "[a]\nioengine=null\nsize=400k\nrate_iops=500\nrw=randrw\n\
                     [b]\nioengine=null\nsize=1m\nrw=write\nstonewall\n";

fn lines(text: &str) -> Vec<Value> {
    let documents = text.lines().map(serde_json::from_str);
    documents.collect::<Result<_, _>>().unwrap()
}

fn requests(job: &Value) -> u64 {
    ["read", "write"]
        .map(|direction| job[direction]["total_ios"].as_u64().unwrap())
        .iter()
        .sum()
}

/// Of one latency: the counts of `bins` add up to `N`, and lie in order within the percentiles.
fn check_bins(latency: &Value) {
    let bins = latency["bins"].as_object().unwrap();
    let total: u64 = bins.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(total, latency["N"].as_u64().unwrap());
    assert!(bins.keys().all(|key| key.parse::<u64>().is_ok()));
}

#[test]
fn a_status_is_a_line_and_loses_nothing() {
    let place = place();
    let arguments = "--status-interval 20ms --output-format json+ --output out";
    succeed(&place, PACED, arguments);
    let documents = lines(&fs::read_to_string(place.path().join("out")).unwrap());
    let (last, earlier) = documents.split_last().unwrap();
    assert!(!earlier.is_empty());
    assert!(last.get("crypt_bench").is_none());
    let mut seen = 0;
    for document in earlier {
        assert_eq!(document["crypt_bench"]["running"], true);
        // The second stage has begun at most in the last of them.
        let now = requests(&document["jobs"][0]);
        assert!((seen..=100).contains(&now));
        seen = now;
    }
    assert_eq!(requests(&last["jobs"][0]), 100);
    assert_eq!(requests(&last["jobs"][1]), 256);
    check_bins(&last["jobs"][0]["read"]["clat_ns"]);
    check_bins(&last["jobs"][1]["write"]["clat_ns"]);
    let response = &last["jobs"][0]["read"]["response_ns"];
    assert_eq!(response["N"], last["jobs"][0]["read"]["total_ios"]);
}

#[test]
fn a_status_beside_text_goes_to_standard_error() {
    let output = run(&place(), PACED, "--status-interval 0.05");
    assert_eq!(output.status.code(), Some(2), "0.05 is no time");
    let output = run(&place(), PACED, "--status-interval 50ms");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("a: (groupid=0") && !text.contains('{'));
    let status = output.stderr.split(|byte| *byte == b'\n');
    let status: Vec<&[u8]> = status.filter(|line| line.starts_with(b"{")).collect();
    assert!(!status.is_empty());
    for line in status {
        let document: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(document["jobs"][0]["jobname"], "a");
    }
}

#[test]
fn the_runtime_of_a_group_is_that_of_all_its_threads() {
    let text = "[a]\nioengine=null\nsize=1m\nruntime=100ms\ntime_based\nnumjobs=3\nrate_iops=100\ngroup_reporting\n";
    let group = &jobs(&place(), text, "")[0];
    let longest = group["read"]["runtime"].as_u64().unwrap();
    let all = group["job_runtime"].as_u64().unwrap();
    assert!(
        (longest + 2..=3 * longest + 2).contains(&all),
        "{all} {longest}"
    );
}

#[test]
fn formats_come_one_after_the_other() {
    let output = succeed(&place(), PACED, "--output-format json,normal");
    let (text, json) = output.split_at(output.find("\n{").unwrap());
    assert!(text.starts_with("a: (groupid=0") && text.contains("cpu: usr="));
    let document: Value = serde_json::from_str(json).unwrap();
    assert!(document["jobs"][0]["read"]["clat_ns"].get("bins").is_none());
    let unknown = run(&place(), PACED, "--output-format terse");
    assert!(stderr(&unknown).contains("json+"), "{}", stderr(&unknown));
}

#[test]
fn percentiles_and_bins_are_those_that_were_asked_for() {
    let text = "[a]\nioengine=null\nsize=64k\nslat_percentiles=1\nclat_percentiles=0\n\
                lat_percentiles=1\npercentile_list=99.9:50\n";
    let job = &jobs(&place(), text, "--output-format json+")[0]["read"];
    for (name, shown) in [("slat_ns", true), ("clat_ns", false), ("lat_ns", true)] {
        assert_eq!(job[name].get("bins").is_some(), shown, "{name}");
        let percentiles = job[name].get("percentile");
        let names = percentiles.map(|values| values.as_object().unwrap().keys().cloned());
        let names: Option<Vec<String>> = names.map(Iterator::collect);
        let expected = shown.then(|| ["50.000000", "99.900000"].map(str::to_owned).to_vec());
        assert_eq!(names, expected, "{name}");
    }
    check_bins(&job["lat_ns"]);
}

#[test]
fn what_cannot_be_written_is_found_before_the_run() {
    let text = "[n]\nrw=write\nsize=64k\n";
    for (arguments, reason) in [
        (
            "--output no/folder.json",
            "there is no folder no; make it first",
        ),
        ("--output .", ".: a folder; name a file for the results"),
        (
            "--output no/folder.json --output-format json --status-interval 1",
            "No such file or directory",
        ),
    ] {
        let place = place();
        let output = run(&place, text, &format!("--create {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert!(!place.path().join("n.0.0").exists(), "{arguments}");
    }
}

/// Keys of `ours` that `theirs` does not have, or has with another type.
fn foreign(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<String>) {
    let (Some(ours), Some(theirs)) = (ours.as_object(), theirs.as_object()) else {
        if ours.is_number() != theirs.is_number() || ours.is_string() != theirs.is_string() {
            found.push(path.to_owned());
        }
        return;
    };
    // Their content depends on what is measured, or on how options are written.
    if ["bins", "job options"]
        .iter()
        .any(|end| path.ends_with(end))
    {
        return;
    }
    for (key, value) in ours {
        match theirs.get(key) {
            Some(other) => foreign(value, other, &format!("{path}/{key}"), found),
            None => found.push(format!("{path}/{key}")),
        }
    }
}

#[test]
fn every_key_is_one_of_fio_or_of_our_own() {
    if Command::new("fio").arg("--version").output().is_err() {
        println!("skipped: fio is not installed");
        return;
    }
    let place = TempDir::new().unwrap();
    let text = "[a]\nioengine=null\nsize=1m\nrw=randrw\nlat_percentiles=1\nclat_percentiles=1\n\
                fsync=8\nrate_iops=5000\n";
    let document = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let ours = document(&succeed(&place, text, "--output-format json+"));
    let fio = Command::new("fio")
        .args(["a.fio", "--output-format=json+"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let theirs = document(&String::from_utf8(fio.stdout).unwrap());
    let mut found = Vec::new();
    foreign(&ours["jobs"][0], &theirs["jobs"][0], "", &mut found);
    let own = [
        "/crypt_bench",
        "/read/response_ns",
        "/total_err",
        "/write/response_ns",
    ];
    assert_eq!(found, own);
    let percentiles = |document: &Value| {
        let percentiles = &document["jobs"][0]["read"]["clat_ns"]["percentile"];
        let keys = percentiles.as_object().unwrap().keys().cloned();
        keys.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(percentiles(&ours), percentiles(&theirs));
}

#[test]
fn results_do_not_replace_what_jobs_need() {
    let place = place();
    let key = place.path().join("key");
    fs::write(&key, (0..64).collect::<Vec<u8>>()).unwrap();
    std::os::unix::fs::symlink("disk", place.path().join("other-name")).unwrap();
    let text =
        "[a]\nfilename=disk\nbs=4k\nsize=64k\ncrypt_cipher=aes-xts-plain64\ncrypt_key_file=key\n";
    for name in ["disk", "other-name", "key", "a.fio"] {
        let before = fs::read(place.path().join("disk")).unwrap();
        let output = run(&place, text, &format!("--output {name}"));
        assert_eq!(output.status.code(), Some(2), "{name}");
        let message = stderr(&output);
        assert!(message.contains("name another file"), "{name}: {message}");
        assert_eq!(fs::read(place.path().join("disk")).unwrap(), before);
        assert_eq!(fs::read(&key).unwrap().len(), 64);
    }
}

#[test]
fn a_reader_of_standard_error_that_has_gone_away_changes_nothing() {
    let place = place();
    fs::write(place.path().join("a.fio"), "[a]\nbs=x\n").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(["run", "a.fio"])
        .current_dir(place.path())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(2));
}

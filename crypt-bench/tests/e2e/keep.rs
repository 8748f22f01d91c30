//! What survives: results after a crash or an interruption, and other people's files.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::common::{Place, text};
use crypt_bench::doubt::Doubt;
use crypt_bench::manifest::State;
use crypt_bench::result::CellParams;

/// 2 cells x 3 policies x 10 repeats, about four seconds.
const LONG: &str = "matrix --device memory --rw randread,randwrite --bs 4k --depth 2 --policy adaptive \
                    --runtime 60ms --ramp 5ms --repeats 10 --size 4m --out results";

/// Waits until the run has finished this many records.
pub(crate) fn wait_for_records(place: &Place, child: &mut Child, count: usize) {
    let path = place.path("results").join("results.jsonl");
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let lines = fs::read_to_string(&path)
            .unwrap_or_default()
            .lines()
            .count();
        if lines >= count {
            return;
        }
        assert!(
            child.try_wait().unwrap().is_none(),
            "ended with {lines} records"
        );
        assert!(
            Instant::now() < deadline,
            "{lines} records after two minutes"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The plan was run exactly once.
fn assert_whole(place: &Place) {
    let manifest = place.manifest("results");
    let records = place.records("results");
    let runs: HashSet<(CellParams, u32)> = records
        .iter()
        .map(|record| (record.cell.clone(), record.repeat))
        .collect();
    assert_eq!(runs.len(), records.len(), "a run is there twice");
    let planned: HashSet<(CellParams, u32)> = manifest
        .plan
        .iter()
        .flat_map(|cell| (1..=manifest.repeats).map(|repeat| (cell.clone(), repeat)))
        .collect();
    assert_eq!(runs, planned);
    assert_eq!(manifest.state, State::Complete);
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let place = Place::new();
    let mut kept = 0;
    // Killed three times, at points that depend on the machine's mood.
    for (round, records) in [1, 8, 14].into_iter().enumerate() {
        let resume = if round == 0 { "" } else { "--resume" };
        let mut child = place.command(&format!("{LONG} {resume}")).spawn().unwrap();
        wait_for_records(&place, &mut child, records);
        signal(&child, rustix::process::Signal::KILL);
        child.wait().unwrap();
        let lines = place.read("results", "results.jsonl").lines().count();
        assert!(
            lines >= kept / 3 * 3,
            "finished repeats were lost: {kept}, then {lines}"
        );
        kept = lines;
        assert_eq!(place.manifest("results").state, State::Running);
    }
    let before = place.read("results", "results.jsonl");
    place.succeed("matrix --out results --resume");
    assert_whole(&place);
    // Whole repeats of three policies were taken over as they were.
    let after = place.read("results", "results.jsonl");
    let whole = before.lines().count() / 3 * 3;
    let taken: Vec<&str> = before.lines().take(whole).collect();
    assert_eq!(after.lines().take(whole).collect::<Vec<_>>(), taken);
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_says_how_to_go_on() {
    let place = Place::new();
    let mut child = place.command(LONG).spawn().unwrap();
    wait_for_records(&place, &mut child, 4);
    signal(&child, rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr.contains("crypt-bench matrix --out results --resume"),
        "{stderr}"
    );
    assert_eq!(place.manifest("results").state, State::Interrupted);
    assert!(place.records("results").len() >= 4);
    assert!(place.path("results").join("report.html").is_file());
    place.succeed("matrix --out results --resume");
    assert_whole(&place);
}

#[test]
fn two_runs_do_not_write_into_one_folder() {
    let place = Place::new();
    let mut child = place.command(LONG).spawn().unwrap();
    wait_for_records(&place, &mut child, 1);
    let output = place.run("matrix --out results --resume");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("another run is writing"));
    signal(&child, rustix::process::Signal::INT);
    child.wait().unwrap();
}

#[test]
fn a_finished_run_can_be_resumed_without_effect() {
    let place = Place::new();
    let quick = "matrix --device null --rw read --bs 4k --depth 1 --runtime 5ms --ramp 0 --policy \
                 inline --repeats 1 --out results";
    place.succeed(quick);
    let before = place.read("results", "results.jsonl");
    place.succeed("matrix --out results --resume");
    assert_eq!(place.read("results", "results.jsonl"), before);
}

#[test]
fn another_matrix_is_not_mixed_into_a_run() {
    let place = Place::new();
    let quick = "matrix --device null --rw read --bs 4k --depth 1 --runtime 5ms --ramp 0 --policy \
                 inline --repeats 1 --out results";
    place.succeed(quick);
    let before = place.read("results", "results.jsonl");
    let output = place.run(&format!("{quick} --seed 9 --resume"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("another matrix"));
    assert_eq!(place.read("results", "results.jsonl"), before);
}

#[test]
fn a_job_that_only_reads_changes_nothing() {
    let place = Place::new();
    let content: Vec<u8> = (0..1_u32 << 20).map(|n| (n * 31) as u8).collect();
    fs::write(place.path("data.img"), &content).unwrap();
    let before = fs::metadata(place.path("data.img")).unwrap();
    place.succeed(
        "matrix --device file:data.img --rw read,randread --bs 4k --depth 4 --policy inline \
         --runtime 20ms --ramp 0 --repeats 1 --out results",
    );
    let after = fs::metadata(place.path("data.img")).unwrap();
    assert_eq!(fs::read(place.path("data.img")).unwrap(), content);
    assert_eq!(
        (after.len(), after.ino(), after.mtime()),
        (before.len(), before.ino(), before.mtime())
    );
    assert_eq!(place.records("results")[0].cell.size_bytes, 1 << 20);
}

#[test]
fn a_file_with_holes_gives_no_valid_reads() {
    let place = Place::new();
    let file = fs::File::create(place.path("sparse.img")).unwrap();
    file.set_len(1 << 20).unwrap();
    place.succeed(
        "matrix --device file:sparse.img --rw randread --bs 4k --depth 1 --policy inline --runtime \
         20ms --ramp 0 --repeats 1 --out results",
    );
    let record = &place.records("results")[0];
    assert!(
        record.doubts.contains(&Doubt::NeverWritten),
        "{:?}",
        record.doubts
    );
    assert!(!record.is_valid());
}

#[test]
fn a_created_file_stays_and_is_recognised_when_resuming() {
    let place = Place::new();
    place.succeed(
        "matrix --device file:new.img --create --size 1m --rw randwrite --bs 4k --depth 2 --policy \
         inline --runtime 20ms --ramp 0 --repeats 1 --out results",
    );
    assert_eq!(fs::metadata(place.path("new.img")).unwrap().len(), 1 << 20);
    assert_eq!(place.manifest("results").created_files.len(), 1);
    // As after a crash: nothing is finished.
    fs::write(place.path("results").join("results.jsonl"), "").unwrap();
    place.succeed("matrix --out results --resume");
    assert_eq!(place.records("results").len(), 1);
}

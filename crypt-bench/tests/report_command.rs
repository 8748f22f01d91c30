//! `crypt-bench report` from the outside: every format parses, and what can't be reported is refused
//! with the file and the line, exit status 2, and nothing written.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn crypt_bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(args)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A results folder with two policies, one cell, two repeats.
fn measured(parent: &Path) -> PathBuf {
    let dir = parent.join("results");
    let output = crypt_bench(&[
        "matrix",
        "--device",
        "null",
        "--policy",
        "inline,workqueue",
        "--rw",
        "randread",
        "--bs",
        "4k",
        "--depth",
        "2",
        "--size",
        "1m",
        "--runtime",
        "10ms",
        "--ramp",
        "1ms",
        "--repeats",
        "2",
        "--out",
        dir.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    dir
}

fn refused(args: &[&str]) -> String {
    let output = crypt_bench(args);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{args:?}: {}",
        stderr(&output)
    );
    assert!(output.stdout.is_empty(), "{args:?}");
    stderr(&output)
}

#[test]
fn every_format_is_made_from_the_stored_results_alone() {
    let folder = tempfile::tempdir().unwrap();
    let dir = measured(folder.path());
    let path = dir.to_str().unwrap();
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    fs::remove_file(dir.join("report.html")).unwrap();
    stdout(&crypt_bench(&["report", path]));
    assert_eq!(fs::read_to_string(dir.join("report.html")).unwrap(), page);

    let format = |format: &str| stdout(&crypt_bench(&["report", path, "--format", format]));
    let json: Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 2);
    let csv = format("csv");
    assert_eq!(csv.lines().count(), 3);
    assert!(format("svg").starts_with("<svg") && format("markdown").starts_with("### "));
    assert!(format("text").lines().count() > 5);
}

#[test]
fn one_map_over_any_two_axes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = measured(folder.path());
    let path = dir.to_str().unwrap();
    let map = [
        "report", path, "--format", "text", "--x", "policy", "--y", "bs",
    ];
    let text = stdout(&crypt_bench(&map));
    assert!(
        text.contains("inline") && text.contains("4k") && text.contains("B/s"),
        "{text}"
    );
    let only = [
        &map[..],
        &["--where", "policy=inline", "--metric", "lat_ns_p99"],
    ]
    .concat();
    assert!(!stdout(&crypt_bench(&only)).contains("workqueue"));
    let ratio = [
        "report", path, "--format", "text", "--x", "bs", "--y", "depth",
    ];
    let ratio = [&ratio[..], &["--ratio", "workqueue/inline"]].concat();
    assert!(stdout(&crypt_bench(&ratio)).contains("workqueue ÷ inline"));
    assert!(refused(&["report", path, "--x", "policy", "--y", "bs"]).contains("--format svg"));
    assert!(refused(&["report", path, "--x", "colour", "--y", "bs"]).contains("one of device, rw"));
}

#[test]
fn results_that_cant_be_trusted_are_refused_by_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let dir = measured(folder.path());
    let path = dir.to_str().unwrap();
    fs::remove_file(dir.join("report.html")).unwrap();
    let results = dir.join("results.jsonl");
    let text = fs::read_to_string(&results).unwrap();
    let lines: Vec<&str> = text.lines().collect();

    let broken = format!("{}\n{}\n", lines[0], &lines[1][..lines[1].len() / 2]);
    fs::write(&results, broken).unwrap();
    assert!(refused(&["report", path]).contains("results.jsonl:2: not a result, at column "));

    let changed = text.replacen("\"repeat\":1", "\"repeat\":7", 1);
    fs::write(&results, changed).unwrap();
    assert!(refused(&["report", path]).contains("results.jsonl:1: changed after"));

    fs::write(
        &results,
        text.replacen("\"schema_version\":1", "\"schema_version\":2", 1),
    )
    .unwrap();
    assert!(refused(&["report", path]).contains("results.jsonl:1: version 2 of the format"));

    fs::write(&results, &text).unwrap();
    fs::write(dir.join("manifest.json"), "{").unwrap();
    assert!(refused(&["report", path]).contains("manifest.json:1: not a manifest"));

    fs::remove_file(&results).unwrap();
    fs::remove_file(dir.join("manifest.json")).unwrap();
    assert!(refused(&["report", path]).contains("a results folder has results.jsonl"));
    assert_eq!(
        fs::read_dir(&dir).unwrap().count(),
        0,
        "nothing was written"
    );
}

#[test]
fn a_page_of_several_folders_needs_a_place_and_a_place_must_be_writable() {
    let folder = tempfile::tempdir().unwrap();
    let dir = measured(folder.path());
    let path = dir.to_str().unwrap();
    assert!(refused(&["report", path, path]).contains("-o FILE"));
    let page = folder.path().join("both.html");
    stdout(&crypt_bench(&[
        "report",
        path,
        path,
        "-o",
        page.to_str().unwrap(),
    ]));
    assert!(fs::metadata(&page).unwrap().len() > 10_000);
    let nowhere = folder.path().join("missing/report.html");
    let message = refused(&["report", path, "-o", nowhere.to_str().unwrap()]);
    assert!(message.contains("missing/report.html"), "{message}");
    // A device is written to, not replaced by a file.
    stdout(&crypt_bench(&["report", path, "-o", "/dev/null"]));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

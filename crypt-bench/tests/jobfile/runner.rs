//! `crypt-bench run` over job files in a folder of its own.

#![forbid(unsafe_code)]

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with a file of 1 MiB, `disk`.
pub(crate) fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("disk"), vec![1; 1 << 20]).unwrap();
    place
}

pub(crate) fn run(place: &TempDir, text: &str, arguments: &str) -> Output {
    fs::write(place.path().join("a.fio"), text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(["run", "a.fio"])
        .args(arguments.split_whitespace())
        .current_dir(place.path())
        .output()
        .unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn succeed(place: &TempDir, text: &str, arguments: &str) -> String {
    let output = run(place, text, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The jobs of the JSON output.
pub(crate) fn jobs(place: &TempDir, text: &str, arguments: &str) -> Vec<Value> {
    let format = match arguments.contains("--output-format") {
        true => "",
        false => "--output-format json",
    };
    let output = succeed(place, text, &format!("{arguments} {format}"));
    let document: Value = serde_json::from_str(&output).unwrap();
    assert!(document["fio version"].is_string());
    document["jobs"].as_array().unwrap().clone()
}

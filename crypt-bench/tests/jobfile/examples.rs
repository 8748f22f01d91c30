//! The job files that fio comes with: each is explained, or refused with a reason that says what to do.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Where Debian's package `fio-examples` puts them.
const INSTALLED: &str = "/usr/share/doc/fio/examples";

/// The job files, from the package if it is installed, else out of it; `None` where it can't be had.
fn examples(place: &TempDir) -> Option<Vec<PathBuf>> {
    let found = job_files(Path::new(INSTALLED));
    if !found.is_empty() {
        return Some(found);
    }
    let download = "timeout 60 apt-get download -q fio-examples && dpkg -x fio-examples_*.deb .";
    let output = Command::new("sh")
        .args(["-c", download])
        .current_dir(place.path())
        .output()
        .ok()?;
    let found = job_files(&place.path().join(INSTALLED.trim_start_matches('/')));
    (output.status.success() && !found.is_empty()).then_some(found)
}

fn job_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "fio"))
        .collect();
    files.sort();
    files
}

/// A refusal that helps: it names its place and says what to do or to use.
fn helps(message: &str, name: &str) -> bool {
    let told = message.trim_start_matches("crypt-bench: ");
    let placed = told
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(':'));
    let advice = ["; ", ": use one of "];
    placed.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        && advice.iter().any(|mark| told.contains(mark))
}

#[test]
fn every_example_of_fio_is_explained_or_refused_with_advice() {
    let place = TempDir::new().unwrap();
    let Some(files) = examples(&place) else {
        println!("skipped: the package fio-examples is not installed and can't be downloaded");
        return;
    };
    let (mut explained, mut useless) = (0, Vec::new());
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
            .args(["explain", name])
            .current_dir(path.parent().unwrap())
            // What these files expect around them.
            .env("IO_PLUGIN", "/opt/plugin")
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(0) => {
                explained += 1;
                println!("{name:<34} explained");
            }
            Some(2) => {
                println!("{name:<34} {}", message.trim_end());
                if !helps(&message, name) {
                    useless.push(message);
                }
            }
            code => panic!("{name}: {code:?}: {message}"),
        }
    }
    assert!(
        files.len() > 50 && explained >= 10,
        "{explained} of {} explained",
        files.len()
    );
    assert!(useless.is_empty(), "{useless:#?}");
}

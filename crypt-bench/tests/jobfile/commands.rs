//! `crypt-bench explain` as a user meets it.

#![forbid(unsafe_code)]

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::common::{VARIABLES, folder, names};

/// The program in a folder with this job file.
fn run_in(place: &TempDir, text: &str, arguments: &str) -> Output {
    fs::write(place.path().join("a.fio"), text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(arguments.split_whitespace())
        .current_dir(place.path())
        .output()
        .unwrap()
}

fn explain(text: &str, arguments: &str) -> Output {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("disk"), vec![1; 1 << 20]).unwrap();
    let output = run_in(&place, text, &format!("explain a.fio {arguments}"));
    assert_eq!(
        fs::read_dir(place.path()).unwrap().count(),
        2,
        "something was made"
    );
    output
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A text with single blanks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const FILE: &str = "[global]\nbs=4k\nsize=64k\n[look]\nfilename=disk\nrw=randread\nbs=8k\n\
                    [fill]\nstonewall\nfilename=disk\nrw=write\noffset=512k\nnumjobs=2\n\
                    offset_increment=64k\nnrfiles=1\n[new]\nrw=write\n";

#[test]
fn values_come_with_their_origin_and_ranges_with_their_bytes() {
    let text = words(&stdout(&explain(FILE, "")));
    for expected in [
        "3 jobs, 4 threads, 2 stages",
        "[look] a.fio:4 stage 1, group 0",
        "bs 8k a.fio:7 instead of a.fio:2",
        "size 64k a.fio:3 [global]",
        "iodepth 1 default",
        "thread 0 reads bytes 0 to 65535 of disk (64k)",
        "[fill] a.fio:8 stage 2, group 1",
        "thread 1 WRITES bytes 589824 to 655359 of disk (64k)",
        "nrfiles 1 a.fio:15 numjobs 2",
        "ends after 131072 bytes in all",
        "disk 1048576 bytes, exists; its DATA WOULD BE LOST",
        "new.0.0 65536 bytes, does not exist; would be created with --create",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn sections_can_be_chosen_and_writes_forbidden() {
    let text = stdout(&explain(FILE, "--section look --readonly"));
    assert!(text.contains("exists; is opened read-only"), "{text}");
    let output = explain(FILE, "--readonly");
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("a.fio:11: [fill]: rw=write writes"),
        "{message}"
    );
}

#[test]
fn parse_only_says_nothing_and_refusals_go_to_stderr() {
    assert_eq!(stdout(&explain(FILE, "--parse-only")), "");
    for (text, message) in [
        (
            "[a]\nverify_async=2\n",
            "a.fio:2: option `verify_async` is not supported",
        ),
        (
            "[a]\nruntime=2sec\n",
            "a.fio:2: runtime: `2sec` is 2 microseconds",
        ),
        (
            "[a]\nsize=${NOT_SET_HERE}\n",
            "a.fio:2: size: `${NOT_SET_HERE}`",
        ),
        ("", "a.fio: there is no job in it"),
    ] {
        let output = explain(text, "--parse-only");
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn options_are_listed() {
    let place = TempDir::new().unwrap();
    let text = words(&stdout(&run_in(&place, "", "explain --options")));
    assert!(
        text.contains("bs, blocksize sizes: read,write,trim"),
        "{text}"
    );
    assert!(text.contains("crypt_cipher text"), "{text}");
}

#[test]
fn every_job_file_of_the_tests_is_explained() {
    for name in names() {
        let output = Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
            .args(["explain", &name])
            .current_dir(folder())
            .envs(VARIABLES)
            .output()
            .unwrap();
        assert!(stdout(&output).contains("stage 1"), "{name}");
    }
}

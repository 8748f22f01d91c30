//! What is no input at all: folders, pipes, endless devices, loops of links, pictures, deep nesting, and outputs that
//! can't be. Each is refused in words that say what it is, and nothing is written.

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common::Place;
use crate::refuse::refused;

/// A folder with one of each.
fn hostile() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("folder")).unwrap();
    fs::write(place.path("empty"), "").unwrap();
    fs::write(place.path("binary"), [0x7f, b'E', 0xff, 0xfe, b'\n']).unwrap();
    fs::write(place.path("nested"), "[".repeat(100_000)).unwrap();
    fs::write(place.path("controls"), "\u{1b}[2J\u{7}\n").unwrap();
    symlink("loop2", place.path("loop1")).unwrap();
    symlink("loop1", place.path("loop2")).unwrap();
    let made = Command::new("mkfifo").arg(place.path("pipe")).status();
    assert!(made.unwrap().success());
    place
}

#[test]
fn whatever_is_no_input_is_told_apart() {
    let place = hostile();
    let texts = [
        "run NAME",
        "explain NAME",
        "matrix --matrix NAME",
        "matrix --import NAME",
        "import NAME --policy raw --out new",
        "simulate --machine NAME",
    ];
    for (name, reason) in [
        ("folder", "folder: a folder, not a text file"),
        ("empty", "empty:"),
        ("binary", "binary: not a text file: line 1 is not UTF-8"),
        ("nested", "nested:"),
        ("controls", "controls:"),
        ("loop1", "loop1: Too many levels of symbolic links"),
        ("missing", "missing: No such file"),
        ("/dev/zero", "/dev/zero: longer than"),
    ] {
        for text in texts {
            refused(&place, &text.replace("NAME", name), reason);
        }
    }
    for name in ["folder", "empty", "loop1", "missing", "/dev/zero"] {
        refused(
            &place,
            &format!("report {name}"),
            &format!("{name}/manifest.json"),
        );
        refused(
            &place,
            &format!("export {name}"),
            &format!("{name}/manifest.json"),
        );
    }
}

/// A message of a megabyte, or one that clears the screen, helps nobody.
#[test]
fn what_is_quoted_is_short_and_printable() {
    let place = hostile();
    for arguments in [
        "run nested",
        "run controls",
        "matrix --matrix nested",
        "matrix --matrix controls",
        "simulate --machine nested",
    ] {
        let output = place.run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.len() < 4000, "{arguments}: {} bytes", stderr.len());
        let control = stderr.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(control, None, "{arguments}: {stderr}");
    }
}

#[test]
fn files_of_jobs_are_files() {
    let place = hostile();
    for (options, reason) in [
        (
            "filename=pipe",
            "a.fio:2: [a]: pipe: a pipe; give a regular file or a block device",
        ),
        ("filename=pipe\nsize=1m", "a.fio:2: [a]: pipe: a pipe"),
        ("filename=folder\nsize=1m", "[a]: folder: a folder"),
        (
            "filename=loop1\nsize=1m",
            "[a]: loop1: Too many levels of symbolic links",
        ),
        (
            "filename=/dev/zero\nsize=1m",
            "[a]: /dev/zero: a character device",
        ),
        ("filename=empty/x\nsize=1m", "[a]: empty/x: Not a directory"),
        (
            "filename=empty",
            "a.fio:2: [a]: empty has 0 bytes; name a file with data",
        ),
        (
            "read_iolog=pipe",
            "a.fio:2: read_iolog: pipe: a pipe; give a regular file",
        ),
        (
            "read_iolog=/dev/zero",
            "read_iolog: /dev/zero: a character device",
        ),
        ("read_iolog=folder", "read_iolog: folder: a folder"),
        (
            "ioengine=null\nsize=1m\nfilesize=1m\nsize=1",
            "size: less than a block",
        ),
    ] {
        fs::write(place.path("a.fio"), format!("[a]\n{options}\n")).unwrap();
        for command in ["run", "explain"] {
            refused(&place, &format!("{command} a.fio"), reason);
        }
    }
}

#[test]
fn outputs_that_cant_be_are_named() {
    let place = hostile();
    fs::write(place.path("a.fio"), "[a]\nioengine=null\nsize=1m\n").unwrap();
    for (output, reason) in [
        ("none/x", "none/x: there is no folder none; make it first"),
        ("folder", "folder: a folder; name a file for the results"),
        ("empty/x", "empty/x: empty is not a folder"),
        ("loop1", "loop1: Too many levels of symbolic links"),
        (
            "/proc/x",
            "/proc/x: nothing can be written in the folder /proc",
        ),
        ("a.fio", "which the jobs need"),
    ] {
        for command in ["run", "explain"] {
            refused(
                &place,
                &format!("{command} a.fio --output {output}"),
                reason,
            );
        }
    }
    let matrix = "matrix --device null --size 8m --runtime 5ms --repeats 1";
    for (out, reason) in [
        ("empty", "--out empty: File exists"),
        ("empty/x", "--out empty/x: Not a directory"),
        ("/proc/x", "--out /proc/x: No such file"),
    ] {
        refused(&place, &format!("{matrix} --out {out}"), reason);
    }
}

/// Results go where a link leads, which stays.
#[test]
fn a_link_is_written_through() {
    let place = hostile();
    fs::write(place.path("a.fio"), "[a]\nioengine=null\nsize=1m\n").unwrap();
    symlink("empty", place.path("link")).unwrap();
    place.succeed("explain a.fio --output link");
    assert!(
        fs::symlink_metadata(place.path("link"))
            .unwrap()
            .is_symlink()
    );
    assert!(
        fs::read_to_string(place.path("empty"))
            .unwrap()
            .contains("[a]")
    );
}

/// Ten thousand files are refused as soon as one is.
#[test]
fn many_files_cost_what_they_are() {
    let place = Place::new();
    let text = "[global]\nrw=read\nsize=40000k\nnrfiles=10000\n[a]\ndirectory=.\n";
    fs::write(place.path("a.fio"), text).unwrap();
    refused(
        &place,
        "run a.fio",
        "no such file; name an existing one or add --create",
    );
}

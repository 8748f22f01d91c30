//! What `crypt-bench matrix` refuses: exit status 2, a message that says what to do, and nothing
//! written, made or changed.

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::common::{Place, text};

/// Runs it; it must be refused with `reason`, leaving the folder as it was.
pub(crate) fn refused(place: &Place, arguments: &str, reason: &str) {
    let before = place.content();
    let output = place.run(arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
    // The help wraps lines; compare words.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words(&stderr).contains(&words(reason)),
        "{arguments}: {stderr}"
    );
    assert!(output.stdout.is_empty(), "{arguments}");
    assert_eq!(place.content(), before, "{arguments}");
}

#[test]
fn bad_flags_are_refused_with_advice() {
    let place = Place::new();
    for (arguments, reason) in [
        ("--bs 4kb", "ambiguous: 4000 or 4096 bytes? Write 4k"),
        ("--bs 1.5k", "not a whole number"),
        ("--bs 3k --sector-size 4k", "sector size of 4096"),
        ("--bs 0", "--bs 0"),
        ("--depth 0", "--depth 0"),
        ("--depth 99999", "16384"),
        ("--depth -1", "'-1'"),
        ("--jobs 0", "--jobs 0"),
        ("--devices 0", "--devices 0"),
        (
            "--size 1k --bs 4k --sector-size 512",
            "smaller than a block",
        ),
        ("--size 100", "too many"),
        ("--runtime 2", "write 2s for seconds"),
        ("--runtime 2sec", "write 2s"),
        ("--runtime 0", "--runtime"),
        ("--repeats 0", "--repeats 0"),
        ("--rw sideways", "not a pattern"),
        ("--rwmixread 101 --rw randrw", "0 to 100"),
        ("--policy quick", "inline, workqueue, adaptive"),
        ("--policy workqueue:quick", "no_read_workqueue"),
        ("--policy no_read_workqueue", "workqueue:no_read_workqueue"),
        ("--cipher rot13", "aes-xts-plain64"),
        ("--key-bits 128", "256 is AES-128"),
        ("--sector-size 8k", "512, 1k, 2k or 4k"),
        ("--cipher-throttle 200", "200MB/s"),
        ("--issuers 4095", "CPU 4095"),
        ("--issuers x", "list of CPUs"),
        ("--device ram", "null, memory"),
        ("--device /dev/null", "file:/dev/null"),
        ("--device model:tape", "nvme"),
        ("--device model:sata-array:0", "sata-array:N"),
        ("--device scratch:no/such/folder", "no/such/folder"),
        ("--device scratch --size 1000t", "does not fit"),
        ("--engine libaio", "io_uring"),
        ("--direct --buffered", "cannot be used with"),
        (
            "--matrix nosuch.toml",
            "default, flags, gate, hand-off, policy, scaling, simulate, smoke",
        ),
        (
            "--preset nosuch",
            "dorminy-ssd, dorminy-hdd, dorminy-optane",
        ),
        ("--preset dorminy-ssd --matrix smoke", "cannot be used with"),
        ("--import nosuch.fio", "nosuch.fio"),
        ("--section a", "--import"),
        ("--bssplit 64k/60:1m/30", "add up to 90"),
        ("--bssplit 1,2,3", "after a comma those of writes"),
        ("--jobs many", "one per CPU"),
        ("--slice 1h", "the runtime"),
        ("--policy raw:fast", "raw"),
        ("--key-file nosuch", "nosuch"),
        ("--memory-limit 1m --size 128m", "--memory-limit"),
        ("--resume", "--out"),
        ("--out nosuch --resume", "nothing to resume"),
        ("--wrong", "--wrong"),
    ] {
        let device = if arguments.contains("--device ") {
            ""
        } else {
            "--device memory"
        };
        refused(&place, &format!("matrix {device} {arguments}"), reason);
    }
}

#[test]
fn the_memory_needed_is_said_in_figures() {
    let place = Place::new();
    refused(
        &place,
        "matrix --device null --bs 1m --depth 64 --jobs 2 --memory-limit 100m",
        "268435456 bytes of memory: 2 jobs x 64 in flight x 2 x 1048576 bytes",
    );
}

#[test]
fn a_broken_definition_is_refused_with_its_line() {
    let place = Place::new();
    fs::write(place.path("bad.toml"), "bs = [\"4k\"]\nblock = 1\n").unwrap();
    refused(&place, "matrix --matrix bad.toml", "line 2");
}

#[test]
fn a_missing_file_is_not_created() {
    let place = Place::new();
    for rw in ["randread", "randwrite"] {
        let arguments = format!("matrix --device file:missing.img --rw {rw} --bs 4k");
        refused(&place, &arguments, "no such file; name an existing one");
    }
    let arguments = "matrix --device file:no/folder/x.img --rw randwrite --create";
    refused(&place, arguments, "no folder");
}

#[test]
fn an_existing_file_is_not_written_without_being_named() {
    let place = Place::new();
    let content = vec![7; 1 << 20];
    fs::write(place.path("precious.img"), &content).unwrap();
    let before = fs::metadata(place.path("precious.img")).unwrap();
    let write = "matrix --device file:precious.img --rw randread,randrw --bs 4k --depth 1";
    refused(&place, write, "--destroy-data-on");
    refused(&place, &format!("{write} --create"), "--destroy-data-on");
    refused(
        &place,
        &format!("{write} --destroy-data-on other.img"),
        "--destroy-data-on",
    );
    let after = fs::metadata(place.path("precious.img")).unwrap();
    assert_eq!(fs::read(place.path("precious.img")).unwrap(), content);
    assert_eq!(
        (before.mtime_nsec(), before.ctime_nsec()),
        (after.mtime_nsec(), after.ctime_nsec())
    );
}

#[test]
fn a_file_that_is_too_small_or_no_file_at_all_is_refused() {
    let place = Place::new();
    fs::write(place.path("small.img"), [0; 8192]).unwrap();
    let read = "matrix --rw randread --depth 1";
    refused(
        &place,
        &format!("{read} --device file:small.img --bs 64k"),
        "smaller than a block",
    );
    refused(
        &place,
        &format!("{read} --device file:small.img --bs 4k --size 1m"),
        "8192 bytes",
    );
    fs::write(place.path("odd.img"), [0; 8193]).unwrap();
    refused(
        &place,
        &format!("{read} --device file:odd.img --bs 4k"),
        "1 bytes too many",
    );
    refused(
        &place,
        &format!("{read} --device file:tmp --bs 4k"),
        "regular file",
    );
}

#[test]
fn an_output_folder_that_cannot_be_used_is_refused() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("full/notes"), "").unwrap();
    let quick = "matrix --device null --rw read --bs 4k --depth 1 --runtime 5ms --policy inline";
    for out in ["file", "file/below", "full", "/proc/nosuch"] {
        refused(&place, &format!("{quick} --out {out}"), out);
    }
}

//! Jobs with several files: what is transferred where, and what it takes to write to them.

#![forbid(unsafe_code)]

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::runner::{jobs, place, run, stderr, succeed};

const MIB: usize = 1 << 20;

/// A folder with `disk` of 1 MiB and `more` of 2 MiB and some bytes, all ones.
fn two() -> TempDir {
    let place = place();
    fs::write(place.path().join("more"), vec![1; 2 * MIB + 100]).unwrap();
    place
}

fn read(place: &TempDir, name: &str) -> Vec<u8> {
    fs::read(place.path().join(name)).unwrap()
}

#[test]
fn all_of_all_files_is_read_by_every_engine() {
    let place = two();
    for engine in ["psync", "io_uring"] {
        for rw in ["read", "randread"] {
            let text =
                format!("[a]\nfilename=disk:more\nioengine={engine}\nrw={rw}\nbs=16k\niodepth=8\n");
            let read = &jobs(&place, &text, "")[0]["read"];
            assert_eq!(read["io_bytes"].as_u64(), Some(3 << 20), "{engine} {rw}");
        }
    }
}

#[test]
fn writes_go_where_they_are_told_to_and_nowhere_else() {
    let place = two();
    let text = "[a]\nfilename=disk:more\nioengine=io_uring\niodepth=4\nrw=write\nbs=4k\nsize=64k\noffset=8k\n\
                buffer_pattern=0xee\nfdatasync=4\nend_fsync=1\n";
    let one = run(&place, text, "--destroy-data-on disk");
    assert_eq!(one.status.code(), Some(2));
    let message = stderr(&one);
    assert!(
        message.contains("more exists") && message.contains("--destroy-data-on"),
        "{message}"
    );
    let before = read(&place, "disk");
    assert!(before.iter().all(|byte| *byte == 1));
    succeed(
        &place,
        text,
        "--destroy-data-on disk --destroy-data-on more",
    );
    for name in ["disk", "more"] {
        let data = read(&place, name);
        let (start, end) = (8 << 10, 40 << 10);
        assert!(data[start..end].iter().all(|byte| *byte == 0xee), "{name}");
        let rest = data[..start].iter().chain(&data[end..]);
        assert!(rest.copied().all(|byte| byte == 1), "{name}");
    }
    assert_eq!(read(&place, "more").len(), 2 * MIB + 100);
}

#[test]
fn files_are_made_by_number_and_compared() {
    let place = TempDir::new().unwrap();
    let text = "[a]\nnrfiles=3\nfilename_format=f$filenum\nfilesize=32k-96k\nioengine=io_uring\nrw=randwrite\n\
                bs=4k\niodepth=4\nverify=crc32c\nfile_service_type=random:2\nopenfiles=2\n";
    let refused = run(&place, text, "");
    assert!(
        stderr(&refused).contains("--create"),
        "{}",
        stderr(&refused)
    );
    let job = &jobs(&place, text, "--create")[0];
    let sizes: Vec<u64> = ["f0", "f1", "f2"]
        .iter()
        .map(|name| read(&place, name).len() as u64)
        .collect();
    assert!(
        sizes
            .iter()
            .all(|bytes| (32 << 10..=96 << 10).contains(bytes))
    );
    let bytes: u64 = sizes.iter().sum();
    assert_eq!(job["write"]["io_bytes"].as_u64(), Some(bytes));
    let verify = &job["crypt_bench"]["verify"];
    assert_eq!(verify["blocks"].as_u64(), Some(bytes / 4096), "{job:#}");
    assert_eq!(verify["mismatches"].as_u64(), Some(0));
}

#[test]
fn with_a_cipher_all_files_are_one_volume() {
    let place = two();
    fs::write(place.path().join("key"), [7; 64]).unwrap();
    let cipher =
        "crypt_cipher=aes-xts-plain64\ncrypt_key_file=key\nbs=4k\niodepth=4\nioengine=io_uring\n";
    let write = format!(
        "[a]\n{cipher}filename=disk:more\nsize=1m\nrw=randwrite\nverify=crc32c\ndo_verify=1\n"
    );
    let allowed = "--destroy-data-on disk --destroy-data-on more";
    succeed(&place, &write, allowed);
    // A block that changes in the second file is found, and told by its place there.
    let mut data = read(&place, "more");
    data[4096 * 5 + 17] ^= 1;
    fs::write(place.path().join("more"), data).unwrap();
    let check = format!("[a]\n{cipher}filename=disk:more\nsize=1m\nrw=read\nverify=crc32c\n");
    let told = "more: ";
    let at = "at offset 20480: ";
    let found = run(&place, &check, "");
    assert_eq!(found.status.code(), Some(1));
    let report = String::from_utf8(found.stdout.clone()).unwrap();
    for text in [&stderr(&found), &report] {
        assert!(text.contains(told) && text.contains(at), "{text}");
    }
    // In a group it is the file of the thread that found it.
    let group = format!(
        "[z]\n{cipher}filename=disk\nsize=64k\nrw=read\ngroup_reporting\n{check}group_reporting\n"
    );
    let found = run(&place, &group, "--output-format json");
    let document: Value = serde_json::from_slice(&found.stdout).unwrap();
    let first = &document["jobs"][0]["crypt_bench"]["verify"]["first_mismatch"];
    assert_eq!(
        (&first["file"], &first["offset_bytes"]),
        (&"more".into(), &20480.into())
    );
}

#[test]
fn what_would_be_written_is_explained() {
    let place = two();
    let text = "[a]\nfilename=disk:more\nrw=write\nsize=64k\n";
    fs::write(place.path().join("a.fio"), text).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(["explain", "a.fio"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for name in ["disk", "more"] {
        let line = format!("WRITES bytes 0 to 32767 of {name}");
        assert!(text.contains(&line), "{text}");
    }
}

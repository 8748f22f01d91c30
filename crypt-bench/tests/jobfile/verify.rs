//! Written, read back, compared: blocks that are changed behind a run's back are found, through encryption
//! too, and fio and this program understand each other's blocks.

#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::runner::{jobs, place, run, stderr, succeed};

const METHODS: [&str; 5] = ["crc32c", "crc32c-intel", "md5", "sha256", "sha512"];

/// A job over the whole file.
fn job(rw: &str, options: &str) -> String {
    format!("[v]\nfilename=disk\nrw={rw}\nbs=16k\n{options}\n")
}

fn write(place: &TempDir, rw: &str, options: &str) -> Value {
    let mut jobs = jobs(place, &job(rw, options), "--destroy-data-on disk");
    jobs[0]["crypt_bench"]["verify"].take()
}

/// Changes one bit of the file.
fn flip(place: &TempDir, at: usize) {
    let path = place.path().join("disk");
    let mut data = fs::read(&path).unwrap();
    data[at] ^= 0x10;
    fs::write(path, data).unwrap();
}

#[test]
fn what_is_written_is_read_back_whatever_the_pattern() {
    for (rw, options) in [
        ("write", "verify=crc32c"),
        ("randwrite", "verify=md5\nioengine=io_uring\niodepth=8"),
        (
            "randwrite",
            "verify=sha256\nnorandommap\nverify_interval=4k",
        ),
        ("write", "verify=sha512\nloops=3\nnumber_ios=100"),
        (
            "randwrite:4",
            "verify=pattern\nverify_pattern=0xff%o\"abcd\"-12",
        ),
        ("write", "verify=crc32c\nverify_pattern=%o\nfsync=4"),
        (
            "write",
            "verify=crc32c\nramp_time=10ms\nruntime=30ms\ntime_based",
        ),
    ] {
        let verified = write(&place(), rw, options);
        assert_eq!(verified["mismatches"], 0, "{options}");
        assert!(
            verified["blocks"].as_u64().unwrap() >= 64,
            "{options}: {verified}"
        );
        assert!(verified["read_back"]["io_bytes"].as_u64().unwrap() >= 1 << 20);
    }
    let verified = write(&place(), "randrw", "verify=crc32c\nrwmixread=50");
    let blocks = verified["blocks"].as_u64().unwrap();
    assert!((16..48).contains(&blocks), "{verified}");
    assert!(write(&place(), "write", "verify=crc32c\ndo_verify=0")["read_back"].is_null());
}

#[test]
fn a_block_that_changed_is_found_by_a_later_run() {
    for method in METHODS {
        let place = place();
        let options = format!("verify={method}\nverify_interval=4k");
        write(&place, "randwrite", &format!("{options}\ndo_verify=0"));
        for rw in ["read", "randread"] {
            let report = succeed(&place, &job(rw, &options), "");
            assert!(
                report.contains("verify: 256 blocks, all as they should be"),
                "{report}"
            );
        }
        flip(&place, 300_000);
        let output = run(&place, &job("read", &options), "--output-format json");
        assert_eq!(output.status.code(), Some(1));
        let message = stderr(&output);
        let place_of_it = "disk: ";
        assert!(message.contains(place_of_it), "{message}");
        assert!(
            message.contains("block of 4096 bytes at offset 299008: expected "),
            "{message}"
        );
        assert!(message.contains("1 of 256 blocks are wrong"), "{message}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let job = &document["jobs"][0];
        assert_eq!(
            (job["error"].as_i64(), job["total_err"].as_u64()),
            (Some(84), Some(1))
        );
        let first = &job["crypt_bench"]["verify"]["first_mismatch"];
        assert_eq!(first["offset_bytes"], 299_008);
        assert_eq!(first["file"], "disk");
        assert_ne!(first["expected"], first["found"]);
    }
}

#[test]
fn nothing_is_written_where_only_comparing_is_asked_for() {
    let place = place();
    let options = "verify=crc32c\nnumber_ios=20";
    write(&place, "randwrite", options);
    let before = fs::read(place.path().join("disk")).unwrap();
    let only = job("randwrite", &format!("{options}\nverify_only"));
    let found = jobs(&place, &only, "--readonly");
    assert_eq!(found[0]["crypt_bench"]["verify"]["blocks"], 20);
    assert_eq!(found[0]["write"]["total_ios"], 0);
    assert!(fs::read(place.path().join("disk")).unwrap() == before);
    fs::write(place.path().join("disk"), vec![1; 1 << 20]).unwrap();
    let output = run(&place, &only, "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("magic number of the header"),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("20 of 20 blocks"),
        "{}",
        stderr(&output)
    );
    let fatal = run(&place, &format!("{only}verify_fatal=1\n"), "");
    assert!(
        stderr(&fatal).contains("1 of 1 blocks"),
        "{}",
        stderr(&fatal)
    );
}

#[test]
fn a_change_of_ciphertext_is_found_through_the_cipher() {
    let place = place();
    fs::write(place.path().join("key"), (0..64).collect::<Vec<u8>>()).unwrap();
    let crypt = "crypt_cipher=aes-xts-plain64\ncrypt_key_file=key\ncrypt_sector_size=4k";
    for options in ["verify=crc32c", "verify=pattern\nverify_pattern=0x5a%o"] {
        let options = format!("{options}\n{crypt}");
        for policy in ["inline", "workqueue"] {
            let options = format!("{options}\ncrypt_policy={policy}\nioengine=io_uring\niodepth=4");
            assert_eq!(write(&place, "randwrite", &options)["mismatches"], 0);
        }
        succeed(&place, &job("read", &options), "");
        flip(&place, 700_000);
        let output = run(&place, &job("read", &options), "");
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).contains("1 of 64 blocks are wrong"),
            "{}",
            stderr(&output)
        );
    }
}

/// fio with these arguments in the folder; `None` where it is not installed.
fn fio(place: &TempDir, arguments: &str) -> Option<(bool, String)> {
    let output = Command::new("fio")
        .args([
            "--name=v",
            "--filename=disk",
            "--size=1m",
            "--bs=16k",
            "--verify_state_save=0",
        ])
        .args(arguments.split_whitespace())
        .current_dir(place.path())
        .output()
        .ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8(text).unwrap()))
}

#[test]
fn fio_understands_our_blocks_and_we_understand_its() {
    if Command::new("fio").arg("--version").output().is_err() {
        println!("skipped: fio is not installed");
        return;
    }
    for options in [
        "verify=crc32c",
        "verify=crc32c verify_interval=4k",
        "verify=md5",
        "verify=md5 verify_interval=512",
        "verify=pattern verify_pattern=0xff%o\"abcd\"-12",
        "verify=crc32c verify_pattern=0xdeadface",
    ] {
        let ours = options.replace(' ', "\n");
        let theirs = format!("--{}", options.replace(' ', " --"));
        let place = place();
        write(&place, "randwrite", &format!("{ours}\ndo_verify=0"));
        let (good, text) = fio(&place, &format!("--rw=read {theirs}")).unwrap();
        assert!(good, "{options}: {text}");
        flip(&place, 500_000);
        // Where the last interval of a block is good, fio says what is wrong, and succeeds.
        let (good, text) = fio(&place, &format!("--rw=read {theirs}")).unwrap();
        assert!(!good || text.contains("verify failed"), "{options}: {text}");
        let (good, text) = fio(&place, &format!("--rw=randwrite --do_verify=0 {theirs}")).unwrap();
        assert!(good, "{options}: {text}");
        succeed(&place, &job("read", &ours), "");
        flip(&place, 500_000);
        let output = run(&place, &job("read", &ours), "");
        assert_eq!(output.status.code(), Some(1), "{options}");
    }
}

//! `crypt-bench run` as a user meets it: what is transferred, what is reported, what is refused.

#![forbid(unsafe_code)]

use std::fs;

use serde_json::Value;

use crate::common::folder;
use crate::runner::{jobs, place, run, stderr, succeed};

#[test]
fn bytes_are_exact_and_latencies_make_sense() {
    let text = "[global]\nioengine=null\nsize=1m\n[mix]\nrw=randrw\nbs=4k\niodepth=8\n\
                [split]\nstonewall\nrw=randread\nbssplit=4k/50:8k/50\nnorandommap\nloops=3\n\
                [twins]\nstonewall\nrw=write\nbs=64k\nnumjobs=2\ngroup_reporting\nfsync=4\n";
    let jobs = jobs(&place(), text, "");
    assert_eq!(jobs.len(), 3);
    let bytes = |job: &Value, direction: &str| job[direction]["io_bytes"].as_u64().unwrap();
    assert_eq!(bytes(&jobs[0], "read") + bytes(&jobs[0], "write"), 1 << 20);
    let split = bytes(&jobs[1], "read");
    assert!((3 << 20..(3 << 20) + 8192).contains(&split), "{split}");
    assert_eq!(bytes(&jobs[2], "write"), 2 << 20);
    assert_eq!(jobs[2]["write"]["total_ios"], 32);
    assert_eq!(jobs[2]["sync"]["total_ios"], 8);
    assert_eq!(jobs[2]["job options"]["bs"], "64k");
    assert_eq!(jobs[0]["job options"]["iodepth"], "8");
    let clat = &jobs[0]["read"]["clat_ns"];
    assert_eq!(clat["N"], jobs[0]["read"]["total_ios"]);
    let at = |percentile: &str| clat["percentile"][percentile].as_u64().unwrap();
    assert!(at("50.000000") <= at("99.000000"));
    assert!(at("99.000000") <= clat["max"].as_u64().unwrap());
    assert!(jobs[2]["read"]["clat_ns"].get("percentile").is_none());
}

#[test]
fn a_text_report_names_what_it_shows() {
    let text = "[a]\nioengine=null\nsize=64k\nrate_iops=2000\npercentile_list=50:99.9\nlat_percentiles=1\n";
    let report = succeed(&place(), text, "");
    for expected in [
        "a: (groupid=0, threads=1): err=0 (immediate)",
        "16 requests, 65536 bytes",
        "clat percentiles (nsec):",
        "lat percentiles (nsec):",
        "response, from the intended start",
        "99.90th=[",
    ] {
        assert!(report.contains(expected), "{expected}\n{report}");
    }
}

#[test]
fn time_and_pace_are_kept() {
    let text = "[timed]\nioengine=null\nsize=1m\nrw=randread\ntime_based\nruntime=50ms\nramp_time=10ms\n\
                [paced]\nstonewall\nioengine=null\nsize=1m\nbs=64k\nrate=64m\nrw=read\n\
                [poisson]\nstonewall\nioengine=null\nsize=64k\nrate_iops=5000\nrate_process=poisson\n";
    let jobs = jobs(&place(), text, "");
    assert!(jobs[0]["job_runtime"].as_u64().unwrap() <= 50);
    assert!(jobs[0]["read"]["io_bytes"].as_u64().unwrap() > 0);
    // 16 requests at 1024 per second: the last is due after 14.6 ms.
    assert!(jobs[1]["job_runtime"].as_u64().unwrap() >= 14);
    assert_eq!(jobs[1]["read"]["response_ns"]["N"], 16);
    assert_eq!(jobs[2]["read"]["response_ns"]["N"], 16);
}

#[test]
fn files_are_read_as_they_are_and_written_only_with_permission() {
    let place = place();
    let before = fs::read(place.path().join("disk")).unwrap();
    let read = "[r]\nfilename=disk\nrw=randread\nbs=16k\n";
    let of_read = &jobs(&place, read, "")[0]["read"];
    assert_eq!(of_read["io_bytes"], 1 << 20);
    // A system call has no submission apart from it.
    assert_eq!(of_read["slat_ns"]["max"], 0);
    assert!(of_read["clat_ns"]["min"].as_u64().unwrap() > 0);
    let write = "[w]\nfilename=disk\nrw=write\nbs=64k\nsize=128k\noffset=256k\nend_fsync=1\n";
    let refused = run(&place, write, "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("--destroy-data-on"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(fs::read(place.path().join("disk")).unwrap(), before);
    let written = jobs(&place, write, "--destroy-data-on disk");
    assert_eq!(written[0]["write"]["io_bytes"], 128 << 10);
    assert_eq!(written[0]["sync"]["total_ios"], 1);
    let after = fs::read(place.path().join("disk")).unwrap();
    assert_eq!(after.len(), before.len());
    assert!(after[..256 << 10] == before[..256 << 10]);
    assert!(after[384 << 10..] == before[384 << 10..]);
    assert!(
        after[256 << 10..384 << 10]
            .chunks(4096)
            .all(|chunk| chunk != &before[..4096])
    );
}

#[test]
fn new_files_need_to_be_asked_for() {
    let place = place();
    let text = "[n]\nrw=randwrite\nsize=64k\nnumjobs=2\n";
    let refused = run(&place, text, "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("--create"),
        "{}",
        stderr(&refused)
    );
    assert!(!place.path().join("n.0.0").exists());
    succeed(&place, text, "--create");
    for name in ["n.0.0", "n.1.0"] {
        assert_eq!(fs::metadata(place.path().join(name)).unwrap().len(), 65536);
    }
}

#[test]
fn encrypted_jobs_report_like_others_whatever_the_policy() {
    let place = place();
    fs::write(place.path().join("key"), (0..64).collect::<Vec<u8>>()).unwrap();
    let mut images = Vec::new();
    for policy in [
        "inline",
        "workqueue",
        "adaptive",
        "adaptive:latency,max_workers=1,max_cpu=50",
    ] {
        let text = format!(
            "[w]\nfilename=disk\nrw=write\nbs=64k\ncrypt_cipher=aes-xts-plain64\ncrypt_policy={policy}\n\
             crypt_sector_size=4k\ncrypt_key_file=key\n"
        );
        let jobs = jobs(&place, &text, "--destroy-data-on disk");
        assert_eq!(jobs[0]["write"]["io_bytes"], 1 << 20);
        images.push(fs::read(place.path().join("disk")).unwrap());
    }
    assert!(images.iter().all(|image| *image == images[0]));
    let plain = "[w]\nfilename=disk\nrw=write\nbs=64k\n";
    succeed(&place, plain, "--destroy-data-on disk");
    assert!(fs::read(place.path().join("disk")).unwrap() != images[0]);
    let short = "[w]\nfilename=disk\ncrypt_cipher=aes-xts-plain64\ncrypt_key_file=disk\n";
    let message = stderr(&run(&place, short, ""));
    assert!(
        message.contains("a.fio:4: crypt_key_file: disk has 1048576 bytes"),
        "{message}"
    );
}

#[test]
fn the_job_file_with_options_of_our_own_runs_as_it_is() {
    let place = place();
    fs::create_dir(place.path().join("parts")).unwrap();
    fs::copy(
        folder().join("parts/key.txt"),
        place.path().join("parts/key.txt"),
    )
    .unwrap();
    let text = fs::read_to_string(folder().join("70-crypt.fio")).unwrap();
    let jobs = jobs(&place, &text, "--create");
    let names: Vec<&str> = jobs
        .iter()
        .map(|j| j["jobname"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["inline", "workqueue", "adaptive", "cbc", "plain"]);
    for (job, name) in jobs.iter().zip(names) {
        assert_eq!(
            (&job["error"], &job["write"]["io_bytes"]),
            (&0.into(), &65536.into())
        );
        let verified = &job["crypt_bench"]["verify"];
        assert_eq!(
            (&verified["blocks"], &verified["mismatches"]),
            (&8.into(), &0.into())
        );
        let data = fs::read(place.path().join(format!("{name}.0.0"))).unwrap();
        // The magic number of a header that is not encrypted.
        let is_plain = data.chunks(8192).all(|block| block[..2] == [0xca, 0xac]);
        assert_eq!(is_plain, name == "plain", "{name}: {:x?}", &data[..4]);
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_touched() {
    for (text, arguments, reason) in [
        (
            "[a]\nfilename=disk\nrw=randread\nrandom_distribution=zoned_abs:100/2m\n",
            "",
            "a.fio:4: random_distribution: the zones need 2097152 bytes",
        ),
        (
            "[a]\nfilename=disk\nverify_async=2\n",
            "",
            "a.fio:3: option `verify_async`",
        ),
        (
            "[a]\nfilename=disk\nrw=write\n",
            "--readonly",
            "a.fio:3: [a]: rw=write writes",
        ),
        (
            "[a]\nioengine=null\nsize=4k\ncpus_allowed=4095\n",
            "",
            "a.fio:4: cpus_allowed",
        ),
        (
            "[a]\nioengine=null\nsize=1t\nbs=1g\niodepth=16384\n",
            "",
            "bytes of memory",
        ),
        ("[a]\nfilename=disk\n", "--section b", "there are: a"),
    ] {
        let place = place();
        let output = run(&place, text, arguments);
        assert_eq!(output.status.code(), Some(2), "{text}: {}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }
    assert_eq!(
        succeed(&place(), "[a]\nfilename=disk\n", "--parse-only"),
        ""
    );
}

#[test]
fn output_goes_to_a_file() {
    let place = place();
    let text = "[a]\nioengine=null\nsize=4k\n";
    assert_eq!(
        succeed(&place, text, "--output-format json --output out.json"),
        ""
    );
    let document = fs::read_to_string(place.path().join("out.json")).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["jobs"][0]["jobname"], "a");
}

#[test]
fn keys_and_patterns_of_all_stages_are_looked_at_before_anything_is_made() {
    for (wrong, message) in [
        (
            "crypt_cipher=aes-xts-plain64\ncrypt_key_file=none",
            "a.fio:9: crypt_key_file: none: ",
        ),
        (
            "crypt_cipher=aes-xts-plain64\ncrypt_key_file=a.fio",
            "takes 64 or 32",
        ),
        (
            "crypt_cipher=aes-xts-plain64\ncrypt_key_file=.",
            "is no file",
        ),
        (
            "rw=write\nbuffer_pattern='none'",
            "a.fio:9: buffer_pattern: none: ",
        ),
    ] {
        let place = place();
        let text =
            format!("[new]\nrw=write\nsize=64k\n[b]\nstonewall\nfilename=disk\nbs=4k\n{wrong}\n");
        let output = run(&place, &text, "--create --destroy-data-on disk");
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let found = stderr(&output);
        assert!(found.contains(message), "{wrong}: {found}");
        assert!(!place.path().join("new.0.0").exists(), "{wrong}");
    }
}

#[test]
fn jobs_without_a_key_file_share_the_key_of_the_run() {
    let text = "[global]\nfilename=disk\nbs=4k\nsize=64k\nverify=crc32c\ncrypt_cipher=aes-xts-plain64\n\
                [w]\nrw=write\nnumjobs=2\n[r]\nstonewall\nrw=read\n";
    succeed(&place(), text, "--destroy-data-on disk");
}

//! What jobs do to a file: which blocks the options of load lead to, as a user can see it.

#![forbid(unsafe_code)]

use std::fs;

use crate::runner::{jobs, place};

/// Blocks of 4 KiB of `disk` that a job with these options changed, of 256.
fn written(options: &str) -> Vec<usize> {
    let place = place();
    let text = format!("[w]\nfilename=disk\n{options}\n");
    jobs(&place, &text, "--destroy-data-on disk");
    let after = fs::read(place.path().join("disk")).unwrap();
    let chunks = after.chunks(4096).enumerate();
    chunks
        .filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 1))
        .map(|(block, _)| block)
        .collect()
}

#[test]
fn zones_of_a_distribution_are_all_that_is_written() {
    let blocks = written("rw=randwrite\nrandom_distribution=zoned_abs:50/64k:50/64k\nio_size=2m");
    assert!(blocks.iter().all(|block| *block < 32), "{blocks:?}");
    assert!(blocks.len() > 28, "{blocks:?}");
    let blocks = written("rw=randwrite\nrandom_distribution=zoned:100/25:0/75\nio_size=4m");
    assert!(blocks.iter().all(|block| *block < 64), "{blocks:?}");
}

#[test]
fn strided_zones_leave_gaps() {
    let options = "zonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=16k\nsize=32k";
    let blocks = written(&format!("rw=write\n{options}"));
    assert_eq!(blocks, [0, 1, 8, 9, 16, 17, 24, 25]);
    let blocks = written(&format!("rw=write\noffset=512k\n{options}"));
    assert_eq!(blocks, [128, 129, 136, 137, 144, 145, 152, 153]);
}

#[test]
fn sequences_may_go_backwards_or_leave_holes() {
    let blocks = written("rw=write:-8k\nnumber_ios=4");
    assert_eq!(blocks, [0, 252, 253, 254]);
    assert_eq!(written("rw=write:8k\nnumber_ios=3"), [0, 3, 6]);
    let pair = written("rw=randwrite:2\nnumber_ios=2");
    assert_eq!(pair[1], pair[0] + 1);
    let same = written("rw=randwrite:4\nrw_sequencer=identical\nnumber_ios=4");
    assert_eq!(same.len(), 1);
}

#[test]
fn skewed_jobs_transfer_all_their_bytes() {
    for distribution in [
        "zipf:1.2",
        "pareto:0.2:0.5",
        "normal:10",
        "zoned:90/10:10/90",
    ] {
        let text = format!(
            "[a]\nioengine=null\nsize=4m\nrw=randrw\niodepth=8\nrandom_distribution={distribution}\n"
        );
        let jobs = jobs(&place(), &text, "");
        let bytes = |direction: &str| jobs[0][direction]["io_bytes"].as_u64().unwrap();
        assert_eq!(bytes("read") + bytes("write"), 4 << 20, "{distribution}");
    }
}

#[test]
fn a_latency_target_is_searched_and_reported() {
    let text = "[a]\nioengine=null\nsize=1m\nrw=randread\ntime_based\nruntime=30s\niodepth=8\n\
                latency_target=10s\nlatency_window=20ms\nlatency_percentile=90\n";
    let jobs = jobs(&place(), text, "");
    assert_eq!(jobs[0]["latency_depth"], 8);
    assert_eq!(jobs[0]["latency_target"], 10_000_000_000_u64);
    assert_eq!(jobs[0]["latency_window"], 20_000);
    // Only the last window counts, and the run ends with it, long before its time.
    assert!(jobs[0]["job_runtime"].as_u64().unwrap() < 20_000);
    assert!(jobs[0]["read"]["total_ios"].as_u64().unwrap() > 0);
}

#[test]
fn latencies_over_the_maximum_end_a_job() {
    let place = place();
    let text = "[a]\nfilename=disk\nrw=randread\ntime_based\nruntime=30s\nmax_latency=1us\nbs=1m\n";
    let output = crate::runner::run(&place, text, "--output-format json");
    assert!(!output.status.success());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["jobs"][0]["error"], 110);
    assert_eq!(document["jobs"][0]["total_err"], 1);
}

#[test]
fn a_steady_state_ends_its_group_and_is_reported() {
    let text = "[global]\nioengine=null\nsize=1m\nrw=randread\ntime_based\nruntime=60s\nrate_iops=500\n\
                ss=iops:100%\nss_dur=1\n[a]\nnumjobs=2\ngroup_reporting\n";
    let jobs = jobs(&place(), text, "");
    let steady = &jobs[0]["steadystate"];
    assert_eq!(steady["ss"], "iops:100.000000%");
    assert_eq!(
        (&steady["attained"], &steady["duration"]),
        (&1.into(), &1.into())
    );
    let iops = steady["data"]["iops"].as_array().unwrap();
    assert_eq!(iops.len(), 1);
    assert_eq!(steady["data"]["iops_mean"], iops[0]);
    assert!(jobs[0]["job_runtime"].as_u64().unwrap() < 50_000);
}

#[test]
fn a_job_may_wait_for_another_beside_a_third() {
    let text = "[global]\nioengine=null\nsize=1m\nbs=64k\n[first]\nrate_iops=200\n[second]\nwait_for=first\n\
                [third]\n";
    let jobs = jobs(&place(), text, "");
    for job in &jobs {
        assert_eq!(job["read"]["total_ios"], 16, "{}", job["jobname"]);
    }
}

#[test]
fn batches_and_durable_writes_transfer_the_same() {
    let place = place();
    let text = "[global]\nfilename=disk\nioengine=io_uring\niodepth=8\nbs=4k\n\
                [a]\nrw=randwrite\nsync=dsync\niodepth_batch=4\niodepth_batch_complete=2\niodepth_low=2\nfsync=64\n\
                [b]\nstonewall\nrw=randread\niodepth_batch_complete_min=0\n\
                [c]\nstonewall\nrw=write\nsync=1\niodepth_batch_complete_max=1\n";
    let jobs = jobs(&place, text, "--destroy-data-on disk");
    assert_eq!(jobs[0]["write"]["total_ios"], 256);
    assert_eq!(jobs[0]["sync"]["total_ios"], 4);
    assert_eq!(jobs[1]["read"]["total_ios"], 256);
    assert_eq!(jobs[2]["write"]["total_ios"], 256);
}

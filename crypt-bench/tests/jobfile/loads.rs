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

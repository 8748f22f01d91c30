//! Doubts that `crypt-bench run` has about its own figures.

#![forbid(unsafe_code)]

use serde_json::Value;

use crate::runner::{jobs, place, succeed};

fn kinds(job: &Value) -> Vec<&str> {
    let doubts = job["crypt_bench"]["doubts"].as_array().unwrap();
    doubts
        .iter()
        .map(|doubt| doubt["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn what_was_asked_for_and_not_had_is_doubted() {
    let place = place();
    let text = "[deep]\nfilename=disk\nrw=randread\nbs=512\niodepth=16\n\
                [short]\nstonewall\nfilename=disk\nrw=randread\nbs=64k\n\
                [paced]\nstonewall\nioengine=null\nsize=1m\niodepth=8\nbs=512\nrate_iops=20000\n\
                [good]\nstonewall\nioengine=null\nsize=1m\nbs=4k\nloops=100\n";
    let jobs = jobs(&place, text, "");
    // Plain system calls are one at a time, and read through the page cache.
    assert!(
        kinds(&jobs[0]).contains(&"depth_not_reached"),
        "{}",
        jobs[0]["crypt_bench"]
    );
    assert!(kinds(&jobs[0]).contains(&"cached"));
    assert!(kinds(&jobs[1]).contains(&"few_samples"));
    for job in &jobs[2..] {
        for doubt in [
            "depth_not_reached",
            "cached",
            "mix_off",
            "short_transfers",
            "runtime_short",
        ] {
            assert!(!kinds(job).contains(&doubt), "{}", job["crypt_bench"]);
        }
    }
    let doubt = &jobs[0]["crypt_bench"]["doubts"][0];
    assert_eq!(doubt["invalidates"], true);
    assert!(doubt["text"].as_str().unwrap().len() > 10);
    let report = succeed(
        &place,
        "[deep]\nfilename=disk\nrw=randread\nbs=512\niodepth=16\n",
        "",
    );
    assert!(report.contains("  INVALID: depth 16 asked, "), "{report}");
}

//! Objectives and limits of the adaptive policy, and its account of what it decided: what `matrix` and `simulate`
//! make of them.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::common::{Place, text};

/// Throughput in bytes per second and processor time in ns per byte.
type Figures = (f64, f64);

#[test]
fn objectives_are_policies_like_others_in_results_and_reports() {
    let place = Place::new();
    place.succeed(
        "matrix --device memory --rw randrw --bs 64k --depth 4 --repeats 1 --size 4m --runtime 20ms --ramp 5ms \
         --policy adaptive:max_workers=1,latency,adaptive:efficiency --out results",
    );
    let records = place.records("results");
    let policies: Vec<&str> = records.iter().map(|r| r.cell.policy.as_str()).collect();
    let expected = [
        "inline",
        "workqueue",
        "adaptive:latency,max_workers=1",
        "adaptive:efficiency",
    ];
    assert_eq!(policies, expected);
    let placed = records[3].achieved.placements;
    assert!(placed.inline > 0 && placed.offload + placed.split == 0);
    let csv = place.succeed("report results --format csv");
    assert!(csv.contains("\"adaptive:latency,max_workers=1\""), "{csv}");
}

#[test]
fn on_many_cores_each_objective_is_best_at_its_own() {
    let place = Place::new();
    place.succeed(
        "simulate --machine server-64 --device memory --rw randread --bs 64k --depth 32 --jobs 1 --repeats 1 \
         --sector-size 4k --runtime 10ms --ramp 1ms --out results \
         --policy inline,adaptive,adaptive:throughput,adaptive:efficiency",
    );
    let figures: BTreeMap<String, Figures> = place
        .records("results")
        .into_iter()
        .map(|record| {
            let read = record.read.unwrap();
            let cpu_ns_per_byte = record.cpu.total_s * 1e9 / read.bytes as f64;
            (record.cell.policy, (read.bw_bytes_per_s, cpu_ns_per_byte))
        })
        .collect();
    let (most, _) = figures["adaptive:throughput"];
    let (_, least) = figures["adaptive:efficiency"];
    for (policy, (bytes_per_s, cpu_ns_per_byte)) in &figures {
        assert!(*bytes_per_s <= most, "{policy}: {figures:?}");
        assert!(*cpu_ns_per_byte >= least, "{policy}: {figures:?}");
    }
}

#[test]
fn the_policy_says_what_it_decided_and_why() {
    let place = Place::new();
    let axes = "--device memory --rw randread --bs 4k,64k --depth 1,32 --size 4m --repeats 2 --runtime 20ms \
                --ramp 5ms --policy adaptive --explain-policy";
    let printed = place.succeed(&format!("matrix {axes} --out results"));
    assert!(
        printed.contains("What the policy did, and why"),
        "{printed}"
    );
    for record in place.records("results") {
        let explains = record.cell.policy == "adaptive";
        let achieved = &record.achieved;
        assert_eq!(!achieved.decisions.is_empty(), explains, "{achieved:?}");
        assert_eq!(!achieved.predictions.is_empty(), explains, "{achieved:?}");
        let decided: u64 = achieved.decisions.iter().map(|counted| counted.jobs).sum();
        let placed: u64 = achieved.predictions.iter().map(|way| way.jobs).sum();
        assert_eq!(decided, placed);
        // Requests of the window and decisions of the window differ by what is in flight at its ends.
        let ios = record.read.map_or(0, |read| read.ios);
        let apart = u64::from(2 * record.cell.depth);
        assert!(
            !explains || decided.abs_diff(ios) <= apart,
            "{decided} {ios}"
        );
    }
    let again = place.succeed("report results --format text --explain-policy");
    assert!(again.contains("What the policy did, and why"), "{again}");
    let refused = place.run("report results --format csv --explain-policy");
    let message = text(&refused.stderr);
    assert!(
        !refused.status.success() && message.contains("--format text"),
        "{message}"
    );
}

#[test]
fn a_simulated_policy_says_what_it_decided_too() {
    let place = Place::new();
    let printed = place.succeed(
        "simulate --machine server-64 --device memory --rw randread --bs 64k --depth 1 --jobs 1 --repeats 1 \
         --sector-size 4k --runtime 5ms --ramp 1ms --policy adaptive --explain-policy --out results",
    );
    assert!(printed.contains("awake_workers"), "{printed}");
    let records = place.records("results");
    let split = records[2]
        .achieved
        .predictions
        .iter()
        .find(|way| way.placement == "split");
    let split = split.unwrap();
    assert!(
        split.jobs > 0 && split.taken_ns_mean.unwrap() > 0.0,
        "{split:?}"
    );
}

//! Objectives and limits of the adaptive policy: what `matrix` and `simulate` make of them.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::common::Place;

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

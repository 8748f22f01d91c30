//! `crypt-bench simulate` and `crypt-bench calibrate`.

#![forbid(unsafe_code)]

use std::fs;

use crate::common::{Place, text};

const SMALL: &str = "--device memory,model:hdd --rw randread,randwrite --bs 4k,64k --depth 1,4 --sector-size 4k \
                     --runtime 20ms --ramp 2ms --machine two-cores --policy adaptive";

#[test]
fn a_simulation_has_the_results_of_a_matrix_and_says_what_it_is() {
    let place = Place::new();
    let summary = place.succeed(&format!("simulate {SMALL} --repeats 2 --out results"));
    assert!(summary.contains("adaptive"), "{summary}");
    let records = place.records("results");
    assert_eq!(records.len(), 2 * 2 * 2 * 2 * 3 * 2);
    for record in &records {
        let doubts: Vec<String> = record.doubts.iter().map(ToString::to_string).collect();
        assert!(
            doubts.iter().any(|doubt| doubt.contains("simulated")),
            "{doubts:?}"
        );
        assert_eq!(record.achieved.engine, "simulated");
    }
    assert!(
        records
            .iter()
            .enumerate()
            .all(|(n, record)| record.sequence == n as u64)
    );
    let manifest = place.manifest("results");
    assert_eq!(
        (
            manifest.environment.host.as_str(),
            manifest.environment.cpus
        ),
        ("two-cores", 2)
    );
    let markdown = place.succeed("report results --format markdown");
    assert!(markdown.contains("simulated"), "{markdown}");
    assert!(
        fs::read_to_string(place.path("results/report.html"))
            .unwrap()
            .contains("simulated")
    );
}

#[test]
fn the_same_simulation_gives_the_same_figures() {
    let place = Place::new();
    for out in ["first", "second"] {
        place.succeed(&format!("simulate {SMALL} --repeats 1 --out {out}"));
    }
    let figures = |out| fs::read_to_string(place.path(out).join("results.jsonl")).unwrap();
    assert_eq!(figures("first"), figures("second"));
    // The machine of a run is kept beside its results, and can be used again.
    place.succeed(&format!(
        "simulate {} --repeats 1 --out third",
        SMALL.replace("two-cores", "first/machine.toml")
    ));
    assert_eq!(figures("first"), figures("third"));
}

#[test]
fn what_cannot_be_simulated_is_refused_and_nothing_is_written() {
    let place = Place::new();
    fs::write(place.path("bad.toml"), "name = \"x\"\ncores = 2\n").unwrap();
    for (arguments, advice) in [
        ("--machine no-such-machine", "server-64"),
        ("--machine bad.toml", "line"),
        ("--machine two-cores --device file:/dev/null", "model:NAME"),
        ("--machine two-cores --device scratch", "model:NAME"),
        (
            "--machine two-cores --device model:null-blk:hard",
            "null-blk:timer:NS",
        ),
        ("--machine two-cores --issuers 5", "0,1"),
        (
            "--machine two-cores --cipher aes-xts-plain",
            "aes-xts-plain64",
        ),
        ("--machine two-cores --depth 0", "--depth 0"),
    ] {
        let output = place.run(&format!("simulate {arguments} --out results"));
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(message.contains(advice), "{arguments}: {message}");
        assert!(!place.path("results").exists(), "{arguments}");
    }
}

#[test]
fn a_published_table_stands_beside_its_simulation_and_is_held_against_it() {
    let place = Place::new();
    let list = place.succeed("simulate --preset list");
    assert!(
        list.contains("simulated on: the machine dorminy-host"),
        "{list}"
    );
    let short = "--bs 4k --runtime 5ms --ramp 2ms --repeats 2";
    let shown = place.succeed(&format!(
        "simulate --preset dorminy-optane {short} --out results"
    ));
    for part in [
        "Simulated: on the machine dorminy-optane-host.",
        "simulated",
        "published     1256          1703    +36 %",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(place.manifest("results").environment.cpus, 12);
    let held = place.succeed("published results --check");
    assert!(
        held.contains("dorminy-optane/randwrite-4k-128-4/no_workqueue/lat_us_p99"),
        "{held}"
    );
    assert!(held.contains("2 of 2 published changes"), "{held}");

    // Another machine is asked "what if"; what it misses has no explanation.
    let script =
        "simulate --preset cloudflare-brd --machine two-cores --runtime 5ms --ramp 1ms --out there";
    let other = place.succeed(script);
    assert!(
        other.contains("Simulated: on the machine two-cores."),
        "{other}"
    );
    place.succeed("simulate --machine two-cores --device null --bs 4k --depth 1 --runtime 2ms --ramp 1ms --out plain");
    for (arguments, status, reason) in [
        ("published plain", 2, "simulate --preset NAME"),
        ("published nosuch", 2, "nosuch"),
        ("simulate --preset nosuch", 2, "there is no such table"),
        (
            "simulate --preset dorminy-ssd --matrix smoke",
            2,
            "cannot be used with",
        ),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments}");
        let error = text(&output.stderr);
        assert!(error.contains(reason), "{arguments}: {error}");
    }
}

#[test]
fn machines_of_several_sizes_are_one_result_and_lines_of_a_report() {
    let place = Place::new();
    let shown = place.succeed(
        "simulate --machine server-64 --cores 1,2,4,8 --device null --rw randread --bs 64k --depth 8 --policy adaptive \
         --runtime 3ms --ramp 1ms --repeats 2 --out results",
    );
    assert!(
        shown.contains("Throughput: adaptive is not the best in")
            || shown.contains("Throughput: no policy beats adaptive"),
        "{shown}"
    );
    let plan = place.manifest("results").plan;
    let sizes: Vec<_> = plan.iter().map(|cell| (cell.cores, cell.workers)).collect();
    assert!(
        sizes.contains(&(Some(1), 1)) && sizes.contains(&(Some(8), 8)),
        "{sizes:?}"
    );
    assert!(
        place
            .read("results", "report.html")
            .contains("Throughput against cores")
    );
    let refused = place.run("matrix --cores 2 --device null --out measured");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("crypt-bench simulate"));
}

//! `crypt-bench noise` and `crypt-bench history`.

#![forbid(unsafe_code)]

use std::fs;

use serde_json::Value;

use crate::common::{Place, assert_schema, text};
use crate::refuse::refused;

const TINY: &str = "device = ['null']\nrw = ['randread']\nbs = ['4k']\ndepth = [1, 2]\npolicy = ['inline']\nsize = '1m'\n\
                    runtime = '10ms'\nramp = '1ms'\n";

#[test]
fn the_program_is_measured_against_itself_or_what_is_stored_is_halved() {
    let place = Place::new();
    fs::write(place.path("tiny.toml"), TINY).unwrap();
    let shown = place.succeed("noise --matrix tiny.toml --repeats 3 --out aa --decisions 5");
    assert!(
        shown.contains("null randread 4k depth 2") && shown.contains("detectable"),
        "{shown}"
    );
    let figures = |arguments: &str| -> usize {
        let json: Value = serde_json::from_str(&place.succeed(arguments)).unwrap();
        let figures = json["figures"].as_array().unwrap();
        assert!(
            figures
                .iter()
                .all(|figure| figure["repeats"].as_u64().unwrap() <= 3),
            "{json}"
        );
        figures.len()
    };
    let throughput = "--metric bw_bytes_per_s --json";
    // A repeat in which nothing completed, as on a loaded machine, leaves fewer; more there can't be.
    assert!(figures(&format!("noise aa/baseline aa/candidate {throughput}")) <= 2);
    assert!(figures(&format!("noise aa/baseline {throughput}")) <= 2);
}

#[test]
fn what_has_no_noise_is_refused() {
    let place = Place::new();
    fs::write(place.path("tiny.toml"), TINY).unwrap();
    place.succeed("matrix --matrix tiny.toml --repeats 1 --out once");
    let alone = place.succeed("noise once");
    assert!(
        alone.contains("no cell has repeats that can be compared"),
        "{alone}"
    );
    for (arguments, reason) in [
        ("noise", "--matrix"),
        ("noise once --matrix tiny.toml", "cannot be used with"),
        ("noise nowhere", "nowhere"),
        ("noise once --effect 10", "with its sign"),
        ("noise once --effect 0%", "above 0%"),
        ("noise --matrix nothing.toml", "nothing.toml"),
        ("noise --matrix tiny.toml --repeats 0", "--repeats 0"),
    ] {
        refused(&place, arguments, reason);
    }
    let three = place.run("noise once once once");
    assert_eq!(three.status.code(), Some(2), "{}", text(&three.stderr));
}

#[test]
fn a_history_grows_by_a_line_for_each_run() {
    let place = Place::new();
    let simulate = "simulate --machine two-cores --device memory --rw randread --bs 64k --depth 1 --policy inline \
                    --sector-size 4k --runtime 5ms --ramp 1ms";
    place.succeed(&format!("{simulate} --repeats 2 --out one"));
    place.succeed(&format!("{simulate} --repeats 3 --out two"));
    refused(
        &place,
        "history show",
        "`crypt-bench history add DIR` begins one",
    );
    place.succeed("history add one");
    place.succeed("history add two");
    let lines = place.read("reports", "history.jsonl");
    assert_eq!(lines.lines().count(), 2);
    let values = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    assert_schema("history.schema.json", values);
    refused(&place, "history add one", "has this run already");

    let shown = place.succeed("history show");
    assert!(
        shown.starts_with("no changes of level are seen") && shown.contains("2 runs, 2 figures"),
        "{shown}"
    );
    place.succeed("history page");
    let page = place.read("reports", "trend.html");
    assert_eq!(page.matches("<svg ").count(), 2, "throughput and p99");

    // A crash in the middle of a line: what was whole stays, and the next run follows it.
    let torn = format!("{lines}{}", &lines[..100]);
    fs::write(place.path("reports/history.jsonl"), torn).unwrap();
    place.succeed(&format!("{simulate} --repeats 4 --out three"));
    place.succeed("history add three");
    assert_eq!(place.read("reports", "history.jsonl").lines().count(), 3);
    fs::write(
        place.path("reports/history.jsonl"),
        lines.replacen("\"repeats\":2", "\"repeats\":9", 1),
    )
    .unwrap();
    refused(&place, "history show", "history.jsonl:1: changed after");
}

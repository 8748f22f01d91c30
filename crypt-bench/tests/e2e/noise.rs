//! `crypt-bench noise`.

#![forbid(unsafe_code)]

use std::fs;

use serde_json::Value;

use crate::common::{Place, text};
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

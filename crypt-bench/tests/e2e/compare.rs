//! `crypt-bench compare`.

#![forbid(unsafe_code)]

use serde_json::Value;

use crate::common::{Place, text};
use crate::refuse::refused;

const SMALL: &str = "simulate --machine two-cores --device memory,model:nvme --rw randread --bs 4k --depth 1,8 \
                     --policy inline,workqueue --workers 2 --sector-size 4k --runtime 5ms --ramp 1ms --repeats 5";

#[test]
fn the_same_simulation_twice_is_the_same_and_a_slower_cipher_is_found() {
    let place = Place::new();
    place.succeed(&format!("{SMALL} --out one"));
    place.succeed(&format!("{SMALL} --out two"));
    place.succeed(&format!("{SMALL} --cipher-throttle 50MB/s --out slow"));

    let same = place.succeed("compare one two");
    let shown = same
        .lines()
        .filter(|line| line.ends_with("better") || line.ends_with("worse"));
    assert_eq!(shown.count(), 0, "{same}");
    // Two devices, two depths, two policies, three metrics.
    assert_eq!(
        same.lines().filter(|line| line.ends_with('~')).count(),
        24,
        "{same}"
    );

    let document = place.succeed("compare one slow --across cipher-throttle --format json");
    let document: Value = serde_json::from_str(&document).unwrap();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for cell in cells {
        let throughput = &cell["changes"][0];
        assert_eq!(throughput["change"], "worse", "{cell}");
        assert!(throughput["ratio_high"].as_f64().unwrap() < 0.9, "{cell}");
    }
    let apart = place.succeed("compare one slow");
    assert!(
        apart.contains("! cipher-throttle") && apart.contains("nothing to compare"),
        "{apart}"
    );
}

#[test]
fn every_format_is_written_where_it_is_wanted() {
    let place = Place::new();
    place.succeed(&format!("{SMALL} --out one"));
    place.succeed("compare one one --format markdown -o change.md");
    assert!(
        place
            .read(".", "change.md")
            .starts_with("### one compared with one")
    );
    let csv = place.succeed("compare one one --format csv --metric iops,lat_ns_mean");
    assert_eq!(csv.lines().count(), 1 + 8 * 2, "{csv}");
}

#[test]
fn what_cant_be_compared_is_refused() {
    let place = Place::new();
    place.succeed(&format!("{SMALL} --out one"));
    for (arguments, reason) in [
        ("compare one nowhere", "nowhere"),
        ("compare one one --metric speed", "one of bw_bytes_per_s"),
        ("compare one one --across colour", "one of device"),
        (
            "compare one one --across policy",
            "several cells that differ only in it",
        ),
    ] {
        refused(&place, arguments, reason);
    }
    let alone = place.run("compare one");
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone.stderr));
}

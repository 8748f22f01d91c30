//! `crypt-bench cipher`: what it prints, and what it refuses.

#![forbid(unsafe_code)]

use std::fs;

use serde_json::Value;

use crate::common::{Place, text};

const KEYS: [&str; 9] = [
    "cipher",
    "key_bits",
    "sector_size",
    "request_bytes",
    "backend",
    "threads",
    "direction",
    "gb_per_s",
    "cycles_per_byte",
];

fn records(place: &Place, arguments: &str) -> Vec<Value> {
    let output = place.succeed(&format!("cipher --json --seconds 0.01 {arguments}"));
    let Value::Array(records) = serde_json::from_str(&output).unwrap() else {
        panic!("not an array: {output}");
    };
    records
}

fn count(records: &[Value], key: &str, value: &Value) -> usize {
    records
        .iter()
        .filter(|record| record[key] == *value)
        .count()
}

#[test]
fn json_records_have_exactly_the_keys() {
    let place = Place::new();
    let all = records(
        &place,
        "--request 4k,16k --sector-size 512,4k --threads 1,2",
    );
    for record in &all {
        let fields = record.as_object().unwrap();
        let mut keys: Vec<&str> = fields.keys().map(String::as_str).collect();
        let mut expected = KEYS;
        keys.sort_unstable();
        expected.sort_unstable();
        assert_eq!(keys, expected, "{record}");
        assert!(record["gb_per_s"].as_f64().unwrap() > 0.0, "{record}");
        let cycles = &record["cycles_per_byte"];
        assert!(
            cycles.is_null() || cycles.as_f64().unwrap() > 0.0,
            "{record}"
        );
    }
    // Two requests, two sector sizes, two numbers of threads.
    assert_eq!(count(&all, "cipher", &"memcpy".into()), 8);
    // With two key sizes and two directions each.
    assert_eq!(count(&all, "cipher", &"aes-ecb-limit".into()), 32);
    assert_eq!(count(&all, "cipher", &"aes-xts-plain64".into()), 32);
}

#[test]
fn every_flag_narrows() {
    let place = Place::new();
    let flags = "--cipher aes-xts-plain64 --key-bits 512 --sector-size 512 --request 64k \
                 --backend portable --threads 1 --direction decrypt";
    let all = records(&place, flags);
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(all[1]["cipher"], "aes-ecb-limit");
    assert_eq!(all[1]["key_bits"], 256);
    let cipher = &all[2];
    assert_eq!(cipher["cipher"], "aes-xts-plain64");
    assert_eq!(cipher["key_bits"], 512);
    assert_eq!(cipher["sector_size"], 512);
    assert_eq!(cipher["request_bytes"], 65536);
    assert_eq!(cipher["backend"], "portable");
    assert_eq!(cipher["threads"], 1);
    assert_eq!(cipher["direction"], "decrypt");
}

#[test]
fn people_get_a_table_and_a_heat_map() {
    let place = Place::new();
    let flags =
        "cipher --seconds 0.01 --request 4k --sector-size 4k --svg map.svg --curve curve.svg";
    let output = place.succeed(flags);
    for expected in [
        "GB/s",
        "cycles/B",
        "of limit",
        "memcpy",
        "Cipher throughput in memory",
    ] {
        assert!(output.contains(expected), "{expected}: {output}");
    }
    let picture = fs::read_to_string(place.path("map.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("aes-xts-plain64"));
    let curve = fs::read_to_string(place.path("curve.svg")).unwrap();
    assert!(curve.starts_with("<svg") && curve.contains("one byte more, odd address"));
    assert_eq!(
        curve.matches("<polyline").count(),
        4,
        "two directions, aligned and not"
    );
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = Place::new();
    for (flags, reason) in [
        ("--cipher rot13", "`rot13`"),
        ("--cipher aes-xts-plain65", "`plain65`"),
        ("--key-bits 192", "[192]"),
        ("--sector-size 8k", "512, 1k, 2k or 4k"),
        ("--request 0", "multiple of 512"),
        ("--request 4kb", "ambiguous"),
        ("--request 1g", "at most 64m"),
        ("--request 512 --sector-size 4k", "nothing to measure"),
        ("--backend sse9", "available: "),
        ("--svg no/map.svg", "there is no folder no"),
        ("--curve no/curve.svg", "there is no folder no"),
        ("--threads 0", "1 to 1024"),
        ("--seconds 0", "0.001"),
        ("--seconds nan", "0.001"),
        ("--direction sideways", "encrypt, decrypt"),
    ] {
        let output = place.run(&format!("cipher {flags}"));
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags}: {stderr}");
        assert!(stderr.contains(reason), "{flags}: {stderr}");
        assert!(output.stdout.is_empty(), "{flags}");
    }
}

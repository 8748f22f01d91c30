//! Two runs whose difference is known.

#![forbid(unsafe_code)]

use serde_json::Value;

use super::*;
use crate::doubt::Doubt;
use crate::result::ResultRecord;
use crate::testing::{assert_tables_are_whole, cell, manifest, record};

/// How fast a cell is: policy, depth and repeat.
type Speed = fn(&str, u32, u32) -> f64;

/// Options as `compare` has them.
fn options() -> Options {
    Options {
        metrics: vec![Metric::Throughput, Metric::LatP50],
        across: None,
        labels: ["A", "B"],
    }
}

/// Two policies at two depths, `repeats` times; each repeat started `step` ms after the one before, the first at `start`.
fn run(name: &str, (start, step): (u64, u64), repeats: u32, speed: Speed) -> Run {
    let mut records: Vec<ResultRecord> = Vec::new();
    for policy in ["inline", "adaptive"] {
        for depth in [1, 8] {
            for repeat in 1..=repeats {
                let mut one = record(
                    cell(policy, 4096, depth),
                    repeat,
                    speed(policy, depth, repeat),
                );
                one.started_unix_ms = start + step * u64::from(repeat);
                records.push(one);
            }
        }
    }
    Run {
        name: name.to_owned(),
        manifest: manifest(&records),
        records,
    }
}

/// A machine that becomes slower, a little noise, and the adaptive policy at depth 8 slower by `factor`.
fn noisy(repeat: u32, at: u32, factor: f64) -> f64 {
    let noise = f64::from((repeat * 7 + at * 3) % 5) * 0.002;
    1e9 * (1.0 - 0.02 * f64::from(repeat)) * (1.0 + noise) * factor
}

fn baseline() -> Run {
    run("old", (1000, 100), 14, |_, depth, repeat| {
        noisy(repeat, depth, 1.0)
    })
}

fn candidate(start: u64) -> Run {
    run("new", (start, 100), 14, |policy, depth, repeat| {
        let factor = if policy == "adaptive" && depth == 8 {
            0.9
        } else {
            1.0
        };
        noisy(repeat, depth + 1, factor)
    })
}

fn marks(diff: &Diff<'_>) -> Vec<&'static str> {
    diff.pairs
        .iter()
        .flat_map(|pair| &pair.changes)
        .map(text::mark)
        .collect()
}

#[test]
fn runs_that_took_turns_are_pairs_and_drift_does_not_hide_a_change() {
    let (old, new) = (baseline(), candidate(1050));
    let diff = Diff::of([&old, &new], &options()).unwrap();
    assert_eq!(diff.is_interleaved(), Some(true));
    assert_eq!(
        marks(&diff),
        ["~", "~", "~", "~", "~", "~", "worse", "worse"]
    );
    let found = diff.pairs[3].changes[0].shift.unwrap();
    assert!((found.ratio - 0.9).abs() < 0.01, "{found:?}");
    assert_eq!(diff.warnings(), Vec::<String>::new());

    let later = candidate(1_000_000);
    let diff = Diff::of([&old, &later], &options()).unwrap();
    assert_eq!(diff.is_interleaved(), Some(false));
    assert!(diff.warnings()[0].starts_with("measured one after the other"));
    // The drift of 28 % is noise now.
    assert_eq!(marks(&diff), ["~"; 8]);
}

#[test]
fn means_are_over_the_cells_of_each_policy() {
    let (old, new) = (baseline(), candidate(1050));
    let diff = Diff::of([&old, &new], &options()).unwrap();
    let of = |policy: &str| {
        let mean = diff.means.iter().find(|mean| {
            mean.metric == Metric::Throughput && mean.policy.as_deref() == Some(policy)
        });
        mean.unwrap().ratio.mean
    };
    assert!((of("inline") - 1.0).abs() < 0.005, "{}", of("inline"));
    assert!(
        (of("adaptive") - 0.9_f64.sqrt()).abs() < 0.005,
        "{}",
        of("adaptive")
    );
}

#[test]
fn what_stands_against_a_comparison_is_named() {
    let old = baseline();
    let mut new = candidate(1050);
    new.records[0].doubts.push(Doubt::NotDirect);
    new.records
        .retain(|record| record.cell.policy != "inline" || record.cell.depth != 8);
    new.records.pop();
    let extra = cell("adaptive", 65536, 1);
    new.manifest.plan.push(extra);
    for record in new
        .records
        .iter_mut()
        .filter(|record| record.cell.policy == "adaptive")
    {
        record.achieved.cipher_backend = Some("portable".to_owned());
    }
    let diff = Diff::of([&old, &new], &options()).unwrap();
    let troubles: Vec<String> = diff
        .pairs
        .iter()
        .flat_map(Pair::troubles)
        .map(|trouble| trouble.text(diff.labels))
        .collect();
    assert_eq!(
        troubles,
        [
            "1 of 14 repeats are invalid in B: direct I/O asked for, but the page cache was used",
            "not measured in B",
            "cipher backend: batched in A, portable in B",
            "cipher backend: batched in A, portable in B",
            "13 of 14 repeats in B",
            "only in B",
        ]
    );
    assert!(
        diff.warnings().contains(&"bs 64k: only in B".to_owned()),
        "{:?}",
        diff.warnings()
    );
}

#[test]
fn machines_and_programs_that_differ_are_dimensions() {
    let old = baseline();
    let mut new = candidate(1050);
    new.manifest.environment.host = "other".to_owned();
    new.manifest.tool.git_revision = None;
    let diff = Diff::of([&old, &new], &options()).unwrap();
    let found: Vec<(&str, bool)> = diff
        .dimensions
        .iter()
        .map(|dimension| (dimension.name, dimension.separates))
        .collect();
    assert_eq!(found, [("host", true), ("revision", false)]);
    assert!(
        diff.warnings()
            .contains(&"host: host in A, other in B".to_owned())
    );
}

#[test]
fn cells_are_compared_across_a_parameter_where_that_is_clear() {
    let old = baseline();
    let mut new = candidate(1050);
    for record in &mut new.records {
        record.cell.device = "null".to_owned();
    }
    new.manifest = manifest(&new.records);
    let alone = Diff::of([&old, &new], &options()).unwrap();
    assert_eq!((alone.is_interleaved(), alone.pairs.len()), (None, 8));
    let across = Options {
        across: Some(Axis::Device),
        ..options()
    };
    assert_eq!(
        marks(&Diff::of([&old, &new], &across).unwrap())[6..],
        ["worse", "worse"]
    );
    let unclear = Options {
        across: Some(Axis::Policy),
        ..options()
    };
    let message = Diff::of([&old, &new], &unclear).unwrap_err();
    assert!(
        message.starts_with("--across policy: old has several cells"),
        "{message}"
    );
}

#[test]
fn every_rendering_names_every_cell() {
    let (old, new) = (baseline(), candidate(1050));
    let diff = Diff::of([&old, &new], &options()).unwrap();
    let text = text::text(&diff);
    let line = text
        .lines()
        .find(|line| line.contains("depth 8 adaptive"))
        .unwrap();
    assert!(line.contains("−10") && line.ends_with("worse"), "{line}");
    assert_eq!(text.matches("memory randread 4k depth").count(), 4);
    let markdown = markdown::document(&diff);
    assert_eq!(
        markdown
            .matches("memory randread 4k depth 8 adaptive")
            .count(),
        4,
        "{markdown}"
    );
    assert_tables_are_whole(&markdown);
    let json: Value = serde_json::from_str(&machine::json(&diff)).unwrap();
    assert_eq!(json["cells"][3]["changes"][0]["change"], "worse");
    assert_eq!(json["cells"][0]["changes"][0]["change"], "none_shown");
    assert_eq!(json["means"].as_array().unwrap().len(), 4);
    let csv = machine::csv(&diff);
    let widths: Vec<usize> = csv
        .trim_end()
        .split("\r\n")
        .map(|line| line.matches(',').count())
        .collect();
    assert_eq!(widths, [11; 9], "{csv}");
}

#[test]
fn nothing_to_compare_says_so() {
    let none = run("none", (1, 1), 0, |_, _, _| 1.0);
    let diff = Diff::of([&none, &none], &options()).unwrap();
    assert!(text::text(&diff).contains("nothing to compare"));
    assert!(markdown::document(&diff).contains("Nothing to compare."));
}

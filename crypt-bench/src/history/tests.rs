//! Histories made up.

#![forbid(unsafe_code)]

use schemars::schema_for;

use super::*;
use crate::doubt::Doubt;
use crate::result::ResultRecord;
use crate::testing::{cell, manifest, published, record};

/// Run `number` of two cells, of which depth 2 has this speed.
fn run(number: u32, speed: f64) -> Run {
    let mut records: Vec<ResultRecord> = Vec::new();
    for repeat in 1..=3 {
        for depth in [1, 2] {
            let noise = 1.0 + 0.004 * f64::from((number * 7 + repeat * 3 + depth) % 5);
            let rate = if depth == 2 { speed } else { 1e9 };
            records.push(record(cell("inline", 4096, depth), repeat, rate * noise));
        }
    }
    let mut run = Run {
        name: format!("run-{number}"),
        manifest: manifest(&records),
        records,
    };
    run.manifest.started = format!("2026-01-{number:02}T00:00:00Z");
    run
}

fn history() -> Vec<Entry> {
    let speed = |number| if number <= 12 { 1e9 } else { 0.8e9 };
    (1..=24)
        .map(|number| Entry::of(&run(number, speed(number))).unwrap())
        .collect()
}

fn text_of(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.to_line() + "\n").collect()
}

#[test]
fn entries_survive_their_file_and_a_torn_end_is_left_out() {
    let entries = history();
    let text = text_of(&entries);
    let read = parse(&text).unwrap();
    assert_eq!(read.len(), 24);
    assert!(
        read.iter()
            .zip(&entries)
            .all(|(one, other)| one.is_same_run(other) && one.cells == other.cells)
    );
    let torn = &text[..text.len() - 5];
    assert_eq!(parse(torn).unwrap().len(), 23);
    assert_eq!(parse(&torn[..whole_len(torn)]).unwrap().len(), 23);
    assert_eq!(parse("").unwrap().len(), 0);
}

#[test]
fn what_is_no_entry_is_named_by_its_line() {
    let text = text_of(&history()[..2]);
    let (line, why) = parse(&text.replacen("run-2", "run-9", 1)).unwrap_err();
    assert_eq!(line, 2);
    assert!(why.contains("mark does not fit"), "{why}");
    assert_eq!(parse("{}\n").unwrap_err().0, 1);
    let other = text.replacen("\"schema_version\":1", "\"schema_version\":7", 1);
    assert!(parse(&other).unwrap_err().1.contains("version 7"));
}

#[test]
fn a_change_of_level_is_found_in_its_series_alone() {
    let series = series(&history(), &[Metric::Throughput]);
    let changed: Vec<(&str, usize)> = series
        .iter()
        .flat_map(|one| {
            one.changes
                .iter()
                .map(|change| (one.name.as_str(), change.at))
        })
        .collect();
    assert_eq!(changed, [("memory randread 4k depth 2", 12)]);
    let text = text::text(&history(), &series);
    assert!(
        text.contains("worse by −20\u{a0}% from 2026-01-13T00:00:00Z on"),
        "{text}"
    );
}

#[test]
fn machines_are_series_of_their_own_and_order_is_that_of_time() {
    let mut entries = history();
    entries.reverse();
    let mut moved = run(25, 0.8e9);
    moved.manifest.environment.host = "other".to_owned();
    entries.push(Entry::of(&moved).unwrap());
    let series = series(&entries, &[Metric::Throughput]);
    let lens: Vec<usize> = series.iter().map(|one| one.points.len()).collect();
    assert_eq!(lens, [24, 24, 1, 1]);
    assert_eq!(series[0].points[0].started, "2026-01-01T00:00:00Z");
}

#[test]
fn only_valid_figures_are_kept() {
    let mut bad = run(1, 1e9);
    for record in bad
        .records
        .iter_mut()
        .filter(|record| record.cell.depth == 2)
    {
        record.doubts.push(Doubt::NotDirect);
    }
    let entry = Entry::of(&bad).unwrap();
    assert_eq!(entry.cells.len(), 1);
    // 100 samples are too few for a p99.
    assert!(
        entry.cells[0]
            .figures
            .iter()
            .all(|figure| figure.metric != "lat_ns_p99")
    );
    bad.records.retain(|record| record.cell.depth == 2);
    assert!(Entry::of(&bad).is_err());
}

#[test]
fn the_page_names_changes_and_breaks_on_no_name() {
    let mut entries = history();
    for entry in &mut entries {
        entry.host = "<script>".to_owned();
    }
    let all = series(&entries, &[Metric::Throughput]);
    let page = page::page(&entries, &all);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(
        page.contains("1 change to the worse, 0 to the better"),
        "{page}"
    );
    assert!(!page.contains("<script>"));
    assert_eq!(page.matches("class=\"mark worse\"").count(), 1);
    assert_eq!(page.matches("<svg ").count(), 2);
    assert!(page::page(&[], &[]).contains("No figure was measured twice"));
}

#[test]
fn entries_fit_the_published_schema() {
    let schema = published("history.schema.json", schema_for!(Entry).to_value());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value = serde_json::from_str(&history()[0].to_line()).unwrap();
    assert!(
        validator.is_valid(&value),
        "{:?}",
        validator.iter_errors(&value).next()
    );
}

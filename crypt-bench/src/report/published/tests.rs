//! Tables from made-up results: the right figure under each heading, and what stands beside it.

#![forbid(unsafe_code)]

use super::super::cells::Run;
use super::super::terminal::{Color, Style};
use super::*;
use crate::doubt::Doubt;
use crate::result::{ResultRecord, Rw};
use crate::testing::{cell, manifest, record};

const WITHOUT: &str = "workqueue:no_read_workqueue,no_write_workqueue";

/// A cell of the first row of `dorminy-ssd`.
fn params(policy: &str) -> CellParams {
    CellParams {
        device: "model:sata-ssd".to_owned(),
        cipher: "cipher_null-ecb".to_owned(),
        key_bits: None,
        rw: Rw::RandWrite,
        rwmixread_percent: 0,
        ..cell(policy, 4096, 128)
    }
}

fn run(preset: &str, records: Vec<ResultRecord>) -> Vec<Run> {
    let mut manifest = manifest(&records);
    manifest.preset = Some(preset.to_owned());
    vec![Run {
        name: "run".to_owned(),
        manifest,
        records,
    }]
}

/// Two repeats of each column, in MB/s.
fn ssd() -> Vec<Run> {
    let speeds = [
        ("workqueue", [200.0, 210.0]),
        (WITHOUT, [300.0, 310.0]),
        ("raw", [400.0, 400.0]),
        ("adaptive", [320.0, 280.0]),
    ];
    let records = speeds.iter().flat_map(|(policy, repeats)| {
        let one =
            |(index, mb_s): (usize, &f64)| record(params(policy), index as u32 + 1, mb_s * 1e6);
        repeats.iter().enumerate().map(one).collect::<Vec<_>>()
    });
    run("dorminy-ssd", records.collect())
}

fn section_of(runs: &[Run]) -> Section {
    sections(&Report::new(runs)).remove(0)
}

fn texts(row: &Row) -> Vec<&str> {
    row.cells.iter().map(|field| field.text.as_str()).collect()
}

const PLAIN: Style = Style {
    width: 100,
    color: Color::None,
};

#[test]
fn measured_and_published_figures_stand_under_their_headings() {
    let runs = ssd();
    let section = section_of(&runs);
    assert_eq!(section.tables.len(), 1);
    let table = &section.tables[0];
    assert_eq!(table.keys, ["rw", "bs", "depth", "jobs"]);
    let columns = ["default", "no_workqueue", "%change", "raw", "adaptive"];
    assert_eq!(table.columns, columns);
    let [measured, published] = &table.rows[..] else {
        panic!("{table:?}");
    };
    assert_eq!(measured.keys, ["randwrite", "4k", "128", "1"]);
    // The mean of both repeats, and 305 / 205 - 1.
    assert_eq!(texts(measured), ["205", "305", "+49 %", "400", "300"]);
    assert_eq!(texts(published), ["282", "282", "±0 %", "285", "–"]);
    assert!(!measured.published && published.published);
}

#[test]
fn a_change_within_the_repeats_is_marked() {
    let mut runs = ssd();
    // Repeats of 200 and 340 overlap with those of 300 and 310.
    for record in &mut runs[0].records {
        if record.cell.policy == "workqueue" && record.repeat == 2 {
            *record = crate::testing::record(params("workqueue"), 2, 340e6);
        }
    }
    assert_eq!(texts(&section_of(&runs).tables[0].rows[0])[2], "≈+13 %");
}

#[test]
fn what_is_invalid_or_missing_has_no_number() {
    let mut runs = ssd();
    for record in &mut runs[0].records {
        if record.cell.policy == WITHOUT {
            record.doubts.push(Doubt::NotDirect);
        }
    }
    runs[0].records.retain(|record| record.cell.policy != "raw");
    let rows = section_of(&runs).tables.remove(0).rows;
    assert_eq!(texts(&rows[0]), ["205", "invalid", "–", "–", "300"]);
    assert_eq!(rows[0].cells[3].cell, Cell::Missing);
}

#[test]
fn another_workload_or_cipher_has_no_published_row() {
    let mut runs = ssd();
    let mut other = params("workqueue");
    other.cipher = "aes-xts-plain64".to_owned();
    runs[0].records.push(record(other.clone(), 1, 1e8));
    runs[0].manifest.plan.push(other);
    let table = section_of(&runs).tables.remove(0);
    assert_eq!(table.keys, ["cipher", "rw", "bs", "depth", "jobs"]);
    let published: Vec<bool> = table.rows.iter().map(|row| row.published).collect();
    assert_eq!(published, [false, true, false]);
}

#[test]
fn latencies_are_those_that_were_asked_for() {
    let optane = |policy: &str| CellParams {
        device: "model:optane".to_owned(),
        jobs: 4,
        ..params(policy)
    };
    let records = ["workqueue", "raw"].map(|policy| record(optane(policy), 1, 1e9));
    let runs = run("dorminy-optane", records.to_vec());
    let section = section_of(&runs);
    let titles: Vec<&str> = section
        .tables
        .iter()
        .map(|table| table.title.as_str())
        .collect();
    assert_eq!(
        titles[..3],
        [
            "Throughput, MB/s",
            "Mean latency (lat), µs",
            "p99 latency (lat), µs"
        ]
    );
    let stats = runs[0].records[0].write.as_ref().unwrap();
    let shown = |table: usize| section.tables[table].rows[0].cells[0].cell.value().unwrap();
    assert!((shown(1) - stats.lat.mean_ns / 1e3).abs() < 1e-6);
    assert!((shown(2) - stats.lat.p99_ns.unwrap() as f64 / 1e3).abs() < 1e-6);
    assert!((shown(3) - stats.clat.mean_ns / 1e3).abs() < 1e-6);
    assert_eq!(texts(&section.tables[2].rows[1])[..2], ["3294", "1106"]);
    // clat of ours has no published counterpart.
    assert!(section.tables[3].rows.iter().all(|row| !row.published));
}

/// 600 slices of one repeat, each with so many requests.
fn sliced(policy: &str, ios: impl Fn(usize) -> u64) -> ResultRecord {
    let mut params = params(policy);
    (params.depth, params.device) = (1, "memory".to_owned());
    params.slice_us = Some(10_000);
    let mut one = record(params, 1, 1e8);
    one.slice_ns = 1 << 23;
    let slices: Vec<u64> = (0..600).map(ios).collect();
    let stats = one.write.as_mut().unwrap();
    stats.ios = slices.iter().sum();
    stats.bytes = 4096 * stats.ios;
    stats.slice_ios = slices;
    one.achieved.runtime_ns = 600 << 23;
    one
}

/// Scatter of about ±7 %, reproducible.
fn scatter(index: usize) -> u64 {
    let mut random = crate::generate::Random::new(index as u64);
    (0..6).map(|_| random.below_u64(8)).sum()
}

#[test]
fn two_levels_of_throughput_are_several_modes_and_one_is_one() {
    let records = vec![
        sliced("workqueue", |index| {
            scatter(index) + if index % 7 < 3 { 170 } else { 255 }
        }),
        sliced(WITHOUT, |index| 210 + scatter(index)),
        // Long stays at each level: neighbours hang together, and few are independent.
        sliced("adaptive", |index| {
            scatter(index) + if index < 300 { 170 } else { 255 }
        }),
    ];
    let runs = run("korchagin-brd", records);
    let instant = section_of(&runs).instant;
    let verdicts: Vec<Verdict> = instant.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Several, Verdict::One, Verdict::Unclear]);
    let (low, high) = instant[0].modes.unwrap();
    let mib_s = |ios: f64| ios * 4096.0 / (f64::from(1 << 23) / 1e9) / 1_048_576.0;
    assert!((low - mib_s(170.0 + 21.0)).abs() < 1.0, "{low}");
    assert!((high - mib_s(255.0 + 21.0)).abs() < 1.0, "{high}");
    assert!(instant[0].p_value < 0.001 && instant[1].p_value > 0.05);
    assert!(instant[2].p_value < 0.001 && instant[2].correlation > 0.9);
    assert_eq!((instant[0].slices, instant[0].repeats), (600, 1));
    let text = text(&[section_of(&runs)], PLAIN);
    assert!(
        text.contains("several modes: ") && text.contains("Hartigan's dip test"),
        "{text}"
    );
    assert!(
        text.contains("bimodal: jumps between about 120 and about 80"),
        "{text}"
    );
}

#[test]
fn few_slices_prove_nothing() {
    let mut one = sliced("workqueue", |_| 100);
    one.achieved.runtime_ns = 5 << 23;
    let runs = run("korchagin-brd", vec![one]);
    let instant = section_of(&runs).instant.remove(0);
    assert_eq!((instant.verdict, instant.p_value), (Verdict::TooFew, 1.0));
    let mut none = sliced("workqueue", |_| 100);
    none.doubts.push(Doubt::NotDirect);
    assert_eq!(section_of(&run("korchagin-brd", vec![none])).instant, []);
}

#[test]
fn a_heat_map_preset_shows_the_change_of_each_pattern() {
    let mut records = Vec::new();
    for rw in [Rw::RandRead, Rw::RandWrite] {
        for (policy, mb_s) in [("workqueue", 100e6), (WITHOUT, 150e6), ("raw", 900e6)] {
            let params = CellParams {
                rw,
                rwmixread_percent: if rw == Rw::RandRead { 100 } else { 0 },
                ..params(policy)
            };
            records.push(record(params, 1, mb_s));
        }
    }
    let runs = run("lemoal-heatmap", records);
    let section = section_of(&runs);
    assert_eq!(section.maps.len(), 4);
    assert_eq!(section.maps[0].title, "Throughput · no_workqueue ÷ default");
    assert!(section.maps[0].subtitle.contains("randread"));
    let ratio = section.maps[0].grid.cell(0, 0).value().unwrap();
    assert!((ratio - 1.5).abs() < 1e-9);
}

#[test]
fn every_rendering_has_the_figures_and_keeps_its_rules() {
    let runs = ssd();
    let report = Report::new(&runs);
    let section = [section_of(&runs)];
    let text = text(&section, PLAIN);
    assert!(
        text.contains("published      282           282     ±0 %  285         –"),
        "{text}"
    );
    for width in [40, 60, 100] {
        let style = Style { width, ..PLAIN };
        for line in super::text(&section, style).lines() {
            assert!(line.chars().count() <= width.max(56), "{width}: {line}");
        }
    }
    let markdown = super::super::markdown::document(&report);
    let row = "| randwrite | 4k | 128 | 1 | measured | 205 | 305 | +49 % | 400 | 300 |";
    assert!(markdown.contains(row), "{markdown}");
    let page = super::super::html::page(&report);
    assert!(page.contains("id=\"published\"") && page.contains("href=\"#published\""));
    assert!(page.contains("7x Samsung SSD 850 PRO"));
    let document: serde_json::Value =
        serde_json::from_str(&super::super::machine::json(&report)).unwrap();
    let rows = &document["published"][0]["tables"][0]["rows"];
    assert_eq!(rows[1]["default"], 282.0);
    assert_eq!(rows[0]["figures"], "measured");
    assert_eq!(rows[1]["adaptive"], serde_json::Value::Null);
    let csv = super::super::machine::csv(&report);
    assert!(csv.contains("mb_s=282"), "{csv}");
}

#[test]
fn hostile_names_stay_text_and_unknown_presets_are_no_section() {
    let mut runs = ssd();
    for record in &mut runs[0].records {
        record.cell.device = "file:<script>|\u{1b}[2J".to_owned();
    }
    runs[0].manifest.plan = runs[0]
        .records
        .iter()
        .map(|record| record.cell.clone())
        .collect();
    let mut plain = params("workqueue");
    plain.device = "memory".to_owned();
    runs[0].manifest.plan.push(plain);
    let section = [section_of(&runs)];
    assert!(!html(&section).contains("<script>"));
    assert!(!text(&section, PLAIN).contains('\u{1b}'));
    assert!(markdown(&section).contains("\\|"));
    runs[0].manifest.preset = Some("another".to_owned());
    assert!(sections(&Report::new(&runs)).is_empty());
    runs[0].manifest.preset = None;
    assert!(sections(&Report::new(&runs)).is_empty());
}

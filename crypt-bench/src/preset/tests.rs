//! What the presets measure, and that it is what was published.

#![forbid(unsafe_code)]

use super::*;
use crate::matrix::{Facts, Matrix};
use crate::result::Rw;
use crate::testing;

fn presets() -> Vec<Preset> {
    Preset::names()
        .map(|name| Preset::named(name).unwrap())
        .collect()
}

fn cells(preset: &Preset) -> Vec<CellParams> {
    let definition = preset.plan.matrix.clone();
    let definition = definition.over(Definition::fallback().unwrap());
    let facts = Facts {
        cpus: &[0, 1],
        size_bytes: &|_| None,
        threads_per_core: None,
    };
    Matrix::new(&definition, &facts).unwrap().plan()
}

/// Rows as the published tables have them: pattern, block size, depth, jobs.
fn rows(name: &str) -> Vec<(Rw, u64, u32, u32)> {
    let preset = Preset::named(name).unwrap();
    let mut rows = Vec::new();
    for cell in cells(&preset) {
        let row = (cell.rw, cell.block_size_bytes, cell.depth, cell.jobs);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

#[test]
fn each_preset_measures_exactly_the_published_rows() {
    const K: u64 = 1024;
    let dorminy = |rw| {
        [
            (rw, 4 * K, 128, 1),
            (rw, 4 * K, 256, 4),
            (rw, 4 * K, 2048, 4),
            (rw, K * K, 1, 4),
        ]
    };
    assert_eq!(rows("dorminy-ssd"), dorminy(Rw::RandWrite));
    assert_eq!(rows("dorminy-hdd"), dorminy(Rw::Write));
    let optane = [(K * K, 32, 4), (64 * K, 1024, 1), (4 * K, 128, 4)];
    let optane = optane.map(|(bs, depth, jobs)| (Rw::RandWrite, bs, depth, jobs));
    assert_eq!(rows("dorminy-optane"), optane);
    let single = |rw| (rw, 4 * K, 1, 1);
    assert_eq!(
        rows("korchagin-brd"),
        [Rw::RandRw, Rw::Read, Rw::Write].map(single)
    );
    assert_eq!(rows("cloudflare-brd"), [single(Rw::ReadWrite)]);
    assert_eq!(rows("lemoal-mixed"), [(Rw::RandRw, K * K, 8, 2)]);
    let heatmap = rows("lemoal-heatmap");
    assert_eq!(heatmap.len(), 2 * 9 * 5);
    for corner in [(4 * K, 1), (4 * K, 256), (K * K, 1), (K * K, 256)] {
        for rw in [Rw::RandRead, Rw::RandWrite] {
            assert!(heatmap.contains(&(rw, corner.0, corner.1, 2)));
        }
    }
}

#[test]
fn each_row_is_measured_in_every_column() {
    for preset in presets() {
        let cells = cells(&preset);
        let names: Vec<&str> = preset
            .plan
            .column
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        for name in ["default", "no_workqueue", "raw", "adaptive"] {
            assert!(names.contains(&name), "{}: {name}", preset.name);
        }
        let rows: std::collections::BTreeSet<CellParams> =
            cells.iter().map(CellParams::without_policy).collect();
        assert_eq!(cells.len(), rows.len() * names.len(), "{}", preset.name);
        assert_eq!(preset.policy("default"), Some("workqueue"));
        assert!(preset.plan.hardware.len() > 10 && preset.plan.source.contains("20"));
    }
}

/// Every figure of the tables belongs to a measured cell, and only to one.
#[test]
fn each_published_figure_stands_beside_its_cell_once() {
    let has_figures =
        |preset: &Preset| preset.plan.show.iter().any(|show| show.published.is_some());
    for preset in presets().into_iter().filter(has_figures) {
        let cells = cells(&preset);
        let mut seen = 0;
        for show in &preset.plan.show {
            seen += cells
                .iter()
                .filter(|cell| preset.published(cell, show).is_some())
                .count();
        }
        assert_eq!(seen, preset.figures.len(), "{}", preset.name);
    }
}

#[test]
fn figures_are_found_by_row_and_column_in_the_unit_that_is_shown() {
    let value = |name: &str, change: &dyn Fn(&mut CellParams), show: usize| {
        let preset = Preset::named(name).unwrap();
        let mut cell = cells(&preset).remove(0);
        change(&mut cell);
        preset.published(&cell, &preset.plan.show[show])
    };
    let policy = |name: &'static str| move |cell: &mut CellParams| cell.policy = name.to_owned();
    assert_eq!(value("dorminy-ssd", &|_| (), 0), Some(282.0));
    let raw_2048 = |cell: &mut CellParams| {
        (cell.depth, cell.jobs) = (2048, 4);
        policy("raw")(cell);
    };
    assert_eq!(value("dorminy-ssd", &raw_2048, 0), Some(284.0));
    assert_eq!(value("dorminy-ssd", &policy("adaptive"), 0), None);
    assert_eq!(value("dorminy-optane", &policy("raw"), 1), Some(59280.0));
    assert_eq!(value("dorminy-optane", &|_| (), 2), Some(182_000.0));
    assert_eq!(value("dorminy-optane", &|_| (), 3), None);
    assert_eq!(value("korchagin-brd", &|_| (), 0), Some(100.0));
    let writes = |cell: &mut CellParams| {
        (cell.rw, cell.rwmixread_percent) = (Rw::Write, 0);
        policy("workqueue:no_read_workqueue,no_write_workqueue")(cell);
    };
    assert_eq!(value("korchagin-brd", &writes, 0), Some(277.0));
    assert_eq!(
        value("cloudflare-brd", &policy("workqueue:same_cpu_crypt"), 0),
        Some(136.0)
    );
    assert_eq!(value("lemoal-mixed", &|_| (), 0), Some(38.0));
}

/// A published figure of another workload or cipher is none for this cell.
#[test]
fn what_was_not_published_has_no_published_figure() {
    let preset = Preset::named("dorminy-ssd").unwrap();
    let show = &preset.plan.show[0];
    let changes: [fn(&mut CellParams); 5] = [
        |cell| cell.cipher = "aes-xts-plain64".to_owned(),
        |cell| cell.depth = 127,
        |cell| cell.rw = Rw::Write,
        |cell| cell.block_sizes = Some("4k/50:8k/50".to_owned()),
        |cell| cell.cipher_throttle_bytes_per_s = Some(1),
    ];
    for change in changes {
        let mut cell = cells(&preset).remove(0);
        assert!(preset.published(&cell, show).is_some());
        change(&mut cell);
        assert_eq!(preset.published(&cell, show), None);
    }
    let other = testing::cell("workqueue", 4096, 128);
    assert_eq!(preset.published(&other, show), None);
}

#[test]
fn published_changes_are_those_of_the_published_figures() {
    for (name, table) in TEXTS.iter().map(|(name, _, table)| (name, table)) {
        let Some(heading) = table.lines().find(|line| line.contains("change_pct")) else {
            continue;
        };
        let lines = table.lines().skip_while(|line| *line != heading).skip(1);
        for line in lines {
            let fields: Vec<f64> = line
                .split(',')
                .skip(3)
                .map(|field| field.parse().unwrap())
                .collect();
            let change = 100.0 * (fields[1] / fields[0] - 1.0);
            assert!(
                (change - fields[2]).abs() <= 0.5,
                "{name}: {line}: {change}"
            );
        }
    }
}

#[test]
fn words_are_published_too() {
    let observations = |name: &str| Preset::named(name).unwrap().observations;
    let notes = observations("korchagin-brd");
    assert_eq!(notes[0].setting, "randrw, crypt-default");
    assert!(notes[0].words.starts_with("bimodal") && notes[1].words.starts_with("unimodal"));
    let mixed = observations("lemoal-mixed");
    assert_eq!(mixed.len(), 1);
    assert!(
        mixed[0].words.contains("38 and 44 GB/s; no workqueue wins"),
        "{}",
        mixed[0].words
    );
    assert_eq!(observations("lemoal-heatmap").len(), 7);
}

/// A statement in words is about one workload, and goes the way that its figures go.
#[test]
fn each_claim_is_about_one_workload() {
    let mut rows = Vec::new();
    for preset in presets() {
        let workloads: std::collections::BTreeSet<CellParams> = cells(&preset)
            .iter()
            .map(CellParams::without_policy)
            .collect();
        for claim in &preset.plan.claim {
            let about = workloads.iter().filter(|cell| claim.is_of(cell)).count();
            assert_eq!(about, 1, "{}: {claim:?}", preset.name);
            let mut observations = preset.observations.iter();
            assert!(observations.any(|seen| seen.row == claim.row), "{claim:?}");
            let way = match claim.published(&preset) {
                Some(ratio) if ratio > 1.0 => Way::Higher,
                Some(_) => Way::Lower,
                None => claim.way,
            };
            assert!(claim.way == way || claim.way == Way::Equal, "{claim:?}");
            rows.push((claim.row.clone(), claim.published(&preset)));
        }
    }
    assert!(rows.contains(&("5".to_owned(), Some(1.0 / 3.0))));
    assert!(
        rows.contains(&("6".to_owned(), None)),
        "its figures are of throughput"
    );
}

#[test]
fn every_explanation_is_of_a_published_change() {
    let explanations = explanations().unwrap();
    assert!(!explanations.is_empty());
    for (id, why) in explanations {
        let preset = Preset::named(id.split('/').next().unwrap()).unwrap();
        let column = preset.plan.column.iter().any(|column| {
            let part = format!("/{}/", column.name);
            !column.published.is_empty() && id.contains(&part)
        });
        let shows = preset.plan.show.iter();
        let shows = shows
            .filter(|show| show.published.is_some())
            .map(|show| show.measure);
        let claims = preset.plan.claim.iter().map(|claim| claim.measure);
        let measure = shows
            .chain(claims)
            .any(|measure| id.ends_with(measure.name));
        assert!(column && measure && why.len() > 40, "{id}");
    }
}

#[test]
fn broken_tables_are_named_with_their_line() {
    for (table, reason) in [
        ("a,mb_s\n", ""),
        ("device,mb_s\nx\n", "line 2: 1 fields under 2 headings"),
        (
            "device,mb_s\nx,nan\n",
            "line 2: mb_s: `nan` is not a figure",
        ),
        (
            "device,mb_s\nx,1e308\n",
            "line 2: mb_s: `1e308` is not a figure",
        ),
        (
            "# c\ndevice,mb_s\nx,fast\n",
            "line 3: mb_s: `fast` is not a figure",
        ),
        (
            "bs,mb_s\n4k,1\n",
            "line 2: mb_s: nothing says what it is of",
        ),
    ] {
        match published::read(table, &[]) {
            Ok(_) => assert_eq!(reason, ""),
            Err(message) => assert_eq!(message, reason),
        }
    }
    let message = Preset::named("nosuch").unwrap_err();
    assert!(message.contains("dorminy-ssd, dorminy-hdd"), "{message}");
}

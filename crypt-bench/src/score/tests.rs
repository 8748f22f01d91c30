//! Scores of made-up results whose truth is known.

#![forbid(unsafe_code)]

use super::*;
use crate::doubt::Doubt;
use crate::generate::Random;
use crate::result::ResultRecord;
use crate::testing::{self, cell, manifest, normal};

const REPEATS: u32 = 10;
const FIXED: [&str; 2] = ["inline", "workqueue"];

/// A policy's true throughput in a cell, in bytes per second.
type Truth = fn(policy: &str, depth: u32) -> f64;

/// A run of `cells` cells under three policies, with this much noise on every repeat.
fn run(cells: u32, noise: f64, seed: u64, truth: Truth) -> Run {
    let mut random = Random::new(seed);
    let mut records = Vec::new();
    let template = record("inline", 1, 1, 1e9);
    for depth in 1..=cells {
        for repeat in 1..=REPEATS {
            for policy in ["inline", "workqueue", "adaptive"] {
                let rate = truth(policy, depth) * (noise * normal(&mut random)).exp();
                records.push(changed(&template, (policy, depth), repeat, rate));
            }
        }
    }
    run_of(records)
}

/// A record with latency samples enough.
fn record(policy: &str, depth: u32, repeat: u32, rate: f64) -> ResultRecord {
    let template = testing::record(cell(policy, 4096, depth), repeat, rate);
    changed(&template, (policy, depth), repeat, rate)
}

/// `template` with another cell and figures that follow from `rate`. Without a histogram, which would be most of the
/// work.
fn changed(
    template: &ResultRecord,
    (policy, depth): (&str, u32),
    repeat: u32,
    rate: f64,
) -> ResultRecord {
    let mut record = template.clone();
    (record.cell, record.repeat) = (cell(policy, 4096, depth), repeat);
    if let Some(read) = &mut record.read {
        read.bw_bytes_per_s = rate;
        read.lat.samples = Metric::LatP99.least_samples();
        read.lat.p99_ns = Some((f64::from(depth) * 4096.0 / rate * 1e9) as u64);
        read.lat.hdr_v2_deflate_base64 = None;
        record.cpu.total_s = read.bytes as f64 / rate;
    }
    record
}

fn run_of(records: Vec<ResultRecord>) -> Run {
    Run {
        name: "run".to_owned(),
        manifest: manifest(&records),
        records,
    }
}

fn verdicts(score: &Score, measure: Measure) -> [usize; 3] {
    [Verdict::Met, Verdict::Missed, Verdict::Open].map(|verdict| {
        let statements = score.statements(measure);
        statements.filter(|(_, one)| one.verdict == verdict).count()
    })
}

fn score(run: &Run) -> Score {
    Score::of(run).unwrap()
}

/// Inline and workqueue take turns in being the better one, by 1 %.
fn better(depth: u32) -> &'static str {
    FIXED[depth as usize % 2]
}

fn rate_of_fixed(policy: &str, depth: u32) -> f64 {
    if policy == better(depth) { 1.01e9 } else { 1e9 }
}

#[test]
fn an_oracle_with_two_percent_noise_misses_nothing() {
    let oracle: Truth = |policy, depth| match policy {
        "adaptive" => 1.01e9,
        fixed => rate_of_fixed(fixed, depth),
    };
    for seed in 1..=5 {
        let score = score(&run(100, 0.02, seed, oracle));
        let [met, missed, _] = verdicts(&score, Measure::Throughput);
        assert!(missed == 0 && met > 45, "{met} {missed}");
        for measure in [Measure::P99, Measure::Cpu] {
            let [met, missed, _] = verdicts(&score, measure);
            assert!(missed == 0 && met > 45, "{measure:?} {met} {missed}");
        }
        assert!(!score.is_missed() && !score.is_empty());
        // Half a percent better than each of the two in the mean.
        let met = score
            .overall
            .iter()
            .filter(|o| o.verdict == Some(Verdict::Met));
        assert_eq!(met.count(), 4);
    }
}

#[test]
fn a_policy_that_is_ten_percent_worse_misses() {
    let worse: Truth = |policy, depth| match policy {
        "adaptive" => 0.9 * 1.01e9,
        fixed => rate_of_fixed(fixed, depth),
    };
    let score = score(&run(100, 0.02, 1, worse));
    for measure in Measure::ALL {
        let [met, missed, _] = verdicts(&score, measure);
        assert!(met == 0 && missed > 75, "{measure:?} {met} {missed}");
    }
    let missed = score
        .overall
        .iter()
        .filter(|o| o.verdict == Some(Verdict::Missed));
    assert_eq!(missed.count(), 4);
    assert!(score.is_missed());
}

#[test]
fn at_the_bar_one_cell_in_twenty_is_missed() {
    let at_the_bar: Truth = |policy, _| match policy {
        "adaptive" => 0.97e9,
        "inline" => 1e9,
        _ => 0.5e9,
    };
    let [_, missed, open] = verdicts(&score(&run(400, 0.02, 3, at_the_bar)), Measure::Throughput);
    assert!((8..=36).contains(&missed) && open > 330, "{missed} {open}");
}

#[test]
fn the_repeats_that_choose_are_not_those_that_are_judged() {
    // Inline is faster in odd repeats, workqueue in even ones: inline is chosen, and seen at its worst.
    let mut records = Vec::new();
    for repeat in 1..=REPEATS {
        let (inline, workqueue) = if is_judged(repeat) {
            (1e9, 2e9)
        } else {
            (2e9, 1e9)
        };
        records.push(record("inline", 1, repeat, inline));
        records.push(record("workqueue", 1, repeat, workqueue));
        records.push(record("adaptive", 1, repeat, 1e9));
    }
    let score = score(&run_of(records));
    let (_, one) = score.statements(Measure::Throughput).next().unwrap();
    assert_eq!((one.rival.as_str(), one.verdict), ("inline", Verdict::Met));
    assert!((one.ratio.unwrap().mean - 1.0).abs() < 1e-9);
}

#[test]
fn of_policies_that_are_level_the_one_with_the_lower_p99_wins() {
    let mut records = Vec::new();
    for repeat in 1..=REPEATS {
        records.push(record("inline", 1, repeat, 1.02e9));
        let mut level = record("workqueue", 1, repeat, 1e9);
        level.read.as_mut().unwrap().lat.p99_ns = Some(1000);
        records.push(level);
        records.push(record("adaptive", 1, repeat, 1.02e9));
    }
    let score = score(&run_of(records));
    let rivals: Vec<&str> = score.cells[0]
        .statements
        .iter()
        .map(|one| one.rival.as_str())
        .collect();
    assert_eq!(rivals, ["inline", "workqueue", "workqueue"]);
    assert_eq!(verdicts(&score, Measure::P99), [0, 1, 0]);
}

#[test]
fn nothing_is_said_of_noise_few_samples_and_invalid_repeats() {
    let even: Truth = |_, _| 1e9;
    let noisy = score(&run(20, 0.3, 1, even));
    let [met, missed, open] = verdicts(&noisy, Measure::Throughput);
    assert!(missed <= 2 && open > 15, "{met} {missed} {open}");

    let mut few = run(1, 0.0, 1, even);
    for record in &mut few.records {
        record.read.as_mut().unwrap().lat.samples = Metric::LatP99.least_samples() - 1;
    }
    assert_eq!(verdicts(&score(&few), Measure::P99), [0, 0, 1]);
    assert_eq!(verdicts(&score(&few), Measure::Throughput), [1, 0, 0]);

    let mut invalid = run(1, 0.0, 1, even);
    invalid
        .records
        .iter_mut()
        .for_each(|record| record.doubts.push(Doubt::NotDirect));
    let score = score(&invalid);
    assert!(score.cells[0].statements.is_empty() && score.is_empty() && !score.is_missed());
    assert!(table::text(&[score], true).contains("no valid repeats"));
}

#[test]
fn a_run_without_an_adaptive_policy_has_no_score() {
    let mut run = run(1, 0.0, 1, |_, _| 1e9);
    run.records
        .retain(|record| record.cell.policy != "adaptive");
    run.manifest = manifest(&run.records);
    assert_eq!(Score::of(&run), None);
    assert_eq!(Score::of(&run_of(Vec::new())), None);
}

#[test]
fn the_table_counts_and_names_the_cells_that_miss() {
    let one_worse: Truth = |policy, depth| match (policy, depth) {
        ("adaptive", 3) => 0.8e9,
        ("workqueue", _) => 0.5e9,
        _ => 1e9,
    };
    let text = table::text(&[score(&run(4, 0.0, 1, one_worse))], false);
    let rows: Vec<&str> = text.lines().collect();
    let row = |start: &str| {
        let row = rows.iter().find(|row| row.starts_with(start)).unwrap();
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        row("run  throughput"),
        "run throughput ≥ 0.97 of the better fixed 4 3 1 0 ±0.0 %"
    );
    assert!(row("run  mean throughput / inline > 1").ends_with("x 0.946 [0.946, 0.946]"));
    let missed = rows
        .iter()
        .filter(|row| row.starts_with("missed: "))
        .count();
    assert_eq!(missed, 3, "{text}");
    assert!(text.contains(
        "missed: run: memory randread 4k depth 3: throughput 0.800 [0.800, 0.800] of inline (800 MB/s / 1.00 GB/s)"
    ), "{text}");
}

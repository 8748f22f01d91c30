//! Scores as text: one table over all runs, then every cell that misses a bar, with its figures.
//!
//! Pure.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::{Measure, Overall, Score, Statement, Verdict};
use crate::report::format::{Unit, percent};
use crate::report::names::CellNames;
use crate::result::CellParams;
use crate::statistics::{LEAST_PAIRS, Ratio};

/// The table of some runs, the cells that miss a bar, and where `with_open` those of which nothing can be said.
#[must_use]
pub fn text(scores: &[Score], with_open: bool) -> String {
    let mut text = table(scores);
    text.push('\n');
    text.push_str(&list(scores, Verdict::Missed, "missed"));
    if with_open {
        text.push('\n');
        text.push_str(&list(scores, Verdict::Open, "can't say"));
    }
    text.push_str(NOTES);
    text
}

const NOTES: &str = "
Ratios are adaptive / fixed, with 95 % bounds on either side (Student's t on the logarithms of paired repeats).
The fixed policy of a cell is chosen on odd repeats, the ratio is that of the even ones. `noise` is half the distance
of the bounds in the median cell. Of cells that are exactly at a bar 5 % are missed by chance.
";

fn table(scores: &[Score]) -> String {
    let width = scores
        .iter()
        .map(|s| s.name.len())
        .max()
        .unwrap_or(0)
        .max(3);
    let mut text = format!(
        "{:width$}  {:44} {:>5} {:>5} {:>6} {:>9}  {}\n",
        "run", "bar", "cells", "met", "missed", "can't say", "noise"
    );
    for score in scores {
        let name = &score.name;
        for measure in Measure::ALL {
            let _ = writeln!(text, "{name:width$}  {}", cells_row(score, measure));
        }
        for overall in &score.overall {
            let _ = writeln!(text, "{name:width$}  {}", overall_row(overall));
        }
    }
    text
}

/// One measure over the cells of a run.
fn cells_row(score: &Score, measure: Measure) -> String {
    let count = |verdict| {
        let statements = score.statements(measure);
        statements.filter(|(_, one)| one.verdict == verdict).count()
    };
    let (met, missed) = (count(Verdict::Met), count(Verdict::Missed));
    let open = score.cells.len() - met - missed;
    let mut noises: Vec<f64> = score
        .statements(measure)
        .filter_map(|(_, one)| Some(one.ratio?.noise()))
        .collect();
    noises.sort_by(f64::total_cmp);
    let noise = noises.get(noises.len() / 2);
    let noise = noise.map_or("-".to_owned(), |noise| format!("±{}", percent(*noise)));
    format!(
        "{:44} {:>5} {met:>5} {missed:>6} {open:>9}  {noise}",
        bar_text(measure),
        score.cells.len(),
    )
}

fn bar_text(measure: Measure) -> String {
    let (sign, whom) = match measure {
        Measure::Throughput => ('≥', "the better fixed"),
        Measure::P99 | Measure::Cpu => ('≤', "the cell's winner"),
    };
    format!("{} {sign} {:.2} of {whom}", measure.name(), measure.bar())
}

/// A geometric mean, with a mark in the column of its verdict.
fn overall_row(overall: &Overall) -> String {
    let sign = match overall.measure {
        Measure::Throughput => "> 1",
        Measure::P99 => "< 1",
        Measure::Cpu => "(no bar)",
    };
    let bar = format!("mean {} / {} {sign}", overall.measure.name(), overall.rival);
    let mark = |verdict| {
        let is_it = overall.verdict == Some(verdict);
        if is_it { "x" } else { "" }
    };
    format!(
        "{bar:44} {:>5} {:>5} {:>6} {:>9}  {}",
        "",
        mark(Verdict::Met),
        mark(Verdict::Missed),
        mark(Verdict::Open),
        overall.ratio.map_or("-".to_owned(), |ratio| bounds(&ratio)),
    )
}

/// The cells with this verdict, the worst first.
fn list(scores: &[Score], verdict: Verdict, what: &str) -> String {
    let mut text = String::new();
    for score in scores {
        let names = CellNames::of(score.cells.iter().map(|cell| &cell.params));
        for measure in Measure::ALL {
            let mut found: Vec<(&CellParams, &Statement)> = score
                .statements(measure)
                .filter(|(_, one)| one.verdict == verdict)
                .collect();
            found.sort_by(|a, b| badness(b.1).total_cmp(&badness(a.1)));
            for (params, one) in found {
                let cell = names.name(params);
                let _ = writeln!(text, "{what}: {}: {cell}: {}", score.name, figures(one));
            }
        }
        let silent = score.cells.iter().filter(|cell| cell.statements.is_empty());
        for cell in silent.filter(|_| verdict == Verdict::Open) {
            let cell = names.name(&cell.params);
            let _ = writeln!(text, "{what}: {}: {cell}: no valid repeats", score.name);
        }
    }
    text
}

/// How far on the bad side of 1.
fn badness(one: &Statement) -> f64 {
    let ratio = one.ratio.map_or(1.0, |ratio| ratio.mean);
    match one.measure {
        Measure::Throughput => -ratio.ln(),
        Measure::P99 | Measure::Cpu => ratio.ln(),
    }
}

fn figures(one: &Statement) -> String {
    let (name, rival) = (one.measure.name(), &one.rival);
    let Some(ratio) = one.ratio else {
        return format!(
            "{name} against {rival}: fewer than {LEAST_PAIRS} pairs with enough samples"
        );
    };
    let medians = one.medians.map_or(String::new(), |(own, other)| {
        format!(
            " ({} / {})",
            value(one.measure, own),
            value(one.measure, other)
        )
    });
    format!("{name} {} of {rival}{medians}", bounds(&ratio))
}

fn value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Throughput => Unit::BytesPerSecond.text(value),
        Measure::P99 => Unit::Nanoseconds.text(value),
        Measure::Cpu => format!("{:.3} ns/B", value * 1e9),
    }
}

fn bounds(ratio: &Ratio) -> String {
    format!("{:.3} [{:.3}, {:.3}]", ratio.mean, ratio.low, ratio.high)
}

//! The verdict of a gate for a terminal: what it is, the cells that are not a plain pass, and why.

#![forbid(unsafe_code)]

use std::cmp::Reverse;

use super::artefact::{Artefact, CellVerdict, Judged, Verdict};
use crate::diff::text::aligned;
use crate::report::escape::plain;
use crate::report::format::counted;

/// The whole verdict.
#[must_use]
pub fn text(artefact: &Artefact) -> String {
    let mut text = format!("{}\n", headline(artefact));
    for line in remarks(artefact) {
        text += &format!("! {line}\n");
    }
    let rows = rows(artefact, |change| change.verdict != Verdict::Pass);
    if rows.len() > 1 {
        text.push('\n');
        text += &aligned(&rows);
    }
    let reasons = cell_reasons(artefact);
    if !reasons.is_empty() {
        text.push('\n');
        text += &(reasons.join("\n") + "\n");
    }
    text
}

/// The verdict in one line.
#[must_use]
pub fn headline(artefact: &Artefact) -> String {
    let counts = Verdict::ALL.iter().rev().filter_map(|verdict| {
        let count = artefact.count(*verdict);
        (count > 0).then(|| format!("{count} {}", verdict.name()))
    });
    let mut counts: Vec<String> = counts.collect();
    if !artefact.new_cells.is_empty() {
        counts.push(format!("{} new", artefact.new_cells.len()));
    }
    let cells = counted(artefact.cells.len(), "cell");
    let counts = if counts.is_empty() {
        String::new()
    } else {
        format!(": {}", counts.join(", "))
    };
    format!("{}: {cells}{counts}", artefact.verdict.name())
}

/// Reasons and warnings about the runs as a whole.
pub(super) fn remarks(artefact: &Artefact) -> Vec<String> {
    let reasons: Vec<String> = artefact
        .reasons
        .iter()
        .map(|reason| format!("{}: {}", reason.verdict.name(), plain(&reason.text)))
        .collect();
    // What is a reason already is no warning beside.
    let is_new = |warning: &&String| {
        !artefact
            .reasons
            .iter()
            .any(|reason| reason.text == **warning)
    };
    let warnings = artefact
        .warnings
        .iter()
        .filter(is_new)
        .map(|warning| plain(warning));
    reasons.iter().cloned().chain(warnings).collect()
}

/// Figures that are wanted, under a heading.
pub(super) fn rows(artefact: &Artefact, wanted: fn(&Judged) -> bool) -> Vec<Vec<String>> {
    let heading = [
        "verdict",
        "cell",
        "metric",
        "baseline",
        "candidate",
        "change",
        "allowed",
        "detectable",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for cell in by_gravity(artefact) {
        for judged in cell.changes.iter().filter(|judged| wanted(judged)) {
            let [metric, baseline, candidate, change] = judged.change.columns();
            let detectable = judged.detectable_percent;
            rows.push(vec![
                judged.verdict.name().to_owned(),
                plain(&cell.name),
                metric,
                baseline,
                candidate,
                change,
                format!("{} %", rounded(judged.max_regress_percent)),
                detectable.map_or("-".to_owned(), |percent| format!("{percent:.1} %")),
            ]);
        }
    }
    rows
}

/// What stands against judging cells, a line each.
pub(super) fn cell_reasons(artefact: &Artefact) -> Vec<String> {
    let of_cell = |cell: &CellVerdict| -> Vec<String> {
        let reasons = cell.reasons.iter();
        let name = plain(&cell.name);
        reasons
            .map(|one| format!("{}: {name}: {}", one.verdict.name(), plain(&one.text)))
            .collect()
    };
    let cells = by_gravity(artefact).into_iter().flat_map(of_cell);
    cells
        .chain(
            artefact
                .new_cells
                .iter()
                .map(|name| format!("new: {}", plain(name))),
        )
        .collect()
}

/// The gravest cells first.
pub(super) fn by_gravity(artefact: &Artefact) -> Vec<&CellVerdict> {
    let mut cells: Vec<&CellVerdict> = artefact.cells.iter().collect();
    cells.sort_by_key(|cell| Reverse(cell.verdict));
    cells
}

/// A percentage as it was typed.
fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}

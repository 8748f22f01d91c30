//! A comparison as text, one line per metric of a cell.

#![forbid(unsafe_code)]

use super::record::{ChangeRecord, MeanRecord};
use super::{Change, Diff, any_change};
use crate::report::escape::plain;
use crate::statistics::Call;

/// What stands under every comparison.
pub(super) const NOTES: &str = "\
A change is second / first by Hodges and Lehmann, with 99 % bounds. `~`: within what chance does, over all figures of this
comparison (a permutation test, stratified by repeats that ran next to each other; 1 % false discoveries). Means are
geometric, with 95 % bounds on either side. `-`: repeats have too few samples for the percentile.";

/// The whole comparison.
#[must_use]
pub fn text(diff: &Diff<'_>) -> String {
    let [first, second] = diff.runs;
    let mut text = format!(
        "{}: {}\n{}: {}\n",
        diff.labels[0],
        plain(&first.name),
        diff.labels[1],
        plain(&second.name)
    );
    for warning in diff.warnings() {
        text += &format!("! {}\n", plain(&warning));
    }
    text.push('\n');
    text += &aligned(&rows(diff));
    text += &means(diff);
    let troubles = not_compared(diff);
    if !troubles.is_empty() {
        text.push('\n');
    }
    for line in troubles {
        text += &format!("not compared: {line}\n");
    }
    text + "\n" + NOTES + "\n"
}

/// The lines of the table, its heading first.
pub(super) fn rows(diff: &Diff<'_>) -> Vec<Vec<String>> {
    let heading = [
        "cell",
        "metric",
        diff.labels[0],
        diff.labels[1],
        "change",
        "",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let names = diff.names();
    for pair in diff
        .pairs
        .iter()
        .filter(|pair| pair.troubles().is_empty() || pair.tests() > 0)
    {
        for (index, change) in pair.changes.iter().enumerate() {
            let name = if index == 0 {
                plain(&names.name(pair.params()))
            } else {
                String::new()
            };
            let [metric, first, second, shift] = ChangeRecord::of(change).columns();
            rows.push(vec![
                name,
                metric,
                first,
                second,
                shift,
                mark(change).to_owned(),
            ]);
        }
    }
    rows
}

/// Cells with something against them, and what, each on a line.
pub(super) fn not_compared(diff: &Diff<'_>) -> Vec<String> {
    let names = diff.names();
    let lines = diff.pairs.iter().flat_map(|pair| {
        let name = plain(&names.name(pair.params()));
        let troubles = pair.troubles().into_iter();
        troubles.map(move |trouble| format!("{name}: {}", plain(&trouble.text(diff.labels))))
    });
    lines.collect()
}

/// What is shown of a change: `better`, `worse`, or `~` where nothing is.
pub(super) fn mark(change: &Change) -> &'static str {
    let limit = any_change(change.metric);
    match change
        .shift
        .as_ref()
        .map(|shift| limit.judge(shift, change.adjusted_p))
    {
        Some(Call::Worse) => "worse",
        Some(Call::Better) => "better",
        _ => "~",
    }
}

fn means(diff: &Diff<'_>) -> String {
    let rows = mean_rows(diff);
    if rows.len() < 2 {
        return "\nnothing to compare\n".to_owned();
    }
    format!("\n{}", aligned(&rows))
}

/// The geometric means under their heading.
pub(super) fn mean_rows(diff: &Diff<'_>) -> Vec<Vec<String>> {
    let heading = MeanRecord::heading();
    let rows = diff.means.iter().map(|mean| MeanRecord::of(mean).columns());
    [heading]
        .into_iter()
        .chain(rows)
        .map(|row| row.to_vec())
        .collect()
}

/// Rows with columns of equal width.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

//! A history as text: every change of level, and how many series there are.

#![forbid(unsafe_code)]

use super::{Entry, Series};
use crate::report::escape::plain;
use crate::report::format::counted;

/// The changes, the newest last.
#[must_use]
pub fn text(entries: &[Entry], series: &[Series]) -> String {
    let mut changes: Vec<(&str, String)> = series
        .iter()
        .flat_map(|one| {
            one.changes.iter().map(|change| {
                let started = one
                    .points
                    .get(change.at)
                    .map_or("", |point| point.started.as_str());
                let line = format!(
                    "{} {}: {} on {}",
                    one.name,
                    one.metric.title(),
                    one.change_text(change),
                    one.machine
                );
                (started, plain(&line))
            })
        })
        .collect();
    changes.sort();
    let mut text: String = changes
        .iter()
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    if changes.is_empty() {
        text += "no changes of level are seen\n";
    }
    let longest = series.iter().map(|one| one.points.len()).max().unwrap_or(0);
    text + &format!(
        "\n{}, {} of up to {}; about 14 are needed to see a change\n",
        counted(entries.len(), "run"),
        counted(series.len(), "figure"),
        counted(longest, "point")
    )
}

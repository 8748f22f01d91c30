//! A comparison as GitHub-flavoured Markdown: the means, what has changed, and all the rest folded away.

#![forbid(unsafe_code)]

use super::{Diff, text};
use crate::report::markdown::{line, rule, safe};

/// The whole comparison.
#[must_use]
pub fn document(diff: &Diff<'_>) -> String {
    let [first, second] = diff.runs;
    let mut document = format!(
        "### {} compared with {}\n",
        safe(&second.name),
        safe(&first.name)
    );
    document += &remarks(&diff.warnings());
    document += &means(diff);
    let rows = text::rows(diff);
    let (heading, rows) = rows
        .split_first()
        .map_or((&[][..], &[][..]), |(heading, rows)| {
            (heading.as_slice(), rows)
        });
    let named = with_names(rows);
    let changed: Vec<Vec<String>> = named
        .iter()
        .filter(|row| row.last().is_some_and(|mark| mark != "~"))
        .cloned()
        .collect();
    if changed.is_empty() {
        document += "\nNo cell has changed by more than chance does.\n";
    } else {
        document += "\n";
        document += &table(heading, &changed);
    }
    document += &format!(
        "\n<details><summary>all {} figures</summary>\n\n",
        named.len()
    );
    document += &table(heading, &named);
    document += "\n</details>\n";
    document += &remarks(&text::not_compared(diff));
    document + "\n<sub>" + &safe(text::NOTES) + "</sub>\n"
}

/// A list of remarks; nothing without any.
pub(crate) fn remarks(remarks: &[String]) -> String {
    if remarks.is_empty() {
        return String::new();
    }
    let lines = remarks.iter().map(|remark| format!("- {}\n", safe(remark)));
    format!("\n{}", lines.collect::<String>())
}

fn means(diff: &Diff<'_>) -> String {
    match text::mean_rows(diff).as_slice() {
        [heading, rows @ ..] if !rows.is_empty() => format!("\n{}", table(heading, rows)),
        _ => "\nNothing to compare.\n".to_owned(),
    }
}

/// A table; the first two columns are names.
pub(crate) fn table(heading: &[String], rows: &[Vec<String>]) -> String {
    let mut table = line(heading.iter().map(|cell| safe(cell)));
    table += &rule(2, heading.len().saturating_sub(2));
    for row in rows {
        table += &line(row.iter().map(|cell| safe(cell)));
    }
    table
}

/// Rows with the name of their cell, where a table names a cell once.
fn with_names(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut last = String::new();
    let mut named = Vec::with_capacity(rows.len());
    for row in rows {
        let mut row = row.clone();
        match row.first_mut() {
            Some(name) if name.is_empty() => name.clone_from(&last),
            Some(name) => last.clone_from(name),
            None => {}
        }
        named.push(row);
    }
    named
}

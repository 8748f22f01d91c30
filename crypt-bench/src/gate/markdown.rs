//! The verdict of a gate as GitHub-flavoured Markdown, for a pull-request comment or a step summary.

#![forbid(unsafe_code)]

use super::artefact::{Artefact, Verdict};
use super::text;
use crate::diff::markdown::{remarks, table};
use crate::diff::record::MeanRecord;
use crate::report::format::counted;
use crate::report::markdown::safe;

/// The whole verdict.
#[must_use]
pub fn document(artefact: &Artefact) -> String {
    let mut document = format!("### Gate: {}\n", safe(&text::headline(artefact)));
    document += &remarks(&text::remarks(artefact));
    document += &means(artefact);
    let grave = text::rows(artefact, |change| change.verdict != Verdict::Pass);
    if let [heading, rows @ ..] = grave.as_slice()
        && !rows.is_empty()
    {
        document += "\n";
        document += &table(heading, rows);
    }
    document += &remarks(&text::cell_reasons(artefact));
    if let [heading, rows @ ..] = text::rows(artefact, |_| true).as_slice()
        && !rows.is_empty()
    {
        document += &format!(
            "\n<details><summary>all {}</summary>\n\n",
            counted(rows.len(), "figure")
        );
        document += &table(heading, rows);
        document += "\n</details>\n";
    }
    document + &origin(artefact)
}

fn means(artefact: &Artefact) -> String {
    if artefact.means.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = artefact
        .means
        .iter()
        .map(|mean| mean.columns().to_vec())
        .collect();
    format!("\n{}", table(&MeanRecord::heading(), &rows))
}

fn origin(artefact: &Artefact) -> String {
    let sides = [
        ("baseline", &artefact.baseline),
        ("candidate", &artefact.candidate),
    ];
    let lines = sides.map(|(label, source)| {
        format!(
            "- {label}: {}, crypt-bench {} ({}) on {}, started {}\n",
            safe(&source.name),
            safe(&source.version),
            safe(source.git_revision.as_deref().unwrap_or("unknown revision")),
            safe(&source.host),
            safe(&source.started)
        )
    });
    format!("\n{}", lines.concat())
}

//! The report as GitHub-flavoured Markdown, short enough for a pull-request comment or a step
//! summary: the verdict, the overview, and per facet one folded table.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::chart::HeatMap;
use super::decisions;
use super::escape::plain;
use super::grid::{Cell, GridAxis, Noise};
use super::maps;
use super::metric::Metric;
use super::model::{Facet, Report};
use super::published;
use super::scaling::Scaling;
use super::verdict::Verdict;

/// The metrics of the tables per facet.
const SHOWN: [Metric; 4] = [
    Metric::Throughput,
    Metric::Iops,
    Metric::LatMean,
    Metric::LatP99,
];

/// The whole report.
#[must_use]
pub fn document(report: &Report<'_>) -> String {
    let [headline, worst, trust] = Verdict::of(report).lines().map(safe);
    let mut text = format!("### {headline}\n\n{worst}\n\n{trust}\n");
    if report.cells.is_empty() {
        return text;
    }
    text += &table_of(&maps::overview(report, Metric::Throughput));
    text += &Scaling::of(report).map_or_else(String::new, |scaling| scaling.markdown());
    text += &published::markdown(&published::sections(report));
    for facet in &report.facets {
        text += &one_facet(report, facet);
    }
    text += &decisions::markdown(&decisions::sections(report));
    text + &origin(report)
}

/// A heat map as a table under its title.
pub(super) fn table_of(map: &HeatMap) -> String {
    let (rows, columns) = (map.grid.rows(), map.grid.columns());
    let mut text = format!("\n**{}** ({})\n\n", safe(&map.title), safe(&map.subtitle));
    text += &line([safe(&rows.name)].into_iter().chain(full_labels(columns)));
    text += &rule(1, columns.labels.len());
    for (row, label) in full_labels(rows).enumerate() {
        let cells = (0..columns.labels.len()).map(|column| words(map, map.grid.cell(row, column)));
        text += &line([label].into_iter().chain(cells));
    }
    text
}

/// Every shown metric of every policy of a facet, folded away.
fn one_facet(report: &Report<'_>, facet: &Facet) -> String {
    let mut text = format!("\n<details><summary>{}</summary>\n", safe(&facet.label()));
    for metric in SHOWN {
        let mut pictures = maps::of_policies(report, facet, metric);
        pictures
            .extend(maps::of_ratios(report, facet, metric).map(|map| ("ratio".to_owned(), map)));
        let Some((_, first)) = pictures.first() else {
            continue;
        };
        let _ = write!(text, "\n**{}**\n\n", metric.title());
        let names = pictures.iter().map(|(name, _)| safe(name));
        text += &line(
            ["block size".to_owned(), "depth".to_owned()]
                .into_iter()
                .chain(names),
        );
        text += &rule(0, pictures.len() + 2);
        for (column, size) in full_labels(first.grid.columns()).enumerate() {
            for (row, depth) in full_labels(first.grid.rows()).enumerate() {
                let cells = pictures
                    .iter()
                    .map(|(_, map)| words(map, map.grid.cell(row, column)));
                text += &line([size.clone(), depth].into_iter().chain(cells));
            }
        }
    }
    text + "\n</details>\n"
}

/// Where the numbers come from.
fn origin(report: &Report<'_>) -> String {
    let mut text = String::from("\n");
    for run in report.runs {
        let (environment, tool) = (&run.manifest.environment, &run.manifest.tool);
        let machine = if environment.is_known() {
            let (cpu, kernel) = (safe(&environment.cpu_model), safe(&environment.kernel));
            format!("{cpu}, {} CPUs, Linux {kernel}", environment.cpus)
        } else {
            "imported, on a machine that is not described".to_owned()
        };
        let _ = writeln!(
            text,
            "- {}: {machine}; crypt-bench {} ({}), started {}",
            safe(&run.name),
            safe(&tool.version),
            safe(tool.git_revision.as_deref().unwrap_or("unknown revision")),
            safe(&run.manifest.started)
        );
    }
    text
}

fn words(map: &HeatMap, cell: &Cell) -> String {
    match cell {
        Cell::Value { value, noise } => {
            let about = if *noise == Noise::Within { "≈" } else { "" };
            format!("{about}{}", map.unit.text(*value))
        }
        Cell::Invalid { .. } => "*invalid*".to_owned(),
        Cell::Missing => "*missing*".to_owned(),
    }
}

fn full_labels(axis: &GridAxis) -> impl Iterator<Item = String> {
    axis.labels.iter().map(|label| {
        if label.group.is_empty() {
            safe(&label.text)
        } else {
            safe(&format!("{} · {}", label.group, label.text))
        }
    })
}

pub(crate) fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The line under a heading: left-aligned names, right-aligned numbers.
pub(crate) fn rule(left: usize, right: usize) -> String {
    line((0..left + right).map(|i| if i < left { ":--" } else { "--:" }.to_owned()))
}

/// Text that Markdown, HTML and mentions leave alone.
pub(crate) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '@' => safe.push_str("&#64;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' | '~' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::cells::Run;
    use super::*;
    use crate::testing::{cell, manifest, record};

    fn runs(device: &str) -> Vec<Run> {
        let mut records = Vec::new();
        for (policy, factor) in [("inline", 1.0), ("adaptive", 1.3)] {
            for depth in [1, 32] {
                let mut params = cell(policy, 4096, depth);
                params.device = device.to_owned();
                records.push(record(params, 1, 1e9 * factor));
            }
        }
        vec![Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }]
    }

    #[test]
    fn tables_have_the_same_number_of_cells_in_every_line() {
        let runs = runs("memory");
        let text = document(&Report::new(&runs));
        assert!(text.starts_with("### adaptive is 30\u{a0}% faster than inline"));
        assert!(
            text.contains("| memory · randread | 1.30× | 1.30× |\n"),
            "{text}"
        );
        assert!(
            text.contains("| 4k | 32 | 1.00 GB/s | 1.30 GB/s | 1.30× |\n"),
            "{text}"
        );
        for block in text.split("\n\n").filter(|block| block.starts_with('|')) {
            let widths: Vec<usize> = block.lines().map(|l| l.matches('|').count()).collect();
            assert!(widths.iter().all(|w| *w == widths[0]), "{block}");
        }
    }

    #[test]
    fn names_break_neither_table_nor_page() {
        let runs = runs("a|b\n<script>@everyone`x`");
        let text = document(&Report::new(&runs));
        assert!(
            text.contains("a\\|b &lt;script&gt;&#64;everyone\\`x\\`"),
            "{text}"
        );
        assert!(!text.contains("<script"));
    }

    #[test]
    fn no_results_are_a_document_too() {
        assert!(document(&Report::new(&[])).starts_with("### There are no results."));
    }
}

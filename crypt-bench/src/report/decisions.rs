//! Why policies placed what they placed, and what they predicted beside what it took: one row for each cell and
//! each way that it used, in every kind of report. Pure.
//!
//! Valid repeats are added up. Only policies that keep an account have rows.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::axis::Axis;
use super::cells::CellSummary;
use super::escape::{escape, plain};
use super::format::{Unit, size};
use super::markdown::{line, rule, safe};
use super::model::Report;
use crate::result::{DecisionCount, PredictedTime};

const TITLE: &str = "What the policy did, and why";
const HEADINGS: [&str; 9] = [
    "Block",
    "Depth",
    "Policy",
    "Way",
    "Share",
    "Predicted",
    "Took",
    "Ratio",
    "Why",
];
/// The first columns are words, the rest figures, but for the reasons.
const WORDS: usize = 4;
const NOTE: &str = "Share of the cipher work of a cell that went inline, to one worker or split over several, \
    and the policy's reasons in percent of all of it. The time from the decision until the queue's thread saw the \
    work done, as the policy predicted it and as it was, on the mean.";

/// The cells of one facet.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Device, pattern and what else tells it from others.
    pub label: String,
    /// One for each way of each cell.
    pub rows: Vec<Row>,
}

/// What one cell did in one way.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Block size; with the size class where a cell has several.
    pub block: String,
    /// Requests in flight.
    pub depth: String,
    /// The policy.
    pub policy: String,
    /// `inline`, `offload` or `split`.
    pub placement: String,
    /// Length of the longest job of the size class.
    pub up_to_bytes: Option<u64>,
    /// Of all jobs of the class, from 0 to 1.
    pub share: f64,
    /// Mean of the predictions.
    pub predicted_ns: Option<f64>,
    /// Mean of what they took.
    pub taken_ns: Option<f64>,
    /// Reasons with their share of all jobs of the class, the largest first.
    pub reasons: Vec<(String, f64)>,
}

impl Row {
    /// The reasons in words.
    fn why(&self) -> String {
        let words = self
            .reasons
            .iter()
            .map(|(reason, share)| format!("{reason} {}", percent(*share)));
        words.collect::<Vec<_>>().join(", ")
    }

    fn fields(&self) -> [String; 9] {
        let time = |ns: Option<f64>| ns.map_or_else(String::new, |ns| Unit::Nanoseconds.text(ns));
        let ratio = self.taken_ns.zip(self.predicted_ns);
        let ratio = ratio.map(|(taken, predicted)| taken / predicted);
        [
            self.block.clone(),
            self.depth.clone(),
            self.policy.clone(),
            self.placement.clone(),
            percent(self.share),
            time(self.predicted_ns),
            time(self.taken_ns),
            ratio.map_or_else(String::new, |ratio| Unit::Ratio.text(ratio)),
            self.why(),
        ]
    }
}

/// Every facet with an account, in the order of the report.
#[must_use]
pub fn sections(report: &Report<'_>) -> Vec<Section> {
    let facets = report.facets.iter().map(|facet| Section {
        label: facet.label(),
        rows: report.members(facet).flat_map(of_cell).collect(),
    });
    facets.filter(|section| !section.rows.is_empty()).collect()
}

/// The rows of one cell.
#[must_use]
pub fn of_cell(cell: &CellSummary<'_>) -> Vec<Row> {
    let valid = || cell.records.iter().filter(|record| record.is_valid());
    let mut jobs: BTreeMap<u64, BTreeMap<(&str, &str), u64>> = BTreeMap::new();
    for count in valid().flat_map(|record| &record.achieved.decisions) {
        let DecisionCount {
            placement, reason, ..
        } = count;
        let class = jobs.entry(class(count.up_to_bytes)).or_default();
        *class.entry((placement, reason)).or_default() += count.jobs;
    }
    let times: Vec<&PredictedTime> = valid()
        .flat_map(|record| &record.achieved.predictions)
        .collect();
    let several = jobs.len() > 1;
    let rows = jobs.iter().flat_map(|(&longest, counts)| {
        let all = counts.values().sum::<u64>().max(1) as f64;
        let ways = ["inline", "offload", "split"].into_iter();
        let times = &times;
        ways.filter_map(move |way| {
            let of_way = counts
                .iter()
                .filter(|((placement, _), _)| *placement == way);
            let mut reasons: Vec<(String, f64)> = of_way
                .map(|((_, reason), jobs)| ((*reason).to_owned(), *jobs as f64 / all))
                .collect();
            reasons.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            if reasons.is_empty() {
                return None;
            }
            let of_way = |time: &&&PredictedTime| {
                class(time.up_to_bytes) == longest && time.placement == way
            };
            let times = || times.iter().filter(of_way);
            let block = Axis::BlockSize.text(cell.params);
            Some(Row {
                block: if several {
                    format!("{block} {}", class_name(longest))
                } else {
                    block
                },
                depth: Axis::Depth.text(cell.params),
                policy: cell.params.policy.clone(),
                placement: way.to_owned(),
                up_to_bytes: Some(longest).filter(|longest| *longest < u64::MAX),
                share: reasons.iter().map(|(_, share)| share).sum(),
                predicted_ns: mean(times().map(|time| (time.predicted_ns_mean, time.jobs))),
                taken_ns: mean(times().map(|time| (time.taken_ns_mean, time.ended))),
                reasons,
            })
        })
    });
    rows.collect()
}

/// For programs: the rows of a cell.
#[must_use]
pub(super) fn json(cell: &CellSummary<'_>) -> Value {
    let rows = of_cell(cell).into_iter().map(|row| {
        let reasons = row
            .reasons
            .iter()
            .map(|(reason, share)| (reason.clone(), json!(share)));
        json!({
            "up_to_bytes": row.up_to_bytes,
            "placement": row.placement,
            "share": row.share,
            "predicted_ns_mean": row.predicted_ns,
            "taken_ns_mean": row.taken_ns,
            "reasons": reasons.collect::<serde_json::Map<_, _>>(),
        })
    });
    Value::Array(rows.collect())
}

/// In one field of a table for programs: each way with its reasons and times.
#[must_use]
pub(super) fn field(cell: &CellSummary<'_>) -> Option<String> {
    let ns = |ns: Option<f64>| ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{ns:.0}"));
    let rows = of_cell(cell).into_iter().map(|row| {
        let (predicted, taken) = (ns(row.predicted_ns), ns(row.taken_ns));
        let reasons = row
            .reasons
            .iter()
            .map(|(reason, share)| format!("{reason} {share:.4}"));
        let reasons = reasons.collect::<Vec<_>>().join(" ");
        let longest = row.up_to_bytes.unwrap_or(u64::MAX);
        format!(
            "{} up to {longest}: predicted_ns {predicted} taken_ns {taken} {reasons}",
            row.placement
        )
    });
    let rows: Vec<String> = rows.collect();
    (!rows.is_empty()).then(|| rows.join("; "))
}

/// For a terminal.
#[must_use]
pub fn text(sections: &[Section]) -> String {
    if sections.is_empty() {
        return "no policy of this run keeps an account of its decisions; adaptive does\n"
            .to_owned();
    }
    let mut text = format!("{TITLE}\n");
    for section in sections {
        let rows: Vec<[String; 9]> = section.rows.iter().map(Row::fields).collect();
        let headings = HEADINGS.map(str::to_owned);
        let all = || [&headings].into_iter().chain(&rows);
        let _ = writeln!(text, "\n{}", plain(&section.label));
        let width = |column: usize| all().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..HEADINGS.len()).filter_map(width).collect();
        for row in all() {
            let fields = row.iter().zip(&widths).enumerate();
            let fields = fields.map(|(column, (field, &width))| match column {
                column if column < WORDS => format!("{field:width$}"),
                column if column + 1 < HEADINGS.len() => format!("{field:>width$}"),
                _ => field.clone(),
            });
            let line = fields.collect::<Vec<_>>().join("  ");
            let _ = writeln!(text, "{}", plain(line.trim_end()));
        }
    }
    text
}

/// Folded tables for a pull request; nothing without accounts.
#[must_use]
pub(super) fn markdown(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        let _ = write!(
            text,
            "\n<details><summary>{TITLE}: {}</summary>\n\n{NOTE}\n\n",
            safe(&section.label)
        );
        text += &line(HEADINGS.map(str::to_owned));
        text += &rule(WORDS, HEADINGS.len() - WORDS);
        for row in &section.rows {
            text += &line(row.fields().map(|field| safe(&field)));
        }
        text += "\n</details>\n";
    }
    text
}

/// A section of the page; nothing without accounts.
#[must_use]
pub(super) fn html(sections: &[Section]) -> String {
    if sections.is_empty() {
        return String::new();
    }
    let mut html =
        format!("<section id=\"decisions\">\n<h2>{TITLE}</h2>\n<p class=\"quiet\">{NOTE}</p>\n");
    for section in sections {
        let _ = write!(
            html,
            "<details open><summary>{}</summary><div class=\"scroll\" tabindex=\"0\"><table><thead><tr>",
            escape(&section.label)
        );
        for heading in HEADINGS {
            let _ = write!(html, "<th scope=\"col\">{heading}</th>");
        }
        html += "</tr></thead><tbody>\n";
        for row in &section.rows {
            html += "<tr>";
            for field in row.fields() {
                let _ = write!(html, "<td>{}</td>", escape(&field));
            }
            html += "</tr>\n";
        }
        html += "</tbody></table></div></details>\n";
    }
    html + "</section>\n"
}

/// The mean of means over so many values each; `None` over none.
fn mean(of: impl Iterator<Item = (Option<f64>, u64)>) -> Option<f64> {
    let known = of.filter_map(|(mean, count)| Some((mean? * count as f64, count)));
    let (sum, count) = known.fold((0.0, 0), |(sum, all), (part, count)| {
        (sum + part, all + count)
    });
    (count > 0).then(|| sum / count as f64)
}

fn class(up_to_bytes: Option<u64>) -> u64 {
    up_to_bytes.unwrap_or(u64::MAX)
}

fn class_name(longest: u64) -> String {
    match longest {
        u64::MAX => "longest".to_owned(),
        bytes => format!("≤ {}", size(bytes)),
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        none if none <= 0.0 => "0 %".to_owned(),
        little if little < 0.1 => "< 0.1 %".to_owned(),
        some if some < 9.95 => format!("{some:.1} %"),
        most => format!("{most:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::Run;
    use super::*;
    use crate::result::ResultRecord;
    use crate::testing::{cell, manifest, record};

    fn decided(placement: &str, reason: &str, up_to_bytes: u64, jobs: u64) -> DecisionCount {
        DecisionCount {
            up_to_bytes: Some(up_to_bytes),
            placement: placement.to_owned(),
            reason: reason.to_owned(),
            jobs,
        }
    }

    fn explained(repeat: u32, predicted_ns: f64) -> ResultRecord {
        let mut record = record(cell("adaptive", 4096, 32), repeat, 1e9);
        record.achieved.decisions = vec![
            decided("inline", "own_share", 4096, 70),
            decided("inline", "exploring", 4096, 10),
            decided("offload", "backlog", 4096, 20),
        ];
        record.achieved.predictions = vec![PredictedTime {
            up_to_bytes: Some(4096),
            placement: "inline".to_owned(),
            jobs: 80,
            predicted_ns_mean: Some(predicted_ns),
            ended: 80,
            taken_ns_mean: Some(3_000.0),
        }];
        record
    }

    fn run(records: Vec<ResultRecord>) -> [Run; 1] {
        [Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }]
    }

    #[test]
    fn repeats_add_up_to_shares_and_means() {
        let runs = run(vec![
            explained(1, 1_000.0),
            explained(2, 2_000.0),
            record(cell("inline", 4096, 32), 1, 1e9),
        ]);
        let sections = sections(&Report::new(&runs));
        let [Section { rows, .. }] = &sections[..] else {
            panic!("{sections:?}");
        };
        let expected = [
            "4k", "32", "adaptive", "inline", "80 %", "1.50 µs", "3.00 µs", "2.00×",
        ];
        assert_eq!(rows[0].fields()[..8], expected);
        assert_eq!(rows[0].why(), "own_share 70 %, exploring 10 %");
        assert_eq!((rows.len(), rows[1].why().as_str()), (2, "backlog 20 %"));
        assert_eq!(rows[1].taken_ns, None);
    }

    #[test]
    fn every_report_has_them() {
        let runs = run(vec![explained(1, 1_000.0)]);
        let report = Report::new(&runs);
        for text in [
            text(&sections(&report)),
            super::super::markdown::document(&report),
            super::super::html::page(&report),
            super::super::machine::csv(&report),
            super::super::machine::json(&report),
        ] {
            assert!(
                text.contains("exploring")
                    || text.contains("exploring".replace('_', "\\_").as_str()),
                "{text}"
            );
            assert!(text.contains("backlog"), "{text}");
        }
    }

    #[test]
    fn size_classes_of_a_cell_are_told_apart() {
        let mut record = explained(1, 1_000.0);
        record
            .achieved
            .decisions
            .push(decided("split", "awake_workers", 1 << 20, 5));
        let runs = run(vec![record]);
        let sections = sections(&Report::new(&runs));
        let blocks: Vec<&str> = sections[0]
            .rows
            .iter()
            .map(|row| row.block.as_str())
            .collect();
        assert_eq!(blocks, ["4k ≤ 4k", "4k ≤ 4k", "4k ≤ 1m"]);
        assert_eq!(sections[0].rows[2].share, 1.0);
    }

    #[test]
    fn without_accounts_there_is_no_section() {
        let runs = run(vec![record(cell("inline", 4096, 32), 1, 1e9)]);
        let report = Report::new(&runs);
        let sections = sections(&report);
        assert!(sections.is_empty());
        assert!(html(&sections).is_empty() && markdown(&sections).is_empty());
        assert!(text(&sections).contains("adaptive"));
        assert_eq!(field(&report.cells[0]), None);
    }

    #[test]
    fn shares_are_printed_as_people_read_them() {
        let texts = [0.0, 0.0005, 0.012, 0.5, 1.0].map(percent);
        assert_eq!(texts, ["0 %", "< 0.1 %", "1.2 %", "50 %", "100 %"]);
    }
}

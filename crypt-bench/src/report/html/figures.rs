//! The pictures of the page: the overview, and per facet and metric one map per policy, the ratio
//! map, the same numbers as text, and why cells are invalid.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::chart::HeatMap;
use super::super::escape::escape;
use super::super::grid::{Cell, Noise};
use super::super::maps;
use super::super::metric::Metric;
use super::super::model::{Facet, Report};

/// The metrics that get maps; the table has them all.
const MAPPED: [Metric; 4] = [
    Metric::Throughput,
    Metric::Iops,
    Metric::LatMean,
    Metric::LatP99,
];

/// The picture of the first screen.
pub(super) fn overview(report: &Report<'_>) -> String {
    if report.cells.is_empty() {
        return String::new();
    }
    figure(&maps::overview(report, Metric::Throughput), "overview")
}

/// The section with every map.
pub(super) fn maps(report: &Report<'_>) -> String {
    if report.facets.is_empty() {
        return "<section id=\"maps\"><h2>Heat maps</h2><p>There are no results.</p></section>\n"
            .to_owned();
    }
    let mut html = String::from(
        "<section id=\"maps\">\n<h2>Heat maps</h2>\n<p class=\"quiet\">Block size across, depth \
         down, the number in every cell. Brighter is better, and all policies share one \
         colour scale. In ratio maps blue is better and orange is worse; ≈ and a pale colour mark a \
         ratio within the spread of the repeats. Hatched cells hold no number. Latency is <em>lat</em>, from submission to \
         completion.</p>\n",
    );
    html += &controls(report);
    for (index, facet) in report.facets.iter().enumerate() {
        html += &one_facet(report, facet, index);
    }
    html + "</section>\n"
}

fn controls(report: &Report<'_>) -> String {
    let mut html = String::from(
        "<form id=\"controls\" class=\"controls\" hidden>\n<fieldset><legend>Metric</legend>\
         <div class=\"segments\">",
    );
    for metric in MAPPED {
        let checked = if metric == Metric::Throughput {
            " checked"
        } else {
            ""
        };
        let _ = write!(
            html,
            "<label><input type=\"radio\" name=\"metric\" value=\"{}\"{checked}>{}</label>",
            metric.key(),
            short(metric)
        );
    }
    html += "</div></fieldset>\n";
    html += &choice("Device", "device", report, |facet| &facet.device);
    html += &choice("Pattern (rw)", "rw", report, |facet| &facet.rw);
    if report.facets.iter().any(|facet| !facet.extra.is_empty()) {
        html += &choice("Variant", "extra", report, |facet| &facet.extra);
    }
    html + "</form>\n"
}

fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::LatMean => "Mean latency",
        Metric::LatP99 => "p99 latency",
        other => other.title(),
    }
}

/// A drop-down over what the facets hold, with everything as the last choice.
fn choice(title: &str, name: &str, report: &Report<'_>, of: fn(&Facet) -> &str) -> String {
    let mut html = format!(
        "<div><label for=\"c-{name}\">{title}</label><select id=\"c-{name}\" name=\"{name}\">"
    );
    let mut seen = BTreeSet::new();
    for value in report.facets.iter().map(of) {
        if seen.insert(value) && !value.is_empty() {
            let value = escape(value);
            let _ = write!(html, "<option value=\"{value}\">{value}</option>");
        }
    }
    html + "<option value=\"\">all</option></select></div>\n"
}

fn one_facet(report: &Report<'_>, facet: &Facet, index: usize) -> String {
    let mut html = format!(
        "<section class=\"facet\" data-device=\"{}\" data-rw=\"{}\" data-extra=\"{}\">\n<h3>{}</h3>\n",
        escape(&facet.device),
        escape(&facet.rw),
        escape(&facet.extra),
        escape(&facet.label())
    );
    for metric in MAPPED {
        html += &one_metric(
            report,
            facet,
            metric,
            &format!("f{index}-{}", id_of(metric)),
        );
    }
    html + "</section>\n"
}

fn id_of(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "bw",
        Metric::Iops => "io",
        Metric::LatMean => "mean",
        Metric::LatP50 => "p50",
        Metric::LatP99 => "p99",
        Metric::LatP99_9 => "p999",
    }
}

fn one_metric(report: &Report<'_>, facet: &Facet, metric: Metric, id: &str) -> String {
    let mut pictures = maps::of_policies(report, facet, metric);
    if let Some(ratio) = maps::of_ratios(report, facet, metric) {
        pictures.push(("ratio".to_owned(), ratio));
    }
    let mut html = format!(
        "<div data-metric=\"{}\">\n<div class=\"maps\">\n",
        metric.key()
    );
    for (index, (_, picture)) in pictures.iter().enumerate() {
        html += &figure(picture, &format!("{id}-{index}"));
    }
    html += "</div>\n";
    html += &as_text(&pictures);
    html + "</div>\n"
}

/// A picture with the reasons of its invalid cells.
fn figure(map: &HeatMap, id: &str) -> String {
    let mut html = format!(
        "<figure><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div>",
        escape(&map.title),
        map.svg(id)
    );
    let reasons: Vec<String> = map
        .grid
        .iter()
        .filter_map(|(row, column, cell)| match cell {
            Cell::Invalid { why } => {
                let (row, column) = (
                    &map.grid.rows().labels[row],
                    &map.grid.columns().labels[column],
                );
                let place = format!("{} {} {}", column.group, column.text, row.text);
                Some(format!(
                    "<li>{}: {}</li>",
                    escape(place.trim()),
                    escape(why)
                ))
            }
            Cell::Value { .. } | Cell::Missing => None,
        })
        .collect();
    if !reasons.is_empty() {
        let _ = write!(
            html,
            "<figcaption><details><summary>{} invalid</summary><ul class=\"why\">{}</ul></details></figcaption>",
            reasons.len(),
            reasons.concat()
        );
    }
    html + "</figure>\n"
}

/// The numbers of pictures over the same axes as one table, folded away.
fn as_text(pictures: &[(String, HeatMap)]) -> String {
    let Some((_, first)) = pictures.first() else {
        return String::new();
    };
    let mut html = String::from(
        "<details><summary>The same as text</summary><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">block size</th><th scope=\"col\">depth</th>",
    );
    for (name, _) in pictures {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(name));
    }
    html += "</tr></thead><tbody>\n";
    for (column, size) in first.grid.columns().labels.iter().enumerate() {
        for (row, depth) in first.grid.rows().labels.iter().enumerate() {
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{}</td>",
                escape(&size.text),
                escape(&depth.text)
            );
            for (_, map) in pictures {
                let _ = write!(
                    html,
                    "<td>{}</td>",
                    in_words(map, map.grid.cell(row, column))
                );
            }
            html += "</tr>\n";
        }
    }
    html + "</tbody></table></div></details>\n"
}

fn in_words(map: &HeatMap, cell: &Cell) -> String {
    match cell {
        Cell::Value { value, noise } => {
            let about = if *noise == Noise::Within { "≈" } else { "" };
            format!("{about}{}", map.unit.text(*value))
        }
        Cell::Invalid { .. } => "invalid".to_owned(),
        Cell::Missing => "missing".to_owned(),
    }
}

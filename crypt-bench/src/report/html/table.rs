//! The table of every number: one row per cell and policy, sortable and searchable by the script.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::super::axis::Axis;
use super::super::cells::CellSummary;
use super::super::escape::escape;
use super::super::format::{Unit, percent};
use super::super::grid::Cell;
use super::super::metric::Metric;
use super::super::model::{Facet, Report};

/// The section with the table.
pub(super) fn cells(report: &Report<'_>) -> String {
    let has_extra = report.facets.iter().any(|facet| !facet.extra.is_empty());
    let mut html = String::from(
        "<section id=\"numbers\">\n<h2>Every number</h2>\n<p class=\"quiet\">Latency is \
         <em>lat</em>, from submission to completion; Wait (for a worker), Dispatch, Cipher and \
         Device are its means. Inline is the share of requests whose cipher ran on the queue's own \
         thread. Spread is half the range of the repeats' throughput. Press a heading to sort.</p>\n<p class=\"filter\" hidden><label>Find \
         <input type=\"search\" id=\"filter\" placeholder=\"memory randread adaptive\"></label> \
         <span id=\"found\" class=\"quiet\" role=\"status\"></span></p>\n\
         <div class=\"all\" tabindex=\"0\" role=\"region\" aria-label=\"Every number\">\
         <table id=\"cells\"><thead><tr>",
    );
    html += &headings(has_extra);
    html += "</tr></thead>\n<tbody>\n";
    for facet in &report.facets {
        for cell in report.members(facet) {
            html += &row(facet, cell, has_extra);
        }
    }
    html + "</tbody></table></div>\n</section>\n"
}

fn headings(has_extra: bool) -> String {
    let mut html = String::new();
    let mut heading = |name: &str, is_text: bool| {
        let class = if is_text { " class=\"t\"" } else { "" };
        let _ = write!(
            html,
            "<th scope=\"col\"{class}><button type=\"button\">{name}</button></th>"
        );
    };
    for name in ["Device", "rw"] {
        heading(name, true);
    }
    if has_extra {
        heading("Variant", true);
    }
    for name in ["Block", "Depth"] {
        heading(name, false);
    }
    heading("Policy", true);
    for name in [
        "Throughput",
        "IOPS",
        "Mean",
        "p50",
        "p99",
        "p99.9",
        "Wait",
        "Dispatch",
        "Cipher",
        "At device",
        "Inline",
        "Spread",
        "Repeats",
        "Samples",
    ] {
        heading(name, false);
    }
    heading("Doubts", true);
    html
}

fn row(facet: &Facet, cell: &CellSummary<'_>, has_extra: bool) -> String {
    let params = cell.params;
    let mut html = String::from("<tr>");
    let mut text = |words: &str| {
        let _ = write!(html, "<td class=\"t\">{}</td>", escape(words));
    };
    text(&facet.device);
    text(&facet.rw);
    if has_extra {
        text(&facet.extra);
    }
    for axis in [Axis::BlockSize, Axis::Depth] {
        let _ = write!(
            html,
            "<td data-v=\"{}\">{}</td>",
            axis.rank(params),
            axis.text(params)
        );
    }
    let _ = write!(html, "<td class=\"t\">{}</td>", escape(&params.policy));
    for metric in Metric::ALL {
        html += &number(&cell.cell(metric), metric);
    }
    html += &stages(cell);
    html += &match cell.relative_spread(Metric::Throughput) {
        Some(spread) => format!("<td data-v=\"{spread}\">±{}</td>", percent(1.0 + spread)),
        None => "<td data-v=\"\">unknown</td>".to_owned(),
    };
    let (valid, all) = (cell.repeats.len(), cell.records.len());
    let repeats = if valid == all {
        all.to_string()
    } else {
        format!("{valid} of {all}")
    };
    let samples = match &cell.figures {
        Ok(Some(figures)) => figures.samples(),
        _ => 0,
    };
    let _ = write!(
        html,
        "<td data-v=\"{valid}\">{repeats}</td><td data-v=\"{samples}\">{samples}</td>"
    );
    let doubts = cell.doubts().join("; ");
    let bad = if cell.figures.is_err() { " bad" } else { "" };
    let _ = writeln!(
        html,
        "<td class=\"t doubts{bad}\">{}</td></tr>",
        escape(&doubts)
    );
    html
}

/// Where the time went, and where the cipher ran.
fn stages(cell: &CellSummary<'_>) -> String {
    const EMPTY: &str = "<td data-v=\"\"></td>";
    let Ok(Some(figures)) = &cell.figures else {
        return EMPTY.repeat(5);
    };
    let mut html: String = match &figures.stages {
        None => EMPTY.repeat(4),
        Some(stages) => [
            stages.wait_ns_mean,
            stages.dispatch_ns_mean,
            stages.cipher_ns_mean,
            stages.device_ns_mean,
        ]
        .map(|ns| format!("<td data-v=\"{ns}\">{}</td>", Unit::Nanoseconds.text(ns)))
        .concat(),
    };
    html += &match figures.inline_share {
        Some(share) => format!("<td data-v=\"{share}\">{:.0} %</td>", share * 100.0),
        None => "<td data-v=\"\">none</td>".to_owned(),
    };
    html
}

/// A number to read, with the exact one to sort by.
fn number(cell: &Cell, metric: Metric) -> String {
    match cell {
        Cell::Value { value, .. } => {
            format!("<td data-v=\"{value}\">{}</td>", metric.unit().text(*value))
        }
        Cell::Invalid { .. } => "<td data-v=\"\" class=\"bad\">invalid</td>".to_owned(),
        Cell::Missing => "<td data-v=\"\">missing</td>".to_owned(),
    }
}

//! What came of a latency target and of a search for a steady state: fio's lines and JSON. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::outcome::Report;
use crate::play::{Figure, Steadiness};

/// Lines of a report.
pub(super) fn write_text(text: &mut String, report: &Report) {
    if report.errors > 0 {
        let _ = writeln!(
            text,
            "  errors: total={}, first_error={}",
            report.errors, report.errno
        );
    }
    if let Some(target) = &report.target {
        let _ = writeln!(
            text,
            "  latency: target={} nsec, window={} usec, percentile={:.2}%, depth={}",
            target.latency_ns,
            target.window_ns / 1000,
            target.percent,
            report.depth
        );
    }
    if let Some(found) = &report.steadiness {
        let rule = &found.rule;
        let _ = writeln!(
            text,
            "  steadystate: attained={}, bw={:.1}KiB/s, iops={}, {} {}={:.3}{}",
            if found.attained { "yes" } else { "no" },
            mean(&found.bytes_per_s) as f64 / 1024.0,
            mean(&found.iops),
            name(rule.figure),
            if rule.slope { "slope" } else { "mean dev" },
            found.criterion,
            if rule.percent { "%" } else { "" }
        );
    }
}

/// Keys of a job.
pub(super) fn write_json(object: &mut Map<String, Value>, report: &Report) {
    let target = report.target.as_ref();
    for (key, value) in [
        ("latency_depth", json!(report.depth)),
        (
            "latency_target",
            json!(target.map_or(0, |target| target.latency_ns)),
        ),
        (
            "latency_percentile",
            json!(target.map_or(100.0, |target| target.percent)),
        ),
        (
            "latency_window",
            json!(target.map_or(0, |target| target.window_ns / 1000)),
        ),
    ] {
        object.insert(key.to_owned(), value);
    }
    if let Some(found) = &report.steadiness {
        object.insert("steadystate".to_owned(), steadystate(found));
    }
}

fn steadystate(found: &Steadiness) -> Value {
    let rule = &found.rule;
    let sign = if rule.percent { "%" } else { "" };
    let slope = if rule.slope { "_slope" } else { "" };
    // Infinity, of a share of nothing, is not JSON.
    let value = |value: f64| if value.is_finite() { value } else { 0.0 };
    let (deviation, slope_value) = match rule.slope {
        true => (0.0, found.value),
        false => (found.value, 0.0),
    };
    json!({
        "ss": format!("{}{slope}:{:.6}{sign}", name(rule.figure), rule.limit),
        "duration": rule.window_s,
        "attained": u8::from(found.attained),
        "criterion": format!("{:.6}{sign}", value(found.criterion)),
        "max_deviation": value(deviation),
        "slope": value(slope_value),
        "data": {
            "bw_mean": mean(&found.bytes_per_s),
            "iops_mean": mean(&found.iops),
            "iops": found.iops,
            "bw": found.bytes_per_s,
        },
    })
}

fn name(figure: Figure) -> &'static str {
    match figure {
        Figure::Iops => "iops",
        Figure::Bandwidth => "bw",
    }
}

fn mean(figures: &[u64]) -> u64 {
    figures.iter().sum::<u64>() / figures.len().max(1) as u64
}

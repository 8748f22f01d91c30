//! Reports as text, arranged as fio arranges them. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write;

use super::goals;
use super::outcome::Report;
use crate::fio::write::value_at;
use crate::result::{DirectionStats, Distribution};

/// All reports.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub(super) fn text(reports: &[Report]) -> Result<String, String> {
    let mut text = String::new();
    for report in reports {
        write_report(&mut text, report)?;
    }
    Ok(text)
}

fn write_report(text: &mut String, report: &Report) -> Result<(), String> {
    let _ = writeln!(
        text,
        "{}: (groupid={}, threads={}): err={} ({})",
        report.name,
        report.group,
        report.threads,
        report.errno,
        report.facts.join("; ")
    );
    let directions = [("read", &report.read), ("write", &report.write)];
    for ((name, stats), response) in directions.into_iter().zip(&report.response) {
        if let Some(stats) = stats {
            write_direction(text, report, name, stats)?;
        }
        if let Some(response) = response {
            write_latency(text, "response, from the intended start", response);
            write_percentiles(text, report, "response", response)?;
        }
    }
    if let Some(flush) = &report.flush {
        let _ = writeln!(text, "  sync: {} flushes", flush.ios);
        write_latency(text, "lat", &flush.lat);
    }
    goals::write_text(text, report);
    if let Some(usage) = &report.usage {
        let _ = writeln!(
            text,
            "  cpu: usr={:.2}%, sys={:.2}%",
            usage.user_percent, usage.system_percent
        );
    }
    if let Some(lateness) = &report.lateness {
        write_latency(
            text,
            "lateness, from the intended to the actual start",
            lateness,
        );
        write_percentiles(text, report, "lateness", lateness)?;
    }
    if let Some(verified) = &report.verified {
        text.push_str(&verified.text());
    }
    for doubt in &report.doubts {
        let kind = if doubt.invalidates() {
            "INVALID"
        } else {
            "doubt"
        };
        let _ = writeln!(text, "  {kind}: {doubt}");
    }
    if report.read.is_none() && report.write.is_none() {
        text.push_str("  no samples\n");
    }
    Ok(())
}

fn write_direction(
    text: &mut String,
    report: &Report,
    name: &str,
    stats: &DirectionStats,
) -> Result<(), String> {
    let _ = writeln!(
        text,
        "  {name}: IOPS={:.0}, BW={:.1}MiB/s ({:.1}MB/s), {} requests, {} bytes in {} ms",
        stats.iops,
        stats.bw_bytes_per_s / f64::from(1 << 20),
        stats.bw_bytes_per_s / 1e6,
        stats.ios,
        stats.bytes,
        report.runtime_ns / 1_000_000
    );
    let kinds = [
        ("slat", &stats.slat),
        ("clat", &stats.clat),
        ("lat", &stats.lat),
    ];
    for (kind, latency) in kinds {
        write_latency(text, kind, latency);
    }
    for ((kind, latency), shown) in kinds.into_iter().zip(report.shown) {
        if shown {
            write_percentiles(text, report, kind, latency)?;
        }
    }
    Ok(())
}

fn write_latency(text: &mut String, kind: &str, latency: &Distribution) {
    let over = match latency.over_range_samples {
        0 => String::new(),
        over => format!(", {over} longer than the histogram reaches"),
    };
    let _ = writeln!(
        text,
        "    {kind} (nsec): min={}, max={}, avg={:.1}, stdev={:.1}{over}",
        latency.min_ns, latency.max_ns, latency.mean_ns, latency.stddev_ns
    );
}

fn write_percentiles(
    text: &mut String,
    report: &Report,
    kind: &str,
    latency: &Distribution,
) -> Result<(), String> {
    let _ = writeln!(text, "    {kind} percentiles (nsec):");
    for row in report.percentiles.chunks(4) {
        text.push_str("     |");
        for (index, &percentile) in row.iter().enumerate() {
            let value_ns = value_at(latency, percentile)?;
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(text, "{comma} {percentile:.2}th=[{value_ns}]");
        }
        text.push('\n');
    }
    Ok(())
}

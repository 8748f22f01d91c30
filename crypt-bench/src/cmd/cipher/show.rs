//! Records as a table, a heat map, or JSON. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::{Direction, LIMIT, Record};
use crate::cli::{Failure, Outcome};
use crate::report::chart::HeatMap;
use crate::report::format::{Unit, size};
use crate::report::grid::{Cell, Grid, GridAxis, Label};
use crate::report::palette::Palette;
use crate::report::scale::{Scale, ScaleKind};
use crate::report::terminal::{self, Style};

/// One array, one record a line.
pub(super) fn json(records: &[Record]) -> Outcome<String> {
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    let lines = lines.map_err(|error| Failure::internal(error.to_string()))?;
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}

/// Below the table.
const LEGEND: &str = "\
cycles/B: of the time stamp counter, per thread; it counts at a constant rate, whatever the clock of the core.
of limit: throughput beside that of the same AES rounds without a mode.
";

/// The table of all records, then the heat map.
pub(super) fn text(records: &[Record], map: &HeatMap, style: Style) -> String {
    let map = terminal::heat_map(map, style);
    format!("{}{LEGEND}\n{map}", table(records))
}

fn table(records: &[Record]) -> String {
    let width = records.iter().map(|record| record.cipher.len()).max();
    let width = width.unwrap_or(0);
    let mut text = format!(
        "{:width$} {:>4} {:>6} {:>7} {:8} {:>7} {:9} {:>7} {:>8} {:>8}\n",
        "cipher",
        "key",
        "sector",
        "request",
        "backend",
        "threads",
        "direction",
        "GB/s",
        "cycles/B",
        "of limit"
    );
    for record in records {
        let dash = || "-".to_owned();
        let cycles = record
            .cycles_per_byte
            .map_or_else(dash, |cycles| format!("{cycles:.3}"));
        let share = of_limit(records, record).map_or_else(dash, |share| format!("{share:.2}"));
        let _ = writeln!(
            text,
            "{:width$} {:>4} {:>6} {:>7} {:8} {:>7} {:9} {:>7.2} {cycles:>8} {share:>8}",
            record.cipher,
            record.key_bits,
            record.sector_size,
            size(record.request_bytes),
            record.backend,
            record.threads,
            name(record.direction),
            record.gb_per_s,
        );
    }
    text
}

/// A cipher's throughput as a share of what the AES rounds alone reach, for AES modes.
fn of_limit(records: &[Record], record: &Record) -> Option<f64> {
    let mode = record.cipher.strip_prefix("aes-")?;
    let key_bits = match mode.split('-').next()? {
        "xts" => record.key_bits / 2,
        _ => record.key_bits,
    };
    let limit = records.iter().find(|limit| {
        limit.cipher == LIMIT
            && limit.key_bits == key_bits
            && limit.backend == record.backend
            && limit.direction == record.direction
            && limit.threads == record.threads
            && limit.sector_size == record.sector_size
            && limit.request_bytes == record.request_bytes
    })?;
    (record.cipher != LIMIT).then(|| record.gb_per_s / limit.gb_per_s)
}

pub(super) fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Encrypt => "encrypt",
        Direction::Decrypt => "decrypt",
        Direction::Copy => "copy",
    }
}

/// Throughput over request sizes, one row for everything else.
pub(super) fn heat_map(records: &[Record]) -> HeatMap {
    let mut rows: Vec<String> = Vec::new();
    let mut requests: Vec<u64> = Vec::new();
    for record in records {
        let row = row(record);
        if !rows.contains(&row) {
            rows.push(row);
        }
        if !requests.contains(&record.request_bytes) {
            requests.push(record.request_bytes);
        }
    }
    requests.sort_unstable();
    let grid = Grid::from_fn(
        axis("cipher, key bits, sector size", rows.iter().cloned()),
        axis("request size", requests.iter().map(|&bytes| size(bytes))),
        |at_row, at_request| cell(records, &rows[at_row], requests[at_request]),
    );
    HeatMap {
        title: "Cipher throughput in memory".to_owned(),
        subtitle: "in place; best of interleaved slices".to_owned(),
        scale: Scale::fit(ScaleKind::Log, grid.values()),
        grid,
        unit: Unit::BytesPerSecond,
        palette: Palette::Sequential,
    }
}

fn axis(name: &str, labels: impl Iterator<Item = String>) -> GridAxis {
    GridAxis {
        name: name.to_owned(),
        labels: labels.map(Label::new).collect(),
    }
}

fn row(record: &Record) -> String {
    let Record {
        cipher,
        key_bits,
        sector_size,
        backend,
        ..
    } = record;
    let (direction, sector) = (name(record.direction), size(*sector_size));
    let threads = match record.threads {
        1 => String::new(),
        threads => format!(" x{threads}"),
    };
    if *key_bits == 0 {
        return format!("{cipher} ({sector}){threads}");
    }
    format!("{cipher} {key_bits} {sector} {backend}{threads} {direction}")
}

fn cell(records: &[Record], wanted: &str, request_bytes: u64) -> Cell {
    records
        .iter()
        .find(|record| record.request_bytes == request_bytes && row(record) == wanted)
        .map_or(Cell::Missing, |record| Cell::new(record.gb_per_s * 1e9))
}

//! Presets: the definition of a published table, and the table.
//!
//! An input is both, with a line `%%` between them.

#![forbid(unsafe_code)]

use std::path::Path;

use crypt_bench::definition::Definition;
use crypt_bench::preset::Preset;

use super::matrix::{self, multiplied};
use super::{check_message, files, toml_pieces};

const BETWEEN: &str = "\n%%\n";

/// Reads a preset.
///
/// # Panics
/// Where its figures make no sense.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let (plan, table) = text.split_once(BETWEEN).unwrap_or((text, ""));
    let preset = match Preset::read("fuzz", plan, table) {
        Ok(preset) => preset,
        Err(message) => {
            check_message(&message, text.len());
            return false;
        }
    };
    for column in &preset.plan.column {
        assert!(preset.column(&column.policy).is_some());
        assert!(preset.policy(&column.name).is_some());
    }
    for figure in &preset.figures {
        assert!(figure.native().is_finite(), "{figure:?}");
    }
    let fallback = Definition::fallback().expect("the program's own default");
    multiplied(&preset.plan.matrix.over(fallback), text.len())
}

/// The program's own.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let plans = files("../benches/presets", ".toml");
    let joined = plans.into_iter().filter_map(|plan| {
        let text = String::from_utf8(plan).ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("published = \""))?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/published");
        let table = std::fs::read_to_string(folder.join(line.trim_end_matches('"'))).ok()?;
        Some(format!("{text}{BETWEEN}{table}").into_bytes())
    });
    joined.collect()
}

/// Lines of presets and tables.
#[must_use]
pub fn pieces() -> Vec<String> {
    let mut pieces = toml_pieces(&[
        "title",
        "published",
        "rows",
        "notes",
        "maps",
        "instant",
        "name",
        "measure",
    ]);
    pieces.extend(toml_pieces(matrix::KEYS));
    let others = [
        BETWEEN,
        "\n[[column]]\n",
        "\n[[show]]\n",
        "\n[[matrix.case]]\n",
        "\n[matrix]\n",
        "mb_s",
        "_mb_s",
        "clat_us_p99",
        "iodepth,jobs,bs,rw\n",
        "target",
        "unit",
        "conclusion",
        "workqueue",
        "\"a,b\"",
        "NaN",
        "inf",
        "1e400",
    ];
    pieces.extend(others.map(str::to_owned));
    pieces
}

//! The verdict and a heat map for a terminal: colour where it is wanted, aligned text where not.
//!
//! Pure: what the terminal can do is decided by [`Style::choose`] from values that the caller
//! reads. Names from outside can't send control sequences. No line is longer than the width, except
//! where a single column does not fit.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::chart::HeatMap;
use super::escape::plain;
use super::grid::{Cell, Noise};
use super::maps;
use super::metric::Metric;
use super::model::Report;
use super::palette::Rgb;
use super::published;
use super::scaling::Scaling;
use super::verdict::Verdict;

/// How colours are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Not at all.
    None,
    /// From the 256-colour palette.
    Ansi256,
    /// As 24-bit values.
    True,
}

/// What the output can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of text.
    pub width: usize,
    /// Colours.
    pub color: Color,
}

impl Style {
    /// The style for an output of `width` columns; `None` where it is no terminal. `variable` reads
    /// the environment: `NO_COLOR` (if not empty) and `TERM=dumb` mean no colours.
    pub fn choose(width: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let is = |name: &str, values: &[&str]| {
            variable(name).is_some_and(|value| values.contains(&value.as_str()))
        };
        let no_color = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = if width.is_none() || no_color || is("TERM", &["dumb"]) {
            Color::None
        } else if is("COLORTERM", &["truecolor", "24bit"]) {
            Color::True
        } else {
            Color::Ansi256
        };
        Self {
            width: width.unwrap_or(100).max(20),
            color,
        }
    }
}

/// The overview map, the three-line verdict, where policies scale, and the published tables that were measured again.
#[must_use]
pub fn summary(report: &Report<'_>, style: Style) -> String {
    let mut text = String::new();
    if !report.cells.is_empty() {
        text += &heat_map(&maps::overview(report, Metric::Throughput), style);
        text.push('\n');
    }
    for line in Verdict::of(report).lines() {
        text += &wrapped(line, style.width);
    }
    if let Some(scaling) = Scaling::of(report) {
        text.push('\n');
        text += &scaling.text(style.width);
    }
    let sections = published::sections(report);
    if !sections.is_empty() {
        text.push('\n');
        text += &published::text(&sections, style);
    }
    text
}

/// A heat map in text. Columns that don't fit beside each other continue below.
#[must_use]
pub fn heat_map(map: &HeatMap, style: Style) -> String {
    let labels = &map.grid.rows().labels;
    let longest = labels.iter().map(|l| l.text.chars().count()).max();
    let label_width = longest.unwrap_or(0).min(style.width / 2);
    let cell_width = cell_width(map);
    let per_block = (style.width.saturating_sub(label_width + 1) / cell_width).max(1);
    let mut text = wrapped(&map.title, style.width) + &wrapped(&map.subtitle, style.width);
    let columns = map.grid.columns().labels.len();
    for first in (0..columns).step_by(per_block) {
        let block = first..(first + per_block).min(columns);
        text += &block_of(map, block, label_width, cell_width, style);
    }
    text
}

/// Width of the widest cell or column label, and a space before it.
fn cell_width(map: &HeatMap) -> usize {
    let cells = map
        .grid
        .iter()
        .map(|(_, _, cell)| words(map, cell).chars().count());
    let labels = map.grid.columns().labels.iter();
    let labels = labels.map(|label| label.text.chars().count().max(label.group.chars().count()));
    cells.chain(labels).max().unwrap_or(0).min(24) + 2
}

fn block_of(
    map: &HeatMap,
    block: std::ops::Range<usize>,
    label_width: usize,
    cell_width: usize,
    style: Style,
) -> String {
    let columns = &map.grid.columns().labels;
    let mut text = String::new();
    let mut heading = |of: &dyn Fn(usize) -> String| {
        let _ = write!(text, "{:label_width$} ", "");
        for column in block.clone() {
            text += &centred(&of(column), cell_width);
        }
        let kept = text.trim_end().len();
        text.truncate(kept);
        text.push('\n');
    };
    if columns.iter().any(|label| !label.group.is_empty()) {
        heading(&|column| {
            let repeated =
                column > block.start && columns[column - 1].group == columns[column].group;
            if repeated {
                String::new()
            } else {
                columns[column].group.clone()
            }
        });
    }
    heading(&|column| columns[column].text.clone());
    for (row, label) in map.grid.rows().labels.iter().enumerate() {
        let _ = write!(
            text,
            "{:>label_width$} ",
            shortened(&plain(&label.text), label_width)
        );
        for column in block.clone() {
            let cell = map.grid.cell(row, column);
            let words = centred(&words(map, cell), cell_width);
            text += &painted(map, cell, &words, style.color);
        }
        let kept = text.trim_end().len();
        text.truncate(kept);
        text.push('\n');
    }
    text
}

fn words(map: &HeatMap, cell: &Cell) -> String {
    match cell {
        Cell::Value { value, noise } => {
            let about = if *noise == Noise::Within { "≈" } else { "" };
            format!("{about}{}", map.unit.text(*value))
        }
        Cell::Invalid { .. } => "╳╳╳".to_owned(),
        Cell::Missing => "···".to_owned(),
    }
}

fn painted(map: &HeatMap, cell: &Cell, words: &str, color: Color) -> String {
    let (Cell::Value { value, noise }, true) = (cell, color != Color::None) else {
        return words.to_owned();
    };
    let ground = map.color(*value, *noise);
    let (ground_code, ink_code) = match color {
        Color::True => (true_color(ground), true_color(ground.ink())),
        _ => (
            format!("5;{}", nearest(ground)),
            format!("5;{}", nearest(ground.ink())),
        ),
    };
    format!("\u{1b}[48;{ground_code};38;{ink_code}m{words}\u{1b}[0m")
}

fn true_color(color: Rgb) -> String {
    format!("2;{};{};{}", color.0, color.1, color.2)
}

/// The nearest colour of the 6 x 6 x 6 cube of the 256-colour palette.
fn nearest(color: Rgb) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level = |channel: u8| {
        let distance = |i: &usize| LEVELS[*i].abs_diff(channel);
        (0..LEVELS.len()).min_by_key(distance).unwrap_or(0) as u8
    };
    16 + 36 * level(color.0) + 6 * level(color.1) + level(color.2)
}

fn centred(text: &str, width: usize) -> String {
    let text = shortened(&plain(text), width.saturating_sub(1));
    format!("{text:^width$}")
}

/// Cut at the front: the end tells names apart.
fn shortened(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count - width.saturating_sub(1)).collect();
    format!("…{kept}")
}

/// `text` broken at spaces into lines of at most `width`, with a line end.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in plain(text).split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::super::cells::Run;
    use super::*;
    use crate::doubt::Doubt;
    use crate::testing::{cell, manifest, record};

    fn runs(device: &str) -> Vec<Run> {
        let mut records = Vec::new();
        for (policy, factor) in [("inline", 1.0), ("adaptive", 1.3)] {
            for block_size in [4096, 65536, 1 << 20] {
                for depth in [1, 8, 32] {
                    let mut params = cell(policy, block_size, depth);
                    params.device = device.to_owned();
                    records.push(record(params, 1, 1e9 * factor));
                }
            }
        }
        records[0].doubts.push(Doubt::NotDirect);
        vec![Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }]
    }

    const PLAIN: Style = Style {
        width: 100,
        color: Color::None,
    };

    #[test]
    fn numbers_and_groups_are_aligned_and_invalid_cells_crossed() {
        let runs = runs("memory");
        let text = summary(&Report::new(&runs), PLAIN);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2].trim_start(),
            "4k                   64k                  1m"
        );
        assert_eq!(
            lines[4],
            "memory · randread   ╳╳╳   1.30×  1.30×  1.30×  1.30×  1.30×  1.30×  1.30×  1.30×"
        );
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn colours_follow_the_terminal_and_no_color() {
        let choose = |width, pairs: &'static [(&str, &str)]| {
            Style::choose(width, |name| {
                let found = pairs.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
            .color
        };
        assert_eq!(choose(Some(80), &[]), Color::Ansi256);
        assert_eq!(choose(Some(80), &[("COLORTERM", "truecolor")]), Color::True);
        assert_eq!(
            choose(Some(80), &[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]),
            Color::None
        );
        assert_eq!(choose(Some(80), &[("NO_COLOR", "")]), Color::Ansi256);
        assert_eq!(choose(Some(80), &[("TERM", "dumb")]), Color::None);
        assert_eq!(choose(None, &[]), Color::None);
        let runs = runs("memory");
        let report = Report::new(&runs);
        for (color, code) in [
            (Color::True, "\u{1b}[48;2;"),
            (Color::Ansi256, "\u{1b}[48;5;"),
        ] {
            assert!(summary(&report, Style { width: 80, color }).contains(code));
        }
    }

    #[test]
    fn lines_keep_to_the_width() {
        let runs = runs("file:/a/rather/long/path/to/some/image/on/some/disk.img");
        let report = Report::new(&runs);
        for width in [40, 60, 80, 120] {
            let style = Style {
                width,
                color: Color::None,
            };
            for line in summary(&report, style).lines() {
                // A path in the verdict is a single word, which is not broken.
                assert!(line.chars().count() <= width.max(56), "{width}: {line}");
            }
        }
    }

    #[test]
    fn hostile_names_send_nothing_to_the_terminal() {
        let runs = runs("\u{1b}]0;title\u{7}\r\n");
        let text = summary(&Report::new(&runs), PLAIN);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\r']));
    }

    #[test]
    fn nothing_is_a_summary_too() {
        assert!(summary(&Report::new(&[]), PLAIN).starts_with("There are no results.\n"));
    }

    #[test]
    fn the_colour_cube_holds_its_own_colours() {
        assert_eq!(nearest(Rgb(0, 0, 0)), 16);
        assert_eq!(nearest(Rgb(255, 255, 255)), 231);
        assert_eq!(nearest(Rgb(95, 135, 175)), 16 + 36 + 12 + 3);
    }
}

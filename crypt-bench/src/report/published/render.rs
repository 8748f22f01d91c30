//! Sections as text for a terminal, as Markdown and HTML.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::super::escape::{escape, plain};
use super::super::format::Unit;
use super::super::markdown::{line, rule, safe};
use super::super::terminal::{self, Style};
use super::instant::{ALPHA, DRAWS};
use super::{Instant, Row, Section, Table, digits};

/// Rows of text under headings; the first `left` columns are words.
struct Lines {
    left: usize,
    headings: Vec<String>,
    /// Whether a row is published, and its fields.
    rows: Vec<(bool, Vec<String>)>,
}

/// All sections for a terminal. Columns that don't fit beside each other continue below.
#[must_use]
pub fn text(sections: &[Section], style: Style) -> String {
    let mut text = String::new();
    for section in sections {
        for paragraph in about(section) {
            text += &terminal::wrapped(&paragraph, style.width);
        }
        for table in &section.tables {
            let _ = writeln!(text, "\n{}", table.title);
            text += &aligned(&lines(section, table), style.width);
        }
        for map in &section.maps {
            text.push('\n');
            text += &terminal::heat_map(map, style);
        }
        if !section.instant.is_empty() {
            text.push('\n');
            text += &terminal::wrapped(&instant_title(section), style.width);
            text += &aligned(&instant_lines(&section.instant), style.width);
        }
        for note in remarks(section) {
            text += &terminal::wrapped(&format!("- {note}"), style.width);
        }
        text.push('\n');
    }
    text
}

/// All sections as Markdown.
#[must_use]
pub fn markdown(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        for paragraph in about(section) {
            let _ = write!(text, "\n{}\n", safe(&paragraph));
        }
        for table in &section.tables {
            let _ = write!(
                text,
                "\n**{}**\n\n{}",
                safe(&table.title),
                in_markdown(&lines(section, table))
            );
        }
        for map in &section.maps {
            text += &super::super::markdown::table_of(map);
        }
        if !section.instant.is_empty() {
            let _ = write!(text, "\n{}\n\n", safe(&instant_title(section)));
            text += &in_markdown(&instant_lines(&section.instant));
        }
        text.push('\n');
        for note in remarks(section) {
            let _ = writeln!(text, "- {}", safe(&note));
        }
    }
    text
}

/// All sections as a part of the page; empty without any.
#[must_use]
pub fn html(sections: &[Section]) -> String {
    let mut html = String::new();
    for (index, section) in sections.iter().enumerate() {
        let [title, rest @ ..] = &about(section)[..] else {
            continue;
        };
        let id = if index == 0 { " id=\"published\"" } else { "" };
        let _ = writeln!(html, "<section{id}>\n<h2>{}</h2>", escape(title));
        for paragraph in rest {
            let _ = writeln!(html, "<p class=\"quiet\">{}</p>", escape(paragraph));
        }
        for table in &section.tables {
            let _ = writeln!(html, "<h3>{}</h3>", escape(&table.title));
            html += &in_html(&lines(section, table), &table.title);
        }
        html += "<div class=\"maps\">\n";
        for (number, map) in section.maps.iter().enumerate() {
            let svg = map.svg(&format!("p{index}-{number}"));
            let _ = writeln!(
                html,
                "<figure><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{svg}</div></figure>",
                escape(&map.title)
            );
        }
        html += "</div>\n";
        if !section.instant.is_empty() {
            let title = instant_title(section);
            let _ = writeln!(
                html,
                "<h3>Instant throughput</h3>\n<p class=\"quiet\">{}</p>",
                escape(&title)
            );
            html += &in_html(&instant_lines(&section.instant), "Instant throughput");
        }
        html += "<ul>\n";
        for note in remarks(section) {
            let _ = writeln!(html, "<li>{}</li>", escape(&note));
        }
        html += "</ul>\n</section>\n";
    }
    html
}

pub(super) fn label(section: &Section, row: &Row) -> &'static str {
    match (row.published, &section.simulated_on) {
        (true, _) => "published",
        (false, Some(_)) => "simulated",
        (false, None) => "measured",
    }
}

/// Title, origin of the published figures, and where the measured ones come from.
fn about(section: &Section) -> Vec<String> {
    let plan = &section.preset.plan;
    vec![
        format!("{} ({})", plan.title, section.preset.name),
        format!(
            "Published: {}. On: {}. Other hardware, for reference only.",
            plan.source, plan.hardware
        ),
        format!(
            "{}. {}.",
            match &section.simulated_on {
                Some(machine) => format!("Simulated: on the machine {machine}"),
                None => "Measured: here".to_owned(),
            },
            plan.column
                .iter()
                .map(|column| format!("{} = {}", column.name, column.policy))
                .collect::<Vec<_>>()
                .join("; ")
        ),
    ]
}

/// What was published in words, and what a reader has to know.
fn remarks(section: &Section) -> Vec<String> {
    let published = section.preset.observations.iter();
    published
        .map(|seen| format!("Published: {}: {}", seen.setting, seen.words))
        .chain(section.preset.plan.notes.iter().cloned())
        .collect()
}

fn lines(section: &Section, table: &Table) -> Lines {
    let headings = table.keys.iter().cloned();
    let row = |row: &Row| {
        // A published row belongs to the one above it.
        let key = |text: &String| {
            if row.published {
                String::new()
            } else {
                text.clone()
            }
        };
        let figures = row.cells.iter().map(|field| field.text.clone());
        let keys = row.keys.iter().map(key);
        let label = label(section, row).to_owned();
        let fields = keys.chain([label]).chain(figures).collect();
        (row.published, fields)
    };
    Lines {
        left: table.keys.len() + 1,
        headings: headings
            .chain(["figures".to_owned()])
            .chain(table.columns.iter().cloned())
            .collect(),
        rows: table.rows.iter().map(row).collect(),
    }
}

fn instant_title(section: &Section) -> String {
    let first = section.instant.first();
    let slice = first.map_or(0.0, |instant| instant.slice_ns as f64);
    format!(
        "Instant throughput in MiB/s, over slices of {}: {}. Hartigan's dip test of one mode; p from {DRAWS} \
         uniform samples with a fixed seed, times the number of repeats; r is the correlation of a slice with the \
         next, and p thinned that of slices far enough apart. Several modes: both below {ALPHA}; unclear: only \
         the first; one mode: not rejected, which proves nothing.",
        Unit::Nanoseconds.text(slice),
        first.map_or("", |instant| &instant.workload),
    )
}

fn instant_lines(instants: &[Instant]) -> Lines {
    let headings = [
        "column",
        "slices",
        "p5",
        "p50",
        "p95",
        "r",
        "dip",
        "p",
        "p thinned",
        "modes",
        "1st to 99th percentile",
    ];
    let row = |instant: &Instant| {
        let [p5, p50, p95] = instant.p5_p50_p95.map(digits);
        let modes = match (instant.verdict, instant.modes) {
            (super::Verdict::Several, Some((low, high))) => {
                format!(
                    "{}: {}, {}",
                    instant.verdict.words(),
                    digits(low),
                    digits(high)
                )
            }
            _ => instant.verdict.words().to_owned(),
        };
        let fields = vec![
            instant.column.clone(),
            instant.slices.to_string(),
            p5,
            p50,
            p95,
            format!("{:.2}", instant.correlation),
            format!("{:.4}", instant.dip),
            format!("{:.4}", instant.p_value),
            format!("{:.4}", instant.p_value_thinned),
            modes,
            sparkline(&instant.bars),
        ];
        (false, fields)
    };
    Lines {
        left: 1,
        headings: headings.map(str::to_owned).to_vec(),
        rows: instants.iter().map(row).collect(),
    }
}

/// One block character per bar.
fn sparkline(bars: &[u32]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = bars.iter().copied().max().unwrap_or(0).max(1);
    bars.iter()
        .map(|&count| match count {
            0 => '·',
            _ => BLOCKS[((count - 1) as usize * BLOCKS.len() / most as usize).min(7)],
        })
        .collect()
}

fn aligned(lines: &Lines, width: usize) -> String {
    let widths: Vec<usize> = (0..lines.headings.len())
        .map(|column| {
            let of = |fields: &Vec<String>| plain(&fields[column]).chars().count();
            let rows = lines.rows.iter().map(|(_, fields)| of(fields));
            rows.chain([of(&lines.headings)]).max().unwrap_or(0)
        })
        .collect();
    let left: usize = widths[..lines.left].iter().map(|width| width + 2).sum();
    let mut text = String::new();
    let mut first = lines.left;
    while first < widths.len() {
        let mut used = left;
        let mut end = first;
        while end < widths.len() && (end == first || used + widths[end] <= width) {
            used += widths[end] + 2;
            end += 1;
        }
        let headings = [(false, lines.headings.clone())];
        for (_, fields) in headings.iter().chain(&lines.rows) {
            let mut row = String::new();
            for column in (0..lines.left).chain(first..end) {
                let (field, width) = (plain(&fields[column]), widths[column]);
                let _ = if column < lines.left {
                    write!(row, "{field:width$}  ")
                } else {
                    write!(row, "{field:>width$}  ")
                };
            }
            text += row.trim_end();
            text.push('\n');
        }
        first = end;
    }
    text
}

fn in_markdown(lines: &Lines) -> String {
    let mut text = line(lines.headings.iter().map(|heading| safe(heading)));
    text += &rule(lines.left, lines.headings.len() - lines.left);
    for (_, fields) in &lines.rows {
        text += &line(fields.iter().map(|field| safe(field)));
    }
    text
}

fn in_html(lines: &Lines, name: &str) -> String {
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"published\"><thead><tr>",
        escape(name)
    );
    let class = |column: usize| {
        if column < lines.left {
            " class=\"t\""
        } else {
            ""
        }
    };
    for (column, heading) in lines.headings.iter().enumerate() {
        let _ = write!(
            html,
            "<th scope=\"col\"{}>{}</th>",
            class(column),
            escape(heading)
        );
    }
    html += "</tr></thead><tbody>\n";
    for (published, fields) in &lines.rows {
        html += if *published {
            "<tr class=\"quiet\">"
        } else {
            "<tr>"
        };
        for (column, field) in fields.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(column), escape(field));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

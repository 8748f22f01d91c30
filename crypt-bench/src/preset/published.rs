//! Reads published tables: figures with the workload and the column that they belong to.
//!
//! A table is CSV with `#` lines for its origin. Its headings say what a field is: `iodepth`, `jobs`, `bs`,
//! `rw` name the workload; `device` or `target` the column; a quantity with its unit (`mb_s`) a figure, after
//! the name of the column where each has its own (`default_mb_s`). Other fields are words.

#![forbid(unsafe_code)]

use super::quantity::Measure;
use crate::definition::quantity::Size;
use crate::result::CellParams;

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The fields that name the workload, with their headings.
    pub workload: Vec<(String, String)>,
    /// The published name of what was measured.
    pub target: String,
    /// What it is of, and in which unit.
    pub measure: Measure,
    /// The value in that unit.
    pub value: f64,
}

/// Something that was published in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The row's `id`; empty without.
    pub row: String,
    /// The figures with and without workqueues, where both are there.
    pub pair: Option<(f64, f64)>,
    /// What they are of; `None` where the table has them as a relation only.
    pub measure: Option<Measure>,
    /// Under which circumstances.
    pub setting: String,
    /// What was concluded, with the figures where there are some.
    pub words: String,
}

/// Headings that name the workload.
const WORKLOAD: [&str; 4] = ["iodepth", "jobs", "bs", "rw"];

impl Figure {
    /// The value in bytes per second or nanoseconds.
    #[must_use]
    pub fn native(&self) -> f64 {
        self.value * self.measure.scale
    }

    /// Whether it is of the cell's workload, as far as the table names it.
    #[must_use]
    pub fn is_of(&self, cell: &CellParams) -> bool {
        self.workload.iter().all(|(heading, text)| {
            *text
                == match heading.as_str() {
                    "iodepth" => cell.depth.to_string(),
                    "jobs" => cell.jobs.to_string(),
                    "bs" => Size(cell.block_size_bytes).to_string(),
                    _ => cell.rw.name().to_owned(),
                }
        })
    }
}

/// A line of a table with its headings.
struct Row<'a> {
    headings: &'a [String],
    fields: Vec<String>,
}

impl Row<'_> {
    fn get(&self, heading: &str) -> Option<&str> {
        let index = self.headings.iter().position(|known| known == heading)?;
        self.fields.get(index).map(String::as_str)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter().map(String::as_str);
        self.headings.iter().map(String::as_str).zip(fields)
    }
}

/// The figures and observations of a table; `wanted` picks rows by their `id`, all where it is empty.
///
/// # Errors
/// A table that is none, with its line.
pub(super) fn read(
    text: &str,
    wanted: &[String],
) -> Result<(Vec<Figure>, Vec<Observation>), String> {
    let (mut figures, mut observations) = (Vec::new(), Vec::new());
    let mut headings: Option<Vec<String>> = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let fields = fields(line);
        let Some(headings) = &headings else {
            headings = Some(fields);
            continue;
        };
        let at = |message: String| format!("line {}: {message}", index + 1);
        if fields.len() != headings.len() {
            let message = format!("{} fields under {} headings", fields.len(), headings.len());
            return Err(at(message));
        }
        let row = Row { headings, fields };
        let id = row.get("id").unwrap_or_default();
        if wanted.is_empty() || wanted.iter().any(|known| known == id) {
            figures.extend(figures_of(&row).map_err(at)?);
            observations.extend(observation(&row));
        }
    }
    Ok((figures, observations))
}

/// Fields between commas; quotes keep a comma inside.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match (c, fields.last_mut()) {
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => fields.push(String::new()),
            (c, Some(field)) => field.push(c),
            _ => {}
        }
    }
    fields
}

fn figures_of(row: &Row<'_>) -> Result<Vec<Figure>, String> {
    let named = row.iter().filter(|(heading, _)| WORKLOAD.contains(heading));
    let workload: Vec<(String, String)> = named
        .map(|(heading, text)| (heading.to_owned(), text.to_owned()))
        .collect();
    let target = row.get("device").or(row.get("target"));
    let mut figures = Vec::new();
    for (heading, text) in row.iter() {
        let Some((of, measure)) = quantity(row, heading) else {
            continue;
        };
        let Some(target) = of.or(target) else {
            return Err(format!("{heading}: nothing says what it is of"));
        };
        if text.is_empty() {
            continue;
        }
        let value = text.parse().ok();
        let value = value.filter(|value: &f64| (0.0..1e15).contains(value));
        figures.push(Figure {
            workload: workload.clone(),
            target: target.to_owned(),
            measure,
            value: value.ok_or_else(|| format!("{heading}: `{text}` is not a figure"))?,
        });
    }
    Ok(figures)
}

/// What a heading says: the column, where it names one, and the quantity.
fn quantity<'a>(row: &Row<'_>, heading: &'a str) -> Option<(Option<&'a str>, Measure)> {
    // A table of observations has its units in a field.
    if row.get("unit").is_some() {
        let measure = unit(row)?;
        let is_column = ["workqueue", "no_workqueue"].contains(&heading);
        return is_column.then_some((Some(heading), measure));
    }
    // The longest name first: `mb_s` also ends `x_mb_s`, and `lat_us_mean` ends `clat_us_mean`.
    let exact = Measure::ALL
        .into_iter()
        .find(|measure| measure.name == heading);
    if let Some(measure) = exact {
        return Some((None, measure));
    }
    Measure::ALL.into_iter().find_map(|measure| {
        let of = heading.strip_suffix(measure.name)?.strip_suffix('_')?;
        Some((Some(of), measure))
    })
}

/// The quantity that a row of observations has its figures in.
fn unit(row: &Row<'_>) -> Option<Measure> {
    let unit = row.get("unit")?;
    unit.to_lowercase().replace('/', "_").parse().ok()
}

/// A conclusion with its figures, or the note beside a figure.
fn observation(row: &Row<'_>) -> Option<Observation> {
    let field = |name: &str| row.get(name).unwrap_or_default();
    let Some(conclusion) = row.get("conclusion") else {
        let note = row.get("note").filter(|note| !note.is_empty())?;
        return Some(Observation {
            row: field("id").to_owned(),
            pair: None,
            measure: None,
            setting: format!("{}, {}", field("rw"), field("target")),
            words: note.to_owned(),
        });
    };
    let figures = match (field("workqueue"), field("no_workqueue")) {
        ("", "") => String::new(),
        ("", without) => format!(
            "{} without workqueues: {without} {}; ",
            field("metric"),
            field("unit")
        ),
        (with, without) => format!(
            "{} with and without workqueues: {with} and {without} {}; ",
            field("metric"),
            field("unit")
        ),
    };
    let value = |name: &str| field(name).parse().ok().filter(|value: &f64| *value > 0.0);
    Some(Observation {
        row: field("id").to_owned(),
        pair: value("workqueue").zip(value("no_workqueue")),
        measure: unit(row),
        setting: field("setting").to_owned(),
        words: figures + conclusion,
    })
}

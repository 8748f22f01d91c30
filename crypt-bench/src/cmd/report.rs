//! `crypt-bench report DIR`: renders reports again from the results in a folder, and nothing else.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::cli::{Failure, Outcome};
use crate::cmd::{baseline, output};
use crate::input;
use crate::journal::{MANIFEST, RESULTS};
use crate::report::axis::Axis;
use crate::report::compare::Lineup;
use crate::report::load::{self, Trouble};
use crate::report::metric::Metric;
use crate::report::terminal::{self, Style};
use crate::report::{Report, Run, decisions, html, machine, maps, markdown};
use crate::result::CellParams;

/// Name of the page in a results folder.
pub const PAGE: &str = "report.html";

/// Render the report of one or several results folders again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folders with results.jsonl and manifest.json, as `matrix` wrote them
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,

    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub format: Format,

    /// Where to write, - for standard output [default: DIR/report.html for html, else -]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Add to --format text what adaptive policies placed where and why; the others have it in any case
    #[arg(long, conflicts_with = "x")]
    pub explain_policy: bool,

    /// Horizontal axis of an svg or text map: bs, depth, jobs, policy, device, ...
    #[arg(long, requires = "y", value_parser = parse_axis, help_heading = "One map")]
    pub x: Option<Axis>,

    /// Vertical axis
    #[arg(long, requires = "x", value_parser = parse_axis, help_heading = "One map")]
    pub y: Option<Axis>,

    /// bw_bytes_per_s, iops, lat_ns_mean, lat_ns_p50, lat_ns_p99 or lat_ns_p99_9
    #[arg(long, value_parser = parse_metric, default_value = "bw_bytes_per_s", help_heading = "One map")]
    pub metric: Metric,

    /// One policy divided by another instead of a metric's values: --ratio adaptive/inline
    #[arg(long, requires = "x", value_name = "POLICY/POLICY", value_parser = parse_ratio, help_heading = "One map")]
    pub ratio: Option<Lineup>,

    /// Only the cells with this value on this axis: --where device=memory
    #[arg(long = "where", requires = "x", value_name = "AXIS=VALUE", value_parser = parse_where, help_heading = "One map")]
    pub wanted: Vec<(Axis, String)>,
}

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One self-contained page
    Html,
    /// For a pull request or a step summary
    Markdown,
    /// One document for programs
    Json,
    /// One line per cell for spreadsheets
    Csv,
    /// One heat map: of the whole matrix, or over --x and --y
    Svg,
    /// The same for a terminal, with the verdict
    Text,
}

/// Runs the subcommand.
///
/// # Errors
/// Folders without results of this version, and files that can't be written.
pub fn run(args: &Args) -> Outcome {
    if args.x.is_some() && !matches!(args.format, Format::Svg | Format::Text) {
        return Err(Failure::usage(
            "--x and --y draw one map: add --format svg or --format text",
        ));
    }
    if args.explain_policy && args.format != Format::Text {
        return Err(Failure::usage(
            "--explain-policy adds to --format text; reports in other formats have it in any case",
        ));
    }
    let target = target(args)?;
    let runs = read_runs(&args.dirs)?;
    let text = render(args, &runs, target.is_none());
    output::deliver(target.as_deref(), &text)
}

/// Reads results folders; a name stands for the baseline that is kept by it, unless there is such a folder.
///
/// # Errors
/// A folder without results, and results that are broken or of another version: which file, which
/// line, and what to do.
pub fn read_runs(dirs: &[PathBuf]) -> Outcome<Vec<Run>> {
    dirs.iter()
        .map(|dir| read_run(&baseline::resolve(dir)))
        .collect()
}

pub(super) fn read_run(dir: &Path) -> Outcome<Run> {
    let manifest = read(dir, MANIFEST)?;
    let results = read(dir, RESULTS)?;
    let manifest = load::manifest(&manifest).map_err(|trouble| located(dir, MANIFEST, &trouble))?;
    let records = load::records(&results).map_err(|trouble| located(dir, RESULTS, &trouble))?;
    let name = fs::canonicalize(dir)
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    Ok(Run {
        name: name.unwrap_or_else(|| dir.display().to_string()),
        manifest,
        records,
    })
}

fn read(dir: &Path, file: &str) -> Outcome<String> {
    let path = dir.join(file);
    input::text(&path, input::MOST_RESULT_BYTES).map_err(|error| {
        Failure::usage(format!(
            "{}: {error}; a results folder has {RESULTS} and {MANIFEST}, as `crypt-bench matrix` \
             writes them, or is named by `crypt-bench baseline save`",
            path.display()
        ))
    })
}

fn located(dir: &Path, file: &str, trouble: &Trouble) -> Failure {
    let path = dir.join(file);
    Failure::usage(format!(
        "{}:{}: {}",
        path.display(),
        trouble.line,
        trouble.why
    ))
}

/// The file to write; `None` for standard output.
fn target(args: &Args) -> Outcome<Option<PathBuf>> {
    match (&args.output, args.format, args.dirs.as_slice()) {
        (Some(path), _, _) => Ok(output::named(path).map(Path::to_owned)),
        (None, Format::Html, [dir]) => Ok(Some(baseline::resolve(dir).join(PAGE))),
        (None, Format::Html, _) => Err(Failure::usage(
            "several folders make one page: say where with -o FILE",
        )),
        (None, _, _) => Ok(None),
    }
}

fn render(args: &Args, runs: &[Run], to_stdout: bool) -> String {
    let report = Report::new(runs);
    let style = if to_stdout {
        output::stdout_style()
    } else {
        Style::choose(None, |_| None)
    };
    match args.format {
        Format::Html => html::page(&report),
        Format::Markdown => markdown::document(&report),
        Format::Json => machine::json(&report),
        Format::Csv => machine::csv(&report),
        Format::Svg => map(args, &report).standalone_svg(),
        Format::Text if args.x.is_some() => terminal::heat_map(&map(args, &report), style),
        Format::Text if args.explain_policy => {
            let decided = decisions::text(&decisions::sections(&report));
            format!("{}\n{decided}", terminal::summary(&report, style))
        }
        Format::Text => terminal::summary(&report, style),
    }
}

fn map(args: &Args, report: &Report<'_>) -> crate::report::chart::HeatMap {
    let (Some(x), Some(y)) = (args.x, args.y) else {
        return maps::overview(report, args.metric);
    };
    let wanted = |cell: &CellParams| {
        let fits = |(axis, value): &(Axis, String)| axis.text(cell) == *value;
        args.wanted.iter().all(fits)
    };
    match &args.ratio {
        Some(lineup) => maps::ratio_over(report, (x, y), args.metric, lineup, wanted),
        None => maps::over(report, (x, y), args.metric, wanted),
    }
}

pub(super) fn parse_axis(text: &str) -> Result<Axis, String> {
    Axis::from_name(text).ok_or_else(|| format!("one of {}", Axis::ALL.map(Axis::name).join(", ")))
}

pub(super) fn parse_metric(text: &str) -> Result<Metric, String> {
    Metric::from_key(text)
        .ok_or_else(|| format!("one of {}", Metric::ALL.map(Metric::key).join(", ")))
}

fn parse_ratio(text: &str) -> Result<Lineup, String> {
    let (candidate, other) = text
        .split_once('/')
        .ok_or("write POLICY/POLICY, for example adaptive/inline")?;
    Ok(Lineup {
        candidate: candidate.to_owned(),
        others: vec![other.to_owned()],
        references: Vec::new(),
    })
}

fn parse_where(text: &str) -> Result<(Axis, String), String> {
    let (axis, value) = text
        .split_once('=')
        .ok_or("write AXIS=VALUE, for example device=memory")?;
    Ok((parse_axis(axis)?, value.to_owned()))
}

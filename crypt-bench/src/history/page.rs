//! A history as one HTML file that works offline: a line over time for each figure, its changes of level marked, and
//! a table of its points beside it. It has no script.

#![forbid(unsafe_code)]

use std::fmt::Write as _;

use super::{Entry, Series};
use crate::report::escape::escape;
use crate::report::format::counted;
use crate::report::html;
use crate::statistics::ChangePoint;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 70.0;
const EDGE: f64 = 14.0;

const STYLE: &str = "
.trend figure{margin:1.5rem 0}
.trend svg{max-width:100%;height:auto}
.trend .line{fill:none;stroke:currentColor;stroke-width:1.5}
.trend .range{stroke:currentColor;stroke-opacity:.3;stroke-width:4}
.trend .mark{stroke-width:2;stroke-dasharray:4 3}
.trend .worse{stroke:#c2410c}
.trend .better{stroke:#1d6fb8}
.trend text{fill:currentColor;font-size:12px}
";

/// The page. The same history gives the same bytes.
#[must_use]
pub fn page(entries: &[Entry], series: &[Series]) -> String {
    let mut drawn: Vec<&Series> = series.iter().filter(|one| one.points.len() >= 2).collect();
    // What has changed stands first.
    drawn.sort_by_key(|one| one.changes.is_empty());
    let figures: String = drawn.into_iter().map(figure).collect();
    let figures = if figures.is_empty() {
        "<p>No figure was measured twice on the same machine.</p>\n".to_owned()
    } else {
        figures
    };
    let main = format!(
        "<section class=\"verdict\"><h1>{}</h1>\n<p class=\"quiet\">{}, {}. Medians over the repeats of each run, with their \
         range; a change of level is marked where chance does not explain it, over all figures together.</p></section>\n\
         <section class=\"trend\">\n{figures}</section>\n",
        escape(&headline(series)),
        counted(entries.len(), "run"),
        counted(series.len(), "figure"),
    );
    html::simple_page("crypt-bench · history", STYLE, &main)
}

fn headline(series: &[Series]) -> String {
    let changes = || {
        series
            .iter()
            .flat_map(|one| one.changes.iter().map(move |change| one.is_better(change)))
    };
    let worse = changes().filter(|better| !better).count();
    let better = changes().count() - worse;
    match (worse, better) {
        (0, 0) => "No figure has changed its level".to_owned(),
        _ => format!(
            "{} to the worse, {better} to the better",
            counted(worse, "change")
        ),
    }
}

fn figure(series: &Series) -> String {
    let title = format!("{} · {}", series.name, series.metric.title());
    let mut html = format!(
        "<figure>\n<figcaption><strong>{}</strong> <span class=\"quiet\">{}</span>",
        escape(&title),
        escape(&series.machine)
    );
    for change in &series.changes {
        let _ = write!(html, "<br>{}", escape(&series.change_text(change)));
    }
    html += "</figcaption>\n";
    html += &svg(series, &title);
    html += "<details><summary>numbers</summary><table><tr><th>run</th><th>program</th><th>median</th><th>range</th>\
             <th>repeats</th></tr>\n";
    let unit = series.metric.unit();
    for point in &series.points {
        let figure = &point.figure;
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} – {}</td><td>{}</td></tr>",
            escape(&point.started),
            escape(&point.program),
            unit.text(figure.median),
            unit.text(figure.least),
            unit.text(figure.most),
            figure.repeats
        );
    }
    html + "</table></details>\n</figure>\n"
}

/// Where a figure of a series stands in its picture.
struct Scale {
    count: f64,
    least: f64,
    most: f64,
}

impl Scale {
    fn of(series: &Series) -> Self {
        let figures = || series.points.iter().map(|point| &point.figure);
        let least = figures()
            .map(|figure| figure.least)
            .fold(f64::INFINITY, f64::min);
        let most = figures().map(|figure| figure.most).fold(0.0, f64::max);
        Self {
            count: series.points.len() as f64,
            least,
            most,
        }
    }

    fn x(&self, index: f64) -> f64 {
        LEFT + (WIDTH - LEFT - EDGE) * index / (self.count - 1.0).max(1.0)
    }

    fn y(&self, value: f64) -> f64 {
        let range = self.most - self.least;
        let share = if range > 0.0 {
            (value - self.least) / range
        } else {
            0.5
        };
        HEIGHT - EDGE - (HEIGHT - 2.0 * EDGE) * share
    }
}

fn svg(series: &Series, title: &str) -> String {
    let scale = Scale::of(series);
    let unit = series.metric.unit();
    let mut body = String::new();
    let mut line = Vec::with_capacity(series.points.len());
    for (index, point) in series.points.iter().enumerate() {
        let (x, figure) = (scale.x(index as f64), &point.figure);
        let _ = write!(
            body,
            "<line class=\"range\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"><title>{}: {}</title></line>",
            scale.y(figure.least),
            scale.y(figure.most),
            escape(&point.started),
            unit.text(figure.median)
        );
        line.push(format!("{x:.1},{:.1}", scale.y(figure.median)));
    }
    let _ = write!(
        body,
        "<polyline class=\"line\" points=\"{}\"/>",
        line.join(" ")
    );
    let marks: String = series
        .changes
        .iter()
        .map(|change| mark(series, &scale, change))
        .collect();
    let labels = [(scale.most, EDGE), (scale.least, HEIGHT - EDGE)].map(|(value, y)| {
        format!(
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            unit.text(value)
        )
    });
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}, {} over time\">{}{marks}{body}</svg>\n",
        escape(title),
        counted(series.points.len(), "run"),
        labels.concat()
    )
}

/// A line between the last figure of a level and the first one of the next.
fn mark(series: &Series, scale: &Scale, change: &ChangePoint) -> String {
    let x = scale.x(change.at as f64 - 0.5);
    let class = if series.is_better(change) {
        "better"
    } else {
        "worse"
    };
    format!("<line class=\"mark {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>")
}

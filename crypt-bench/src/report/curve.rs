//! Lines over a logarithmic axis of sizes: throughput by length, or by the number of cores.
//!
//! Pure and total, as the heat map is: the same input gives the same bytes, and nothing to draw gives a
//! picture that says so.

#![forbid(unsafe_code)]

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::chart::{Area, Drawn, Ink, plotters_color, rect, text};
use super::escape::plain;
use super::format::{Unit, size};
use super::palette::{Rgb, line_color};
use super::svg::{self, Finish, MUTED};

/// Curves to draw.
#[derive(Clone, Debug)]
pub struct Curves {
    /// First line: what is shown.
    pub title: String,
    /// Second line: of what.
    pub subtitle: String,
    /// What the horizontal axis shows, in bytes or things.
    pub x_name: String,
    /// What the vertical axis shows.
    pub unit: Unit,
    /// How the vertical axis is divided.
    pub scale: Scale,
    /// The lines.
    pub lines: Vec<Line>,
}

/// How the vertical axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By powers of ten. Lines that come first are wider, so that others that lie on them leave them visible.
    Logarithmic,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Place and value, by ascending places. What is not finite is left out, and on a logarithmic axis what is not
    /// above zero.
    pub points: Vec<(u64, f64)>,
}

const LEFT: i32 = 78;
const TOP: i32 = 62;
const PLOT_WIDTH: i32 = 560;
const PLOT_HEIGHT: i32 = 280;
const LINE_HEIGHT: i32 = 20;
const BELOW: i32 = 52;
/// Horizontal lines of the grid, about.
const STEPS: f64 = 5.0;
/// Most powers of ten on a logarithmic axis.
const MOST_DECADES: i32 = 12;

impl Curves {
    /// The picture as an SVG element for a page; `id` is unique there.
    #[must_use]
    pub fn svg(&self, id: &str) -> String {
        self.finished(id, false)
    }

    /// The picture as an SVG file with a background of its own, for light and dark readers.
    #[must_use]
    pub fn standalone_svg(&self) -> String {
        self.finished("curve", true)
    }

    fn finished(&self, id: &str, standalone: bool) -> String {
        let size = self.size();
        let mut raw = String::new();
        {
            let area = SVGBackend::with_string(&mut raw, size).into_drawing_area();
            self.draw(&area)
                .and_then(|()| area.present())
                .unwrap_or_else(|error| unreachable!("drawing to memory can't fail: {error}"));
        }
        let title = plain(&format!("{}, {}", self.title, self.subtitle));
        let finish = Finish {
            id,
            title: &title,
            description: &self.description(),
            standalone,
        };
        svg::finish(&raw, size, &finish)
    }

    fn size(&self) -> (u32, u32) {
        let height = TOP + PLOT_HEIGHT + BELOW + LINE_HEIGHT * self.lines.len() as i32;
        ((LEFT + PLOT_WIDTH + 30) as u32, height as u32)
    }

    /// The picture in a sentence, for readers who don't see it.
    fn description(&self) -> String {
        let spans = self.lines.iter().filter_map(|line| {
            let ((first, from), (last, to)) = (line.points.first()?, line.points.last()?);
            let (from, to) = (self.unit.text(*from), self.unit.text(*to));
            let name = &line.name;
            Some(format!("; {name}: {from} at {first} to {to} at {last}"))
        });
        plain(&format!(
            "Curves over {}{}",
            self.x_name,
            spans.collect::<String>()
        ))
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        text(area, &self.title, (8, 19), Ink::Title, HPos::Left)?;
        text(area, &self.subtitle, (8, 37), Ink::Quiet, HPos::Left)?;
        let Some(frame) = Frame::new(&self.lines, self.scale) else {
            return text(area, "no results", (8, 70), Ink::Quiet, HPos::Left);
        };
        self.draw_grid(area, &frame)?;
        for (index, line) in self.lines.iter().enumerate() {
            let width = match self.scale {
                Scale::Linear => 2,
                Scale::Logarithmic => 2 * (self.lines.len() - index) as u32,
            };
            draw_line(area, &frame, line, (line_color(index), width))?;
            draw_legend(area, index, &line.name)?;
        }
        Ok(())
    }

    fn draw_grid(&self, area: &Area<'_>, frame: &Frame) -> Drawn {
        let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
        for value in frame.ticks() {
            let y = frame.y(value);
            rect(area, ((LEFT, y), (right, y + 1)), MUTED)?;
            let words = match value {
                0.0 => "0".to_owned(),
                value => self.unit.text(value),
            };
            text(area, &words, (LEFT - 8, y), Ink::Small, HPos::Right)?;
        }
        let powers = (frame.least.ilog2()..=frame.most.ilog2()).map(|log2| 1_u64 << log2);
        for bytes in powers.filter(|bytes| *bytes >= frame.least) {
            let x = frame.x(bytes);
            rect(area, ((x, bottom), (x + 1, bottom + 4)), MUTED)?;
            text(
                area,
                &size(bytes),
                (x, bottom + 14),
                Ink::Small,
                HPos::Center,
            )?;
        }
        let middle = (LEFT + PLOT_WIDTH / 2, bottom + 32);
        text(area, &self.x_name, middle, Ink::Quiet, HPos::Center)
    }
}

/// What the axes span.
struct Frame {
    least: u64,
    most: u64,
    vertical: Vertical,
}

enum Vertical {
    /// From zero to the top, in steps.
    Linear { top: f64, step: f64 },
    /// Between two powers of ten.
    Logarithmic { least: i32, most: i32 },
}

impl Frame {
    /// `None` where there is nothing to draw.
    fn new(lines: &[Line], scale: Scale) -> Option<Self> {
        let points = || lines.iter().flat_map(|line| &line.points);
        let least = points().map(|point| point.0).min()?.max(1);
        let most = points().map(|point| point.0).max()?.max(1);
        let values = points()
            .map(|point| point.1)
            .filter(|value| value.is_finite());
        let highest = values.clone().fold(0.0, f64::max);
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let vertical = match scale {
            Scale::Linear => {
                let step = round_up(highest / STEPS);
                let top = (highest / step).ceil() * step;
                Vertical::Linear { top, step }
            }
            Scale::Logarithmic => {
                let positive = values.filter(|value| *value > 0.0);
                let lowest = positive.fold(highest, f64::min);
                let most = highest.log10().ceil() as i32;
                let least = (lowest.log10().floor() as i32).clamp(most - MOST_DECADES, most - 1);
                Vertical::Logarithmic { least, most }
            }
        };
        Some(Self {
            least,
            most,
            vertical,
        })
    }

    fn ticks(&self) -> Vec<f64> {
        match self.vertical {
            Vertical::Linear { top, step } => {
                let count = (top / step).round() as u32;
                (0..=count).map(|index| f64::from(index) * step).collect()
            }
            Vertical::Logarithmic { least, most } => {
                (least..=most).map(|power| 10_f64.powi(power)).collect()
            }
        }
    }

    fn x(&self, bytes: u64) -> i32 {
        let log2 = |bytes: u64| (bytes.max(1) as f64).log2();
        let span = (log2(self.most) - log2(self.least)).max(f64::MIN_POSITIVE);
        let position = (log2(bytes) - log2(self.least)) / span;
        LEFT + (position.clamp(0.0, 1.0) * f64::from(PLOT_WIDTH)) as i32
    }

    fn y(&self, value: f64) -> i32 {
        let position = match self.vertical {
            Vertical::Linear { top, .. } => value / top,
            Vertical::Logarithmic { least, most } => {
                (value.log10() - f64::from(least)) / f64::from(most - least)
            }
        };
        let position = position.clamp(0.0, 1.0);
        TOP + PLOT_HEIGHT - (position * f64::from(PLOT_HEIGHT)) as i32
    }
}

/// The next number of the kind 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0].into_iter();
    let fits = factors
        .map(|factor| factor * power)
        .find(|step| *step >= value);
    fits.unwrap_or(value)
}

fn draw_line(area: &Area<'_>, frame: &Frame, line: &Line, (color, width): (Rgb, u32)) -> Drawn {
    let is_linear = matches!(frame.vertical, Vertical::Linear { .. });
    let can_be_drawn = |value: f64| value.is_finite() && (is_linear || value > 0.0);
    let points = line.points.iter().filter(|point| can_be_drawn(point.1));
    let points: Vec<(i32, i32)> = points
        .map(|(bytes, value)| (frame.x(*bytes), frame.y(*value)))
        .collect();
    let style = plotters_color(color).stroke_width(width);
    area.draw(&PathElement::new(points, style))
}

fn draw_legend(area: &Area<'_>, index: usize, name: &str) -> Drawn {
    let y = TOP + PLOT_HEIGHT + BELOW + LINE_HEIGHT * index as i32 - 2;
    rect(area, ((LEFT, y - 2), (LEFT + 20, y + 2)), line_color(index))?;
    text(area, name, (LEFT + 28, y), Ink::Label, HPos::Left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(points: &[(u64, f64)]) -> Curves {
        Curves {
            title: "Throughput".to_owned(),
            subtitle: "a <test>".to_owned(),
            x_name: "length".to_owned(),
            unit: Unit::BytesPerSecond,
            scale: Scale::Linear,
            lines: vec![Line {
                name: "one & only".to_owned(),
                points: points.to_vec(),
            }],
        }
    }

    #[test]
    fn axes_name_sizes_and_values_and_the_legend_names_lines() {
        let svg = curves(&[(512, 4e9), (700, 6e9), (4096, 9.3e9)]).standalone_svg();
        for words in [
            "512",
            "1k",
            "4k",
            "0",
            "10.0 GB/s",
            "length",
            "one &amp; only",
        ] {
            assert!(svg.contains(&format!("\n{words}\n")), "{words}: {svg}");
        }
        assert!(svg.contains("<polyline") && svg.contains("a &lt;test&gt;"));
        assert!(svg.contains("4.00 GB/s at 512 to 9.30 GB/s at 4096"));
    }

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten_and_wide_lines_below_narrow_ones() {
        let mut curves = curves(&[(1, 2e6), (256, 3e9)]);
        curves.scale = Scale::Logarithmic;
        curves.lines.push(curves.lines[0].clone());
        let svg = curves.svg("one");
        for words in ["1.00 MB/s", "100 MB/s", "10.0 GB/s", "256"] {
            assert!(svg.contains(&format!("\n{words}\n")), "{words}: {svg}");
        }
        assert!(!svg.contains("\n0\n"));
        let (wide, narrow) = (
            svg.find("stroke-width=\"4\""),
            svg.find("stroke-width=\"2\""),
        );
        assert!(wide.is_some() && wide < narrow, "{svg}");
    }

    #[test]
    fn any_input_gives_a_picture() {
        assert!(curves(&[]).standalone_svg().contains("no results"));
        for points in [
            &[(512, 0.0)][..],
            &[(0, 1.0), (0, 2.0)],
            &[(1, f64::NAN), (u64::MAX, f64::INFINITY)],
            &[(8, -1.0), (9, 1e-300)],
        ] {
            for scale in [Scale::Linear, Scale::Logarithmic] {
                let svg = Curves {
                    scale,
                    ..curves(points)
                }
                .standalone_svg();
                assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
            }
        }
    }

    #[test]
    fn steps_are_round() {
        for (value, step) in [
            (1.7, 2.0),
            (0.031, 0.05),
            (4e9, 5e9),
            (7.0, 10.0),
            (1.0, 1.0),
        ] {
            assert!((round_up(value) / step - 1.0).abs() < 1e-9, "{value}");
        }
    }
}

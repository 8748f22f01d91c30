//! A grid as a heat map: the number in every cell, a colour bar, hatching where there is no number.
//!
//! Pure and total: any grid gives a picture, an empty one says so. The same input gives the same
//! bytes. Text takes the colour of the page it sits in, so the picture fits light and dark.

#![forbid(unsafe_code)]

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::escape::plain;
use super::format::Unit;
use super::grid::{Cell, Grid, Label, Noise};
use super::palette::{Palette, Rgb};
use super::scale::Scale;
use super::svg::{self, FONT, Finish, HATCH_INVALID, HATCH_MISSING, INK, MUTED};

/// A heat map to draw.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// First line: what is shown.
    pub title: String,
    /// Second line: of what.
    pub subtitle: String,
    /// The numbers.
    pub grid: Grid,
    /// What the numbers measure.
    pub unit: Unit,
    /// Where they lie on the colour bar; pictures that are compared share one.
    pub scale: Scale,
    /// The colours.
    pub palette: Palette,
}

impl HeatMap {
    /// The picture as an SVG element to put into a page. Its colours follow the page: `color`,
    /// and `--chart-muted` for quiet text. `id` is unique on the page: letters, digits and `-`.
    #[must_use]
    pub fn svg(&self, id: &str) -> String {
        self.finished(id, false)
    }

    /// The picture as an SVG file with a background of its own, for light and dark readers.
    #[must_use]
    pub fn standalone_svg(&self) -> String {
        self.finished("chart", true)
    }

    /// The colour of a cell. What may be noise is pale, so that it does not look like news.
    #[must_use]
    pub fn color(&self, value: f64, noise: Noise) -> Rgb {
        let position = self.scale.position(value);
        let position = match noise {
            Noise::Within => 0.5 + (position - 0.5) * PALE,
            Noise::Unknown | Noise::Beyond => position,
        };
        self.palette.color(position)
    }

    fn finished(&self, id: &str, standalone: bool) -> String {
        let layout = Layout::new(self);
        let mut raw = String::new();
        {
            let area = SVGBackend::with_string(&mut raw, (layout.width, layout.height))
                .into_drawing_area();
            self.draw(&area, &layout)
                .and_then(|()| area.present())
                .unwrap_or_else(|error| unreachable!("drawing to memory can't fail: {error}"));
        }
        let (title, description) = (
            plain(&format!("{}, {}", self.title, self.subtitle)),
            self.description(),
        );
        let finish = Finish {
            id,
            title: &title,
            description: &description,
            standalone,
        };
        svg::finish(&raw, (layout.width, layout.height), &finish)
    }

    /// The picture in a sentence, for readers who don't see it.
    fn description(&self) -> String {
        let place = |row: usize, column: usize| {
            let (row, column) = (
                &self.grid.rows().labels[row],
                &self.grid.columns().labels[column],
            );
            format!("{} and {}", full(row), full(column))
        };
        let numbers = || {
            self.grid
                .iter()
                .filter_map(|(row, column, cell)| Some((cell.value()?, row, column)))
        };
        let least = numbers().min_by(|a, b| a.0.total_cmp(&b.0));
        let most = numbers().max_by(|a, b| a.0.total_cmp(&b.0));
        let mut text = format!(
            "Heat map of {} over {}",
            self.grid.rows().name,
            self.grid.columns().name
        );
        if let (Some(least), Some(most)) = (least, most) {
            text += &format!(
                ", from {} at {} to {} at {}",
                self.unit.text(least.0),
                place(least.1, least.2),
                self.unit.text(most.0),
                place(most.1, most.2),
            );
        } else {
            text += ", without any valid number";
        }
        plain(&text)
    }

    fn draw(&self, area: &Area<'_>, layout: &Layout) -> Drawn {
        text(area, &self.title, (MARGIN, 19), Ink::Title, HPos::Left)?;
        text(area, &self.subtitle, (MARGIN, 37), Ink::Quiet, HPos::Left)?;
        if layout.rows == 0 || layout.columns == 0 {
            return text(area, "no results", (MARGIN, 70), Ink::Quiet, HPos::Left);
        }
        for (row, column, cell) in self.grid.iter() {
            self.draw_cell(area, layout.cell_box(row, column), cell)?;
        }
        self.draw_rows(area, layout)?;
        self.draw_columns(area, layout)?;
        self.draw_bar(area, layout)
    }

    fn draw_cell(&self, area: &Area<'_>, (from, to): Box2, cell: &Cell) -> Drawn {
        let (fill, ink, words) = match cell {
            Cell::Value { value, noise } => {
                let fill = self.color(*value, *noise);
                let about = if *noise == Noise::Within { "≈" } else { "" };
                let words = format!("{about}{}", self.unit.text(*value));
                (fill, Ink::On(fill.ink()), words)
            }
            Cell::Invalid { .. } => (HATCH_INVALID, Ink::Small, "invalid".to_owned()),
            Cell::Missing => (HATCH_MISSING, Ink::Small, "missing".to_owned()),
        };
        rect(area, (from, to), fill)?;
        let middle = (i32::midpoint(from.0, to.0), i32::midpoint(from.1, to.1));
        text(area, &words, middle, ink, HPos::Center)
    }

    fn draw_rows(&self, area: &Area<'_>, layout: &Layout) -> Drawn {
        let right = layout.left - 8;
        let name = &self.grid.rows().name;
        text(
            area,
            name,
            (MARGIN, layout.top - 10),
            Ink::Quiet,
            HPos::Left,
        )?;
        for (row, label) in self.grid.rows().labels.iter().enumerate() {
            let ((_, top), (_, bottom)) = layout.cell_box(row, 0);
            let words = shortened(&full(label), layout.row_label_chars);
            let middle = (right, i32::midpoint(top, bottom));
            text(area, &words, middle, Ink::Label, HPos::Right)?;
        }
        Ok(())
    }

    fn draw_columns(&self, area: &Area<'_>, layout: &Layout) -> Drawn {
        let labels = &self.grid.columns().labels;
        let most_chars = (CELL_WIDTH / 8) as usize;
        let mut y = layout.bottom() + 14;
        for (column, label) in labels.iter().enumerate() {
            let ((left, _), (right, _)) = layout.cell_box(0, column);
            let middle = (i32::midpoint(left, right), y);
            let words = shortened(&label.text, most_chars);
            text(area, &words, middle, Ink::Label, HPos::Center)?;
        }
        if layout.has_groups {
            y += 20;
            for (first, last) in spans(labels) {
                let ((left, _), _) = layout.cell_box(0, first);
                let (_, (right, _)) = layout.cell_box(0, last);
                rect(area, ((left + 2, y - 11), (right - 2, y - 10)), MUTED)?;
                let words = shortened(&labels[first].group, most_chars * (last - first + 1));
                let middle = (i32::midpoint(left, right), y);
                text(area, &words, middle, Ink::Label, HPos::Center)?;
            }
        }
        let middle = i32::midpoint(layout.left, layout.right());
        let name = &self.grid.columns().name;
        text(area, name, (middle, y + 20), Ink::Quiet, HPos::Center)
    }

    /// The colour bar, highest value on top.
    fn draw_bar(&self, area: &Area<'_>, layout: &Layout) -> Drawn {
        let ticks = self.scale.ticks();
        if self.grid.has_no_value() {
            return Ok(());
        }
        let steps = if ticks.len() == 1 { 1 } else { BAR_STEPS };
        let (left, height) = (layout.right() + 18, layout.bar_height());
        let y_of = |position: f64| layout.top + ((1.0 - position) * f64::from(height)) as i32;
        for step in 0..steps {
            let (low, high) = (
                f64::from(step) / f64::from(steps),
                f64::from(step + 1) / f64::from(steps),
            );
            let color = self.palette.color(f64::midpoint(low, high));
            rect(area, ((left, y_of(high)), (left + 12, y_of(low))), color)?;
        }
        for (index, tick) in ticks.iter().enumerate() {
            let position = self.scale.position(*tick);
            let y = y_of(position).clamp(layout.top + 6, layout.top + height - 6);
            let words = format!("{}{}", self.clip_sign(index), self.unit.text(*tick));
            text(area, &words, (left + 18, y), Ink::Small, HPos::Left)?;
        }
        Ok(())
    }

    /// `≤` and `≥` at the ends of a bar that values lie beyond.
    fn clip_sign(&self, tick: usize) -> &'static str {
        match (self.scale.clips(), tick) {
            (true, 0) => "≤",
            (true, 2) => "≥",
            _ => "",
        }
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
pub(super) type Box2 = ((i32, i32), (i32, i32));

const MARGIN: i32 = 8;
const CELL_WIDTH: i32 = 76;
const CELL_HEIGHT: i32 = 38;
/// Longer labels lose their middle.
const MOST_ROW_LABEL_CHARS: usize = 54;
/// How far the colours of cells within noise go, of the way from the middle to the ends.
const PALE: f64 = 0.35;

const BAR_STEPS: i32 = 24;
const BAR_WIDTH: i32 = 100;

/// Where everything lies, in pixels.
struct Layout {
    rows: usize,
    columns: usize,
    left: i32,
    top: i32,
    width: u32,
    height: u32,
    has_groups: bool,
    row_label_chars: usize,
}

impl Layout {
    fn new(map: &HeatMap) -> Self {
        let (row_labels, column_labels) = (&map.grid.rows().labels, &map.grid.columns().labels);
        let (rows, columns) = (row_labels.len(), column_labels.len());
        let longest = row_labels.iter().map(|l| full(l).chars().count()).max();
        let row_label_chars = longest.unwrap_or(0).min(MOST_ROW_LABEL_CHARS);
        let left = (row_label_chars as i32 * 7 + 18).max(44);
        let has_groups = column_labels.iter().any(|label| !label.group.is_empty());
        let top = 72;
        let title_width =
            |text: &str, per_char: f64| (text.chars().count() as f64 * per_char) as i32;
        let width = (left + columns as i32 * CELL_WIDTH + BAR_WIDTH)
            .max(title_width(&map.title, 9.2) + 2 * MARGIN)
            .max(title_width(&map.subtitle, 6.8) + 2 * MARGIN);
        let height = if rows == 0 || columns == 0 {
            90
        } else {
            let cells = (rows as i32 * CELL_HEIGHT).max(64);
            top + cells + if has_groups { 66 } else { 46 }
        };
        Self {
            rows,
            columns,
            left,
            top,
            width: width as u32,
            height: height as u32,
            has_groups,
            row_label_chars,
        }
    }

    fn cell_box(&self, row: usize, column: usize) -> Box2 {
        let (x, y) = (
            self.left + column as i32 * CELL_WIDTH,
            self.top + row as i32 * CELL_HEIGHT,
        );
        ((x, y), (x + CELL_WIDTH - 2, y + CELL_HEIGHT - 2))
    }

    fn right(&self) -> i32 {
        self.left + self.columns as i32 * CELL_WIDTH - 2
    }

    fn bottom(&self) -> i32 {
        self.top + self.rows as i32 * CELL_HEIGHT - 2
    }

    fn bar_height(&self) -> i32 {
        (self.rows as i32 * CELL_HEIGHT - 2).clamp(64, 220)
    }
}

/// How a text looks.
#[derive(Clone, Copy)]
pub(super) enum Ink {
    Title,
    Quiet,
    Label,
    Small,
    On(Rgb),
}

pub(super) fn text(area: &Area<'_>, words: &str, at: (i32, i32), ink: Ink, side: HPos) -> Drawn {
    let (size, color, style) = match ink {
        Ink::Title => (15.0, INK, FontStyle::Bold),
        Ink::Quiet => (12.0, MUTED, FontStyle::Normal),
        Ink::Label => (13.0, INK, FontStyle::Normal),
        Ink::Small => (12.0, INK, FontStyle::Normal),
        Ink::On(color) => (13.0, color, FontStyle::Normal),
    };
    // The backend divides by this to get from its own unit to pixels.
    let font = (FONT, size * 1.24, style).into_font();
    let color = plotters_color(color);
    let style = TextStyle::from(font)
        .color(&color)
        .pos(Pos::new(side, VPos::Center));
    area.draw_text(&plain(words), &style, at)
}

pub(super) fn rect(area: &Area<'_>, (from, to): Box2, fill: Rgb) -> Drawn {
    area.draw(&Rectangle::new([from, to], plotters_color(fill).filled()))
}

pub(super) fn plotters_color(color: Rgb) -> RGBColor {
    RGBColor(color.0, color.1, color.2)
}

/// A label with its group.
fn full(label: &Label) -> String {
    if label.group.is_empty() {
        label.text.clone()
    } else {
        format!("{} · {}", label.group, label.text)
    }
}

/// Runs of neighbours with the same group: first and last index of each.
fn spans(labels: &[Label]) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (index, label) in labels.iter().enumerate() {
        match spans.last_mut() {
            Some((first, last)) if labels[*first].group == label.group => *last = index,
            _ => spans.push((index, index)),
        }
    }
    spans
}

/// The end of a text is what tells paths apart, so the middle gives way.
fn shortened(text: &str, most_chars: usize) -> String {
    let count = text.chars().count();
    if count <= most_chars.max(3) {
        return text.to_owned();
    }
    let head = most_chars / 3;
    let tail = most_chars.max(3) - head - 1;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::super::grid::GridAxis;
    use super::super::scale::ScaleKind;
    use super::*;

    fn axis(name: &str, labels: &[&str]) -> GridAxis {
        GridAxis {
            name: name.to_owned(),
            labels: labels.iter().map(|label| Label::new(*label)).collect(),
        }
    }

    fn map(grid: &Grid, kind: ScaleKind) -> HeatMap {
        HeatMap {
            title: "Throughput".to_owned(),
            subtitle: "memory · randread · inline".to_owned(),
            grid: grid.clone(),
            unit: Unit::BytesPerSecond,
            scale: Scale::fit(kind, grid.values()),
            palette: Palette::Sequential,
        }
    }

    #[test]
    fn every_number_is_printed_in_its_cell() {
        let grid = Grid::from_fn(
            axis("depth", &["1", "32"]),
            axis("bs", &["4k"]),
            |row, _| Cell::new([1.5e9, 2.5e9][row]),
        );
        let svg = map(&grid, ScaleKind::Log).svg("t");
        assert!(
            svg.contains("\n1.50 GB/s\n") && svg.contains("\n2.50 GB/s\n"),
            "{svg}"
        );
        assert!(svg.contains("role=\"img\"") && svg.contains("from 1.50 GB/s at 1 and 4k"));
    }

    #[test]
    fn a_cell_without_a_number_is_hatched_and_never_coloured() {
        let grid = Grid::from_fn(
            axis("depth", &["1"]),
            axis("bs", &["a", "b", "c"]),
            |_, column| [Cell::new(f64::NAN), Cell::Missing, Cell::new(0.0)][column].clone(),
        );
        let svg = map(&grid, ScaleKind::Linear).svg("t");
        assert!(svg.contains("fill=\"url(#t-x)\"") && svg.contains("invalid"));
        assert!(svg.contains("fill=\"url(#t-m)\"") && svg.contains("missing"));
        assert_eq!(
            svg.matches("\n0 B/s\n").count(),
            2,
            "the cell and the bar: {svg}"
        );
    }

    #[test]
    fn empty_single_and_constant_grids_are_pictures_too() {
        let shapes: [(&[&str], &[&str]); 4] = [
            (&[], &[]),
            (&["1"], &[]),
            (&["1"], &["4k"]),
            (&["1", "2"], &["4k", "8k"]),
        ];
        for (rows, columns) in shapes {
            for kind in [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Ratio] {
                for cell in [
                    Cell::Missing,
                    Cell::new(0.0),
                    Cell::new(7.0),
                    Cell::new(f64::MAX),
                ] {
                    let grid =
                        Grid::from_fn(axis("y", rows), axis("x", columns), |_, _| cell.clone());
                    let svg = map(&grid, kind).svg("t");
                    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                }
            }
        }
    }

    #[test]
    fn ratios_within_noise_say_so() {
        let grid = Grid::from_fn(axis("y", &["1"]), axis("x", &["1"]), |_, _| {
            Cell::with_noise(1.02, Noise::Within)
        });
        let mut map = map(&grid, ScaleKind::Ratio);
        map.unit = Unit::Ratio;
        assert!(map.svg("t").contains("≈1.02×"));
    }

    #[test]
    fn hostile_labels_stay_text() {
        let grid = Grid::from_fn(
            axis("<y>", &["</text><script>"]),
            axis("\"x\"", &["&\u{1b}[31m"]),
            |_, _| Cell::new(1.0),
        );
        let svg = map(&grid, ScaleKind::Log).svg("t");
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}') && !svg.contains("<y>"));
    }

    #[test]
    fn the_same_input_gives_the_same_bytes() {
        let grid = Grid::from_fn(
            axis("y", &["1", "2"]),
            axis("x", &["1", "2"]),
            |row, column| Cell::new((row + column) as f64),
        );
        let map = map(&grid, ScaleKind::Log);
        assert_eq!(map.svg("t"), map.svg("t"));
        assert_ne!(map.svg("t"), map.standalone_svg());
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(
            shortened("file:/very/long/path/disk.img", 12),
            "file…isk.img"
        );
        assert_eq!(shortened("4k", 1), "4k");
        assert!(shortened("ééééééé", 3).chars().count() <= 3);
    }
}

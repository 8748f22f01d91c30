//! A labelled table of numbers over two axes: what every picture and table is made from.
//!
//! A cell is a value, or invalid with the reason, or missing; nothing turns into zero. Pure.

#![forbid(unsafe_code)]

/// One cell of a [`Grid`].
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A finite measurement.
    Value {
        /// The number, in the unit of the grid's metric.
        value: f64,
        /// How a ratio stands to the spread of its repeats.
        noise: Noise,
    },
    /// Measured, but not to be trusted, or not a finite number.
    Invalid {
        /// Why, as a phrase.
        why: String,
    },
    /// Not measured.
    Missing,
}

/// How far a ratio can be told from 1, given the spread of the repeats behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Not a ratio, or too few repeats to say.
    Unknown,
    /// The repeats of both sides overlap: it may be nothing.
    Within,
    /// Every repeat of one side lies beyond every repeat of the other.
    Beyond,
}

impl Cell {
    /// A measured value, or invalid where it is not finite.
    #[must_use]
    pub fn new(value: f64) -> Self {
        Self::with_noise(value, Noise::Unknown)
    }

    /// As [`Cell::new`], with how it stands to its noise.
    #[must_use]
    pub fn with_noise(value: f64, noise: Noise) -> Self {
        if value.is_finite() {
            Self::Value { value, noise }
        } else {
            Self::invalid("the result is not a finite number")
        }
    }

    /// A cell that must not be read, and why.
    #[must_use]
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid { why: why.into() }
    }

    /// The number, where there is one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Value { value, .. } => Some(*value),
            Self::Invalid { .. } | Self::Missing => None,
        }
    }
}

/// One position on an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The heading that neighbours share: `4k` above `1`, `32`. Empty where there is none.
    pub group: String,
    /// The label itself.
    pub text: String,
}

impl Label {
    /// A label without a group.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            group: String::new(),
            text: text.into(),
        }
    }

    /// A label under a heading.
    #[must_use]
    pub fn grouped(group: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            text: text.into(),
        }
    }
}

/// A named axis with its positions in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridAxis {
    /// What the axis is, with its unit: `block size (bytes)`.
    pub name: String,
    /// The positions.
    pub labels: Vec<Label>,
}

/// Cells over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    rows: GridAxis,
    columns: GridAxis,
    cells: Vec<Cell>,
}

impl Grid {
    /// A grid whose cells come from `cell(row, column)`.
    pub fn from_fn(
        rows: GridAxis,
        columns: GridAxis,
        mut cell: impl FnMut(usize, usize) -> Cell,
    ) -> Self {
        let mut cells = Vec::with_capacity(rows.labels.len() * columns.labels.len());
        for row in 0..rows.labels.len() {
            cells.extend((0..columns.labels.len()).map(|column| cell(row, column)));
        }
        Self {
            rows,
            columns,
            cells,
        }
    }

    /// The vertical axis, top first.
    #[must_use]
    pub fn rows(&self) -> &GridAxis {
        &self.rows
    }

    /// The horizontal axis, left first.
    #[must_use]
    pub fn columns(&self) -> &GridAxis {
        &self.columns
    }

    /// The cell at a position; [`Cell::Missing`] outside the grid.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> &Cell {
        let width = self.columns.labels.len();
        if column >= width {
            return &Cell::Missing;
        }
        self.cells
            .get(row * width + column)
            .unwrap_or(&Cell::Missing)
    }

    /// All cells with their positions, row by row.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &Cell)> {
        let width = self.columns.labels.len().max(1);
        self.cells
            .iter()
            .enumerate()
            .map(move |(i, cell)| (i / width, i % width, cell))
    }

    /// Every number in the grid.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().filter_map(Cell::value)
    }

    /// Whether no cell holds a number.
    #[must_use]
    pub fn has_no_value(&self) -> bool {
        self.values().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(count: usize) -> GridAxis {
        GridAxis {
            name: "axis".to_string(),
            labels: (0..count).map(|i| Label::new(i.to_string())).collect(),
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_invalid_and_never_zero() {
        for strange in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(Cell::new(strange), Cell::Invalid { .. }));
            assert_eq!(Cell::new(strange).value(), None);
        }
        assert_eq!(Cell::new(0.0).value(), Some(0.0));
    }

    #[test]
    fn cells_sit_where_they_were_made() {
        let grid = Grid::from_fn(axis(2), axis(3), |row, column| {
            Cell::new((10 * row + column) as f64)
        });
        assert_eq!(grid.cell(1, 2).value(), Some(12.0));
        assert!(
            grid.iter()
                .all(|(row, column, cell)| cell.value() == Some((10 * row + column) as f64))
        );
    }

    #[test]
    fn outside_an_empty_or_small_grid_everything_is_missing() {
        let empty = Grid::from_fn(axis(0), axis(0), |_, _| Cell::new(1.0));
        assert!(empty.has_no_value());
        assert_eq!(empty.cell(0, 0), &Cell::Missing);
        let single = Grid::from_fn(axis(1), axis(1), |_, _| Cell::new(1.0));
        assert_eq!(single.cell(0, 1), &Cell::Missing);
        assert_eq!(single.cell(7, 0), &Cell::Missing);
    }
}

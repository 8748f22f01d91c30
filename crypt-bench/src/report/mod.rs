//! From results to reports: HTML, Markdown, terminal, CSV and JSON.
//!
//! Pure: values in, text out. Reading and writing files is the business of `cmd`. Nothing here
//! measures or decides; what a cell is worth stands in its record.

#![forbid(unsafe_code)]

pub mod axis;
pub mod cells;
pub mod chart;
pub mod compare;
pub mod curve;
pub mod decisions;
pub mod escape;
pub mod format;
pub mod grid;
pub mod html;
pub mod load;
pub mod machine;
pub mod maps;
pub mod markdown;
pub mod metric;
pub mod model;
pub mod names;
pub mod palette;
pub mod published;
pub mod scale;
pub mod scaling;
mod svg;
pub mod terminal;
pub mod verdict;

pub use cells::Run;
pub use model::Report;
pub use verdict::Verdict;

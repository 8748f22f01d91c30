//! Published tables that can be measured again: how, and what was published.
//!
//! A preset is a definition, the columns of its table, and the figures that somebody published for other
//! hardware (`benches/presets/*.toml`, `benches/published/*.csv`, both part of the program). Published
//! figures are shown beside measured ones and never take part in anything else. Pure.

#![forbid(unsafe_code)]

mod claim;
mod misses;
mod published;
mod quantity;

use serde::Deserialize;

pub use claim::{Claim, Way};
pub use misses::explanations;
pub use published::{Figure, Observation};
pub use quantity::{Measure, Quantity};

use crate::definition::Definition;
use crate::definition::quantity::{Count, Size};
use crate::result::CellParams;

/// Every preset: name, definition, published table.
const TEXTS: [(&str, &str, &str); 8] = [
    (
        "dorminy-ssd",
        include_str!("../../../benches/presets/dorminy-ssd.toml"),
        include_str!("../../../benches/published/dorminy-randwrite-ssd.csv"),
    ),
    (
        "dorminy-hdd",
        include_str!("../../../benches/presets/dorminy-hdd.toml"),
        include_str!("../../../benches/published/dorminy-seqwrite-hdd.csv"),
    ),
    (
        "dorminy-optane",
        include_str!("../../../benches/presets/dorminy-optane.toml"),
        include_str!("../../../benches/published/dorminy-optane.csv"),
    ),
    (
        "lemoal-mixed",
        include_str!("../../../benches/presets/lemoal-mixed.toml"),
        include_str!("../../../benches/published/lemoal-observations.csv"),
    ),
    (
        "lemoal-null-blk",
        include_str!("../../../benches/presets/lemoal-null-blk.toml"),
        include_str!("../../../benches/published/lemoal-observations.csv"),
    ),
    (
        "lemoal-heatmap",
        include_str!("../../../benches/presets/lemoal-heatmap.toml"),
        include_str!("../../../benches/published/lemoal-observations.csv"),
    ),
    (
        "korchagin-brd",
        include_str!("../../../benches/presets/korchagin-brd.toml"),
        include_str!("../../../benches/published/korchagin-brd.csv"),
    ),
    (
        "cloudflare-brd",
        include_str!("../../../benches/presets/cloudflare-brd.toml"),
        include_str!("../../../benches/published/cloudflare-brd.csv"),
    ),
];

/// The column that dm-crypt's default is in.
pub const DEFAULT_COLUMN: &str = "default";
/// The column whose change against the default is shown.
pub const CHANGED_COLUMN: &str = "no_workqueue";
/// The column of the device by itself.
pub const RAW_COLUMN: &str = "raw";

/// A published table and how it is measured again.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// How it looks and is measured.
    pub plan: Plan,
    /// What was published.
    pub figures: Vec<Figure>,
    /// What was published in words.
    pub observations: Vec<Observation>,
    /// The rows, each a full product.
    products: Vec<Definition>,
}

/// The definition file of a preset.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// What is measured, in a line.
    pub title: String,
    /// Who published it, where and when.
    pub source: String,
    /// What it was measured on.
    pub hardware: String,
    /// File of the published table.
    pub published: String,
    /// Only these rows of the published table, by their `id`; all without.
    #[serde(default)]
    pub rows: Vec<String>,
    /// What a reader has to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether heat maps of the change stand in the place of a table.
    #[serde(default)]
    pub maps: bool,
    /// Whether the distribution of throughput over slices is shown.
    #[serde(default)]
    pub instant: bool,
    /// Columns of the table.
    pub column: Vec<Column>,
    /// What is shown of each.
    #[serde(default)]
    pub show: Vec<Show>,
    /// What was published in words, as far as it can be held against results.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// The machine that stands for the published hardware in simulations: a name in `benches/machines`.
    pub machine: String,
    /// What to measure; its policies are those of the columns.
    pub matrix: Definition,
    /// What is different where it is simulated, where time and size cost nothing.
    #[serde(default)]
    pub simulated: Definition,
}

impl Plan {
    /// What to simulate.
    #[must_use]
    pub fn simulation(&self) -> Definition {
        self.simulated.clone().over(self.matrix.clone())
    }
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Policy that is measured.
    pub policy: String,
    /// Names that the published table has for it.
    #[serde(default)]
    pub published: Vec<String>,
}

/// A figure of each row and column.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// What is measured, with its unit.
    pub measure: Measure,
    /// What was published of it.
    #[serde(default)]
    pub published: Option<Measure>,
}

impl Preset {
    /// The names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TEXTS.iter().map(|(name, ..)| *name)
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// An unknown name, with those there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = TEXTS.iter().find(|(known, ..)| *known == name);
        let Some((name, plan, table)) = found else {
            let names: Vec<&str> = Self::names().collect();
            return Err(format!(
                "--preset {name}: there is no such table; there are {}, and list shows what each is",
                names.join(", ")
            ));
        };
        Self::read(name, plan, table).map_err(|error| format!("--preset {name}: {error}"))
    }

    /// A preset from its definition and its published table.
    ///
    /// # Errors
    /// What is wrong in one of them, with its line.
    pub fn read(name: &'static str, plan: &str, table: &str) -> Result<Self, String> {
        let mut plan: Plan = toml::from_str(plan).map_err(|error| error.to_string())?;
        let policies = plan.column.iter().map(|column| column.policy.clone());
        plan.matrix.policy = policies.collect();
        plan.matrix.only = Some(true);
        let (figures, observations) = published::read(table, &plan.rows)?;
        Ok(Self {
            name,
            products: plan.matrix.products()?,
            plan,
            figures,
            observations,
        })
    }

    /// The published value that belongs to a measured cell, in the unit of `show`; `None` where there is none,
    /// or where the cell is not one of the table's.
    #[must_use]
    pub fn published(&self, cell: &CellParams, show: &Show) -> Option<f64> {
        let column = self.column(&cell.policy)?;
        let wanted = show.published?;
        if !self.products.iter().any(|product| has(product, cell)) {
            return None;
        }
        let figure = self.figures.iter().find(|figure| {
            figure.measure.quantity == wanted.quantity
                && column.published.contains(&figure.target)
                && figure.is_of(cell)
        })?;
        Some(figure.native() / show.measure.scale)
    }

    /// The column that a policy is measured for.
    #[must_use]
    pub fn column(&self, policy: &str) -> Option<&Column> {
        self.plan
            .column
            .iter()
            .find(|column| column.policy == policy)
    }

    /// The policy of a column.
    #[must_use]
    pub fn policy(&self, column: &str) -> Option<&str> {
        let mut columns = self.plan.column.iter();
        let found = columns.find(|known| known.name == column)?;
        Some(&found.policy)
    }
}

/// Whether a cell has the workload of a row and its cipher; the device may be another.
fn has(product: &Definition, cell: &CellParams) -> bool {
    let jobs = |count: &Count| *count == Count::PerCpu || *count == Count::Number(cell.jobs);
    let blocks = match &cell.block_sizes {
        Some(text) => product.bssplit.contains(text),
        None => product.bs.contains(&Size(cell.block_size_bytes)),
    };
    let mixed = cell.rw.reads() && cell.rw.writes();
    product.rw.contains(&cell.rw)
        && (!mixed || product.rwmixread.contains(&cell.rwmixread_percent))
        && blocks
        && product.depth.contains(&cell.depth)
        && product.jobs.iter().any(jobs)
        && product.cipher.contains(&cell.cipher)
        && cell.cipher_throttle_bytes_per_s.is_none()
}

#[cfg(test)]
mod tests;

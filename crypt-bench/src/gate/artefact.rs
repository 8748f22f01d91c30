//! What a gate leaves behind: its verdict with everything that it stands on, as one JSON document. Published as
//! `schema/gate.schema.json`.
//!
//! The verdict stands in the document because pipes and `|| true` eat exit statuses. A document is believed only
//! where its mark fits and its verdict is the one that its cells lead to. Plain data, and what reads it.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

#[cfg(test)]
use schemars::JsonSchema;

use crate::diff::record::{ChangeRecord, MeanRecord};
use crate::mark::Marked;
use crate::result::CellParams;

/// Version of the format that this build writes.
pub const VERSION: u32 = 1;

/// What is said of a metric, a cell or a gate, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It did not get worse by more than is allowed.
    Pass,
    /// It got better by more than it might have got worse.
    Improved,
    /// The noise is too large to say.
    Inconclusive,
    /// Not all of it was measured, or not often enough.
    Incomplete,
    /// It is in the baseline and was not measured any more.
    Missing,
    /// It was measured, and may not be compared.
    Invalid,
    /// It got worse by more than is allowed.
    Regressed,
    /// The two were not measured in the same place and way.
    EnvironmentMismatch,
}

impl Verdict {
    /// Every one, the gravest last.
    pub const ALL: [Self; 8] = [
        Self::Pass,
        Self::Improved,
        Self::Inconclusive,
        Self::Incomplete,
        Self::Missing,
        Self::Invalid,
        Self::Regressed,
        Self::EnvironmentMismatch,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Improved => "improved",
            Self::Inconclusive => "inconclusive",
            Self::Incomplete => "incomplete",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Regressed => "regressed",
            Self::EnvironmentMismatch => "environment-mismatch",
        }
    }

    /// The exit status of a gate with this verdict; 0 for an inconclusive one unless `strict`.
    #[must_use]
    pub const fn exit_status(self, strict: bool) -> u8 {
        match self {
            Self::Pass | Self::Improved => 0,
            Self::Inconclusive => 11 * strict as u8,
            Self::Regressed => 10,
            Self::Incomplete | Self::Missing => 12,
            Self::Invalid => 13,
            Self::EnvironmentMismatch => 14,
        }
    }

    /// Whether it says something about figures, and not about why there is nothing to say.
    #[must_use]
    pub const fn is_judgement(self) -> bool {
        matches!(
            self,
            Self::Pass | Self::Improved | Self::Inconclusive | Self::Regressed
        )
    }
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Artefact {
    /// Version of this format.
    pub schema_version: u32,
    /// The gravest verdict of `reasons` and `cells`.
    pub verdict: Verdict,
    /// What is said of the runs as a whole.
    pub reasons: Vec<Reason>,
    /// What was compared with.
    pub baseline: Source,
    /// What was judged.
    pub candidate: Source,
    /// By which rules.
    pub rules: Rules,
    /// Whether the repeats of both took turns; null where nothing was compared.
    pub interleaved: Option<bool>,
    /// What casts doubt on the comparison, and in what the runs differ.
    pub warnings: Vec<String>,
    /// Names of cells that the baseline does not have, and that were not judged.
    pub new_cells: Vec<String>,
    /// Every cell of the baseline.
    pub cells: Vec<CellVerdict>,
    /// Geometric means over the cells, candidate / baseline.
    pub means: Vec<MeanRecord>,
    /// SHA-256 over the document with this field empty and without white space, in hex.
    pub mark: String,
}

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, and what to do.
    pub text: String,
}

impl Reason {
    /// A verdict with its reason.
    pub fn new(verdict: Verdict, text: impl Into<String>) -> Self {
        Self {
            verdict,
            text: text.into(),
        }
    }
}

/// One of the two runs; all is empty where the gate did not come to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of its folder.
    pub name: String,
    /// Version of the program that measured.
    pub version: String,
    /// Its revision; null when unknown.
    pub git_revision: Option<String>,
    /// SHA-256 of its executable, in hex.
    pub binary_sha256: String,
    /// Host name.
    pub host: String,
    /// Start of the run, RFC 3339.
    pub started: String,
}

/// What a gate goes by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// What is judged.
    pub metrics: Vec<RuleRecord>,
    /// Fewest repeats of each cell in each run.
    pub least_repeats: u32,
    /// Share of false ones among all changes that are called, in the mean, at most.
    pub false_discovery_rate: f64,
    /// Confidence of the intervals.
    pub confidence: f64,
}

/// What is allowed of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleRecord {
    /// Which.
    pub metric: String,
    /// By how much it may get worse.
    pub max_regress_percent: f64,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CellVerdict {
    /// What it is called here.
    pub name: String,
    /// What was asked for.
    pub cell: CellParams,
    /// The gravest verdict of `reasons` and `changes`.
    pub verdict: Verdict,
    /// What stands against a judgement.
    pub reasons: Vec<Reason>,
    /// The metrics; none where the two sides can't be compared.
    pub changes: Vec<Judged>,
}

/// A metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Judged {
    /// The figures.
    #[serde(flatten)]
    pub change: ChangeRecord,
    /// By how much it may get worse.
    pub max_regress_percent: f64,
    /// The least worsening that is found in 95 % of the cases with the noise and the repeats of this cell; null where
    /// that is not known, or where so few repeats find nothing at all.
    pub detectable_percent: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

impl CellVerdict {
    /// The verdict that reasons and figures lead to.
    #[must_use]
    pub fn concluded(&self) -> Verdict {
        let reasons = self.reasons.iter().map(|reason| reason.verdict);
        let changes = self.changes.iter().map(|change| change.verdict);
        reasons.chain(changes).max().unwrap_or(Verdict::Missing)
    }
}

impl Artefact {
    /// The document with the verdict that it leads to.
    #[must_use]
    pub fn concluded(mut self) -> Self {
        self.verdict = self.conclusion();
        self
    }

    fn conclusion(&self) -> Verdict {
        let reasons = self.reasons.iter().map(|reason| reason.verdict);
        let cells = self.cells.iter().map(|cell| cell.verdict);
        reasons.chain(cells).max().unwrap_or(Verdict::Missing)
    }

    /// The number of cells with a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cells
            .iter()
            .filter(|cell| cell.verdict == verdict)
            .count()
    }

    /// The document as it is stored.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(&self.marked());
        text.unwrap_or_else(|error| unreachable!("plain data: {error}")) + "\n"
    }

    /// Reads a stored document.
    ///
    /// # Errors
    /// What is no artefact of this version, was changed, or says something else than its cells; in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let artefact: Self = serde_json::from_str(text)
            .map_err(|error| format!("not the result of a gate: {error}"))?;
        let artefact = artefact.believed()?;
        let contradicts = |cell: &&CellVerdict| cell.verdict != cell.concluded();
        if artefact.verdict != artefact.conclusion()
            || artefact.cells.iter().any(|cell| contradicts(&cell))
        {
            return Err("its verdict is not the one that its cells lead to".to_owned());
        }
        Ok(artefact)
    }
}

impl Marked for Artefact {
    const VERSION: u32 = VERSION;

    fn version(&self) -> u32 {
        self.schema_version
    }

    fn mark(&mut self) -> &mut String {
        &mut self.mark
    }
}

//! In what two runs, or two measurements of a cell, differ beside their figures.

#![forbid(unsafe_code)]

use sha2::{Digest, Sha256};

use super::Pair;
use crate::doubt::Doubt;
use crate::host::hex;
use crate::manifest::{Environment, Manifest, Tool};
use crate::report::Run;
use crate::report::axis::Axis;
use crate::report::cells::CellSummary;
use crate::result::{Achieved, ResultRecord};

/// Something that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// What it is.
    pub name: &'static str,
    /// What it is on each side.
    pub sides: [String; 2],
    /// Whether figures of the two can't be held against each other: it is not the program alone that differs.
    pub separates: bool,
}

impl Dimension {
    /// In words; `labels` are the names of the sides.
    #[must_use]
    pub fn text(&self, labels: [&str; 2]) -> String {
        let [first, second] = &self.sides;
        format!(
            "{}: {first} in {}, {second} in {}",
            self.name, labels[0], labels[1]
        )
    }
}

/// What separates, and its value on one side.
type Facts = Vec<(&'static str, bool, String)>;

/// In what programs, machines and plans differ.
#[must_use]
pub fn of_runs(runs: [&Run; 2]) -> Vec<Dimension> {
    let facts = |run: &Run| {
        let manifest = &run.manifest;
        let mut facts = of_machine(&manifest.environment);
        facts.extend(of_tool(&manifest.tool));
        facts.push(("measured", true, how(run).to_owned()));
        facts.push(("storage", true, storage(manifest)));
        facts
    };
    differing(runs.map(facts))
}

/// A short name of everything of a machine that separates: figures of two machines may be compared where it is the same.
#[must_use]
pub fn fingerprint(machine: &Environment) -> String {
    let separating = of_machine(machine)
        .into_iter()
        .filter(|(_, separates, _)| *separates);
    let text: String = separating
        .map(|(name, _, value)| format!("{name}={value}\n"))
        .collect();
    let mut name = hex(&Sha256::digest(text.as_bytes()));
    name.truncate(12);
    name
}

/// In how a cell was measured on both sides: mechanism, cipher backend and the like, of all valid repeats.
#[must_use]
pub fn of_cells(sides: [&CellSummary<'_>; 2]) -> Vec<Dimension> {
    let facts = |cell: &CellSummary<'_>| {
        let valid: Vec<&ResultRecord> = cell
            .records
            .iter()
            .copied()
            .filter(|one| one.is_valid())
            .collect();
        if valid.is_empty() {
            Vec::new()
        } else {
            of_measurement(&valid)
        }
    };
    differing(sides.map(facts))
}

/// Positions on axes that only one side has cells at.
#[must_use]
pub fn axes(pairs: &[Pair<'_>], labels: [&str; 2]) -> Vec<String> {
    let on = |side: usize, axis: Axis| {
        axis.positions(
            pairs
                .iter()
                .filter_map(|pair| Some(pair.sides[side].as_ref()?.params)),
        )
    };
    let lines = Axis::ALL.into_iter().flat_map(|axis| {
        let both = [on(0, axis), on(1, axis)];
        [0, 1].into_iter().filter_map(move |side| {
            let lacking = |text: &&String| !both[1 - side].contains(text);
            let alone: Vec<&str> = both[side]
                .iter()
                .filter(lacking)
                .map(String::as_str)
                .collect();
            let list = alone.join(", ");
            (!alone.is_empty()).then(|| format!("{} {list}: only in {}", axis.name(), labels[side]))
        })
    });
    lines.collect()
}

fn of_machine(machine: &Environment) -> Facts {
    let known = if machine.is_known() {
        machine.host.clone()
    } else {
        "not said".to_owned()
    };
    vec![
        ("host", true, known),
        ("CPU", true, machine.cpu_model.clone()),
        ("CPUs", true, machine.cpus.to_string()),
        ("CPU features", true, machine.cpu_flags.join(" ")),
        ("kernel", true, machine.kernel.clone()),
        (
            "governor",
            true,
            machine
                .governor
                .clone()
                .unwrap_or_else(|| "none".to_owned()),
        ),
        ("mitigations", true, machine.mitigations.join("; ")),
        ("clock", true, machine.clock.clone()),
        (
            "hypervisor",
            true,
            if machine.virtual_machine { "yes" } else { "no" }.to_owned(),
        ),
        ("memory", false, format!("{} bytes", machine.memory_bytes)),
        (
            "locked memory",
            false,
            machine
                .memlock_limit_bytes
                .map_or("unlimited".to_owned(), |limit| limit.to_string()),
        ),
    ]
}

fn of_tool(tool: &Tool) -> Facts {
    vec![
        ("build profile", true, tool.profile.clone()),
        ("version", false, tool.version.clone()),
        (
            "revision",
            false,
            tool.git_revision
                .clone()
                .unwrap_or_else(|| "unknown".to_owned()),
        ),
    ]
}

/// What kind of figures a run has.
fn how(run: &Run) -> &'static str {
    let any = |wanted: fn(&Doubt) -> bool| {
        run.records
            .iter()
            .flat_map(|record| &record.doubts)
            .any(wanted)
    };
    if any(|doubt| matches!(doubt, Doubt::Imported { .. })) {
        "by another program"
    } else if any(|doubt| matches!(doubt, Doubt::Simulated)) {
        "in simulation"
    } else {
        "here"
    }
}

fn storage(manifest: &Manifest) -> String {
    let places = manifest.environment.storage.iter();
    let text = places.map(|place| {
        format!(
            "{}: {} on {} ({})",
            place.device, place.filesystem, place.source, place.options
        )
    });
    text.collect::<Vec<_>>().join("; ")
}

fn of_measurement(records: &[&ResultRecord]) -> Facts {
    let all = |of: fn(&Achieved) -> String| {
        let mut texts: Vec<String> = records.iter().map(|record| of(&record.achieved)).collect();
        texts.sort();
        texts.dedup();
        texts.join(" and ")
    };
    vec![
        (
            "cipher backend",
            true,
            all(|one| {
                one.cipher_backend
                    .clone()
                    .unwrap_or_else(|| "none".to_owned())
            }),
        ),
        ("engine", true, all(|one| one.engine.clone())),
        ("direct I/O", true, all(|one| one.direct.to_string())),
        ("polling", true, all(|one| one.polled.to_string())),
        (
            "registered buffers",
            true,
            all(|one| one.registered_buffers.to_string()),
        ),
        ("time stamps", true, all(|one| one.clock.clone())),
        ("pinned", true, all(|one| one.pinned.to_string())),
    ]
}

fn differing([first, second]: [Facts; 2]) -> Vec<Dimension> {
    let both = first.into_iter().zip(second);
    both.filter(|((.., one), (.., other))| one != other)
        .map(|((name, separates, one), (.., other))| Dimension {
            name,
            sides: [one, other],
            separates,
        })
        .collect()
}

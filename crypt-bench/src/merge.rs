//! Joins runs into one: shards of a matrix, further repeats of the same cells, or both.
//!
//! Nothing is lost or averaged: every record stays as it is but for its number and place. The first run's repeats keep their
//! numbers and those of the next ones go on from there, all policies of a workload alike, so that what ran next to
//! each other still has the same number. Pure.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use crate::cell::plan_hash;
use crate::definition::Definition;
use crate::diff::dimension::{self, Dimension};
use crate::manifest::{Manifest, State};
use crate::report::Run;
use crate::result::{CellParams, ResultRecord};

/// What the runs are called where they differ.
const LABELS: [&str; 2] = ["the first", "another"];

/// One run out of several, with this name. Runs of different machines, mechanisms or programs only where they may be `mixed`.
///
/// # Errors
/// No run at all, and runs that may not be joined: in what they differ.
pub fn join(runs: &[Run], name: &str, mixed: bool) -> Result<Run, String> {
    let Some((first, others)) = runs.split_first() else {
        return Err("there is nothing to join".to_owned());
    };
    if let Some((other, dimension)) = others
        .iter()
        .find_map(|other| separating(first, other))
        .filter(|_| !mixed)
    {
        return Err(format!(
            "{other}: another {}; --mixed joins them all the same",
            dimension.text(LABELS)
        ));
    }
    let mut plan: Vec<CellParams> = Vec::new();
    let mut planned = BTreeSet::new();
    let mut next: BTreeMap<CellParams, u32> = BTreeMap::new();
    let mut records: Vec<ResultRecord> = Vec::new();
    for run in runs {
        let own = run
            .manifest
            .plan
            .iter()
            .chain(run.records.iter().map(|record| &record.cell));
        plan.extend(own.filter(|cell| planned.insert((*cell).clone())).cloned());
        let before = next.clone();
        for record in &run.records {
            let workload = record.cell.without_policy();
            let repeat = before.get(&workload).copied().unwrap_or(0) + record.repeat;
            let most = next.entry(workload).or_insert(0);
            *most = repeat.max(*most);
            let sequence = records.len() as u64;
            records.push(ResultRecord {
                repeat,
                sequence,
                ..record.clone()
            });
        }
    }
    let repeats = repeats(runs);
    Ok(Run {
        name: name.to_owned(),
        manifest: manifest(runs, first, plan, repeats),
        records,
    })
}

/// In what a run differs from the first one so that they are no run together, and its name.
fn separating(first: &Run, other: &Run) -> Option<(String, Dimension)> {
    let mut dimensions = dimension::of_runs([first, other]).into_iter();
    let found = dimensions
        .find(|dimension| dimension.separates)
        .or_else(|| {
            let sums = [first, other].map(|run| run.manifest.tool.binary_sha256.clone());
            (sums[0] != sums[1]).then_some(Dimension {
                name: "program",
                sides: sums,
                separates: true,
            })
        });
    found.map(|dimension| (other.name.clone(), dimension))
}

/// Repeats of the cell with the most, as planned.
fn repeats(runs: &[Run]) -> u32 {
    let mut planned: BTreeMap<&CellParams, u32> = BTreeMap::new();
    for run in runs {
        for cell in &run.manifest.plan {
            *planned.entry(cell).or_insert(0) += run.manifest.repeats;
        }
    }
    planned.into_values().max().unwrap_or(0)
}

fn manifest(runs: &[Run], first: &Run, plan: Vec<CellParams>, repeats: u32) -> Manifest {
    let manifests = || runs.iter().map(|run| &run.manifest);
    let (definition_toml, shards_missing) = definition(runs, first);
    let complete = manifests().all(|one| one.state == State::Complete) && !shards_missing;
    let mut environment = first.manifest.environment.clone();
    for place in manifests().flat_map(|one| &one.environment.storage) {
        if !environment.storage.contains(place) {
            environment.storage.push(place.clone());
        }
    }
    let finished = manifests().map(|one| one.finished.clone()).max().flatten();
    Manifest {
        plan_hash: plan_hash(&plan, repeats, &first.manifest.tool, &environment),
        environment,
        definition_toml,
        created_files: manifests()
            .flat_map(|one| one.created_files.clone())
            .collect(),
        started: manifests()
            .map(|one| one.started.clone())
            .min()
            .unwrap_or_default(),
        finished: finished.filter(|_| complete),
        state: if complete {
            State::Complete
        } else {
            State::Interrupted
        },
        plan,
        repeats,
        ..first.manifest.clone()
    }
}

/// The definition of all, and whether some of its shards are missing.
fn definition(runs: &[Run], first: &Run) -> (String, bool) {
    let text = &first.manifest.definition_toml;
    let parsed = runs
        .iter()
        .map(|run| Definition::parse(&run.manifest.definition_toml).ok());
    let shards: BTreeSet<_> = parsed
        .flatten()
        .filter_map(|definition| definition.shard)
        .collect();
    let Some(one) = shards.first() else {
        return (text.clone(), false);
    };
    let missing = (1..=one.of).any(|number| !shards.iter().any(|shard| shard.number == number));
    if missing || shards.iter().any(|shard| shard.of != one.of) {
        return (text.clone(), true);
    }
    let whole = Definition::parse(text).map(|definition| {
        Definition {
            shard: None,
            ..definition
        }
        .to_toml()
    });
    (whole.unwrap_or_else(|_| text.clone()), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cells::summarise;
    use crate::testing::{cell, manifest, record};

    fn run(name: &str, cells: &[(&str, u32)], repeats: u32) -> Run {
        let records: Vec<ResultRecord> = (1..=repeats)
            .flat_map(|repeat| {
                cells
                    .iter()
                    .map(move |(policy, depth)| record(cell(policy, 4096, *depth), repeat, 1e9))
            })
            .collect();
        Run {
            name: name.to_owned(),
            manifest: manifest(&records),
            records,
        }
    }

    fn shard(mut run: Run, shard: &str) -> Run {
        run.manifest.definition_toml = format!("bs = [\"4k\"]\nshard = \"{shard}\"\n");
        run
    }

    #[test]
    fn further_repeats_go_on_and_policies_keep_together() {
        let mut first = run("a", &[("inline", 1), ("adaptive", 1)], 3);
        // A repeat of one policy is lost: the numbers of both go on alike.
        first.records.pop();
        let second = run("b", &[("inline", 1), ("adaptive", 1)], 2);
        let joined = join(&[first, second], "both", false).unwrap();
        assert_eq!((joined.name.as_str(), joined.manifest.repeats), ("both", 5));
        let of = |policy: &str| -> Vec<u32> {
            let own = joined
                .records
                .iter()
                .filter(|record| record.cell.policy == policy);
            own.map(|record| record.repeat).collect()
        };
        assert_eq!(
            (of("inline"), of("adaptive")),
            (vec![1, 2, 3, 4, 5], vec![1, 2, 4, 5])
        );
        let sequence: Vec<u64> = joined
            .records
            .iter()
            .map(|record| record.sequence)
            .collect();
        assert_eq!(sequence, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn shards_make_the_whole_and_a_missing_one_leaves_it_unfinished() {
        let [one, two] = [1, 2].map(|n| shard(run("s", &[("inline", n)], 2), &format!("{n}/2")));
        let joined = join(&[one.clone(), two], "whole", false).unwrap();
        assert_eq!(
            (joined.manifest.state, joined.manifest.repeats),
            (State::Complete, 2)
        );
        assert!(!joined.manifest.definition_toml.contains("shard"));
        let runs = [joined];
        assert!(summarise(&runs).iter().all(|cell| cell.repeats.len() == 2));
        let part = join(&[one], "part", false).unwrap();
        assert_eq!(
            (part.manifest.state, part.manifest.finished),
            (State::Interrupted, None)
        );
    }

    #[test]
    fn what_differs_is_joined_only_where_it_is_told_to() {
        let one = run("a", &[("inline", 1)], 1);
        let mut host = one.clone();
        host.manifest.environment.host = "elsewhere".to_owned();
        let mut program = one.clone();
        program.manifest.tool.binary_sha256 = "9".repeat(64);
        for (other, reason) in [
            (host, "host: host in the first, elsewhere in another"),
            (program, "program: 111"),
        ] {
            let message = join(&[one.clone(), other.clone()], "x", false).unwrap_err();
            assert!(message.contains(reason), "{message}");
            assert_eq!(
                join(&[one.clone(), other], "x", true)
                    .unwrap()
                    .records
                    .len(),
                2
            );
        }
        assert!(join(&[], "x", false).is_err());
    }
}

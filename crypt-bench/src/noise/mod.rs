//! What two runs of the same program differ by, and so what a gate can find on a machine.
//!
//! From an A/A comparison: of each figure the noise of a repeat, the least slow-down that is found with so many
//! repeats, and how many repeats another one takes. Beside the estimates, gates are tried out on the same figures:
//! which side of a block is which is drawn anew, so that nothing differs but by noise, and in another try one cell is
//! slowed down. What is called then is counted. Pure; the same figures and seed give the same counts.

#![forbid(unsafe_code)]

pub mod text;

use serde::Serialize;

use crate::diff::{Diff, Pair};
use crate::generate::Random;
use crate::report::Run;
use crate::report::metric::Metric;
use crate::result::{CellParams, ResultRecord};
use crate::statistics::{Call, Limit, Sample, Shift, adjusted, power};

/// What is wanted to be known.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Metrics, each with the share by which it may get worse.
    pub metrics: Vec<(Metric, f64)>,
    /// The slow-down that is to be found, as a share.
    pub effect: f64,
    /// Gates to be tried out.
    pub decisions: u32,
    /// Repeats of each of them; as many as there are where it says nothing.
    pub repeats: Option<usize>,
    /// Of the draws.
    pub seed: u64,
}

/// The noise of one metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What the cell is called.
    pub cell: String,
    /// Which metric.
    pub metric: &'static str,
    /// Repeats of each side.
    pub repeats: usize,
    /// Standard deviation of candidate / baseline of one block; null where there are too few repeats to know.
    pub noise_percent: Option<f64>,
    /// By how much the two sides are off each other, at most, with 99 % confidence: the noise floor.
    pub floor_percent: Option<f64>,
    /// The least slow-down that a gate finds in 95 % of the cases.
    pub detectable_percent: Option<f64>,
    /// Repeats with which it finds the slow-down that was asked for in 95 %; null where none would do.
    pub repeats_for_effect: Option<usize>,
}

/// What gates called that were tried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// How many, with nothing but noise between the sides.
    pub decisions: u32,
    /// Those that called a regression.
    pub false_alarms: u32,
    /// Others, with one cell slowed down by the effect.
    pub slowed: u32,
    /// Those that found it, in a metric of that cell.
    pub found: u32,
    /// Repeats of each cell in each of them.
    pub repeats: usize,
}

/// What is known of the noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// Of every figure that both sides have.
    pub figures: Vec<Figure>,
    /// Number of them, which are judged together.
    pub tests: usize,
    /// The slow-down that was asked for.
    pub effect_percent: f64,
    /// Gates that were tried out; null where the sides did not take turns, or have unequal numbers of repeats.
    pub tried: Option<Tried>,
    /// What stands against it, in words.
    pub warnings: Vec<String>,
}

impl Noise {
    /// What an A/A comparison says.
    #[must_use]
    pub fn of(diff: &Diff<'_>, question: &Question) -> Self {
        let tests = diff.tests();
        let names = diff.names();
        let of_pair = |pair: &Pair<'_>| -> Vec<Figure> {
            let name = names.name(pair.params());
            let changes = pair
                .changes
                .iter()
                .filter_map(|change| Some((change.metric, change.shift?)));
            changes
                .map(|(metric, shift)| figure(&name, metric, &shift, (tests, question)))
                .collect()
        };
        let mut warnings = diff.warnings();
        warnings.extend(trouble(diff));
        Self {
            figures: diff.pairs.iter().flat_map(of_pair).collect(),
            tests,
            effect_percent: 100.0 * question.effect,
            tried: tried(diff, question),
            warnings,
        }
    }

    /// The most repeats that any figure takes to show the effect; `None` where one never does, or without figures.
    #[must_use]
    pub fn repeats_for_all(&self) -> Option<usize> {
        let each: Option<Vec<usize>> = self
            .figures
            .iter()
            .map(|figure| figure.repeats_for_effect)
            .collect();
        each?.into_iter().max()
    }
}

/// Repeats of one run as two sides that took turns: the first and the second one of every two, in order of time.
#[must_use]
pub fn halves(run: &Run) -> [Run; 2] {
    let mut workloads: Vec<(CellParams, Vec<&ResultRecord>)> = Vec::new();
    for record in &run.records {
        match workloads.iter_mut().find(|(cell, _)| *cell == record.cell) {
            Some((_, records)) => records.push(record),
            None => workloads.push((record.cell.clone(), vec![record])),
        }
    }
    let mut sides = [0, 1].map(|_| Vec::new());
    for (_, mut records) in workloads {
        records.sort_by_key(|record| (record.started_unix_ms, record.repeat));
        for (block, both) in (0..).zip(records.chunks_exact(2)) {
            for (side, record) in sides.iter_mut().zip(both) {
                side.push(ResultRecord {
                    repeat: block + 1,
                    ..(*record).clone()
                });
            }
        }
    }
    let mut manifest = run.manifest.clone();
    manifest.repeats /= 2;
    sides.map(|records| Run {
        name: run.name.clone(),
        manifest: manifest.clone(),
        records,
    })
}

fn figure(
    name: &str,
    metric: Metric,
    shift: &Shift,
    (tests, question): (usize, &Question),
) -> Figure {
    let limit = limit(metric, question);
    let noise = power::noise(shift);
    let percent = |factor: f64| 100.0 * limit.share_of(factor);
    let floor = shift.interval.map(|(low, high)| high.max(low.recip()));
    let detectable =
        noise.and_then(|noise| power::detectable(noise, shift.repeats, tests, limit.factor));
    let effect = Limit::of_share(question.effect, limit.higher_is_better).factor;
    Figure {
        cell: name.to_owned(),
        metric: metric.key(),
        repeats: shift.repeats,
        noise_percent: noise.map(|noise| 100.0 * noise),
        floor_percent: floor
            .filter(|floor| floor.is_finite())
            .map(|floor| 100.0 * (floor - 1.0)),
        detectable_percent: detectable.map(percent),
        repeats_for_effect: noise
            .and_then(|noise| power::repeats_for(effect, noise, tests, limit.factor)),
    }
}

fn limit(metric: Metric, question: &Question) -> Limit {
    let mut allowed = question
        .metrics
        .iter()
        .filter(|(other, _)| *other == metric);
    let share = allowed.next().map_or(0.0, |(_, share)| *share);
    Limit::of_share(share, metric.higher_is_better())
}

/// Cells that can't be taken into account, in words.
fn trouble(diff: &Diff<'_>) -> Vec<String> {
    let names = diff.names();
    let lines = diff.pairs.iter().flat_map(|pair| {
        let name = names.name(pair.params());
        pair.troubles()
            .into_iter()
            .map(move |trouble| format!("{name}: {}", trouble.text(diff.labels)))
    });
    lines.collect()
}

/// One metric of a cell, block by block.
struct Blocks {
    cell: usize,
    limit: Limit,
    pairs: Vec<(f64, f64)>,
}

/// What is done to a cell.
struct Slowed {
    cell: usize,
    share: f64,
}

fn tried(diff: &Diff<'_>, question: &Question) -> Option<Tried> {
    if question.decisions == 0 || diff.is_interleaved() != Some(true) {
        return None;
    }
    let changes = diff.pairs.iter().enumerate().flat_map(|(cell, pair)| {
        let shifted = pair.changes.iter().filter(|change| change.shift.is_some());
        shifted.map(move |change| Blocks {
            cell,
            limit: limit(change.metric, question),
            pairs: change.pairs(),
        })
    });
    let figures: Vec<Blocks> = changes.collect();
    let count = figures.iter().map(|figure| figure.pairs.len()).max()?;
    if figures.iter().any(|figure| figure.pairs.len() < count) {
        return None;
    }
    let repeats = question.repeats.unwrap_or(count).min(count);
    let mut random = Random::new(question.seed);
    let mut tried = Tried {
        repeats,
        ..Tried::default()
    };
    for _ in 0..question.decisions {
        let drawn = draw(count, repeats, &mut random);
        tried.decisions += 1;
        tried.false_alarms += u32::from(
            called(&figures, &drawn, None)
                .iter()
                .any(|cell| cell.is_some()),
        );
        let cell = figures[random.below(figures.len() as u32) as usize].cell;
        let drawn = draw(count, repeats, &mut random);
        let slowed = Slowed {
            cell,
            share: question.effect,
        };
        tried.slowed += 1;
        tried.found += u32::from(called(&figures, &drawn, Some(&slowed)).contains(&Some(cell)));
    }
    Some(tried)
}

/// Some of the blocks, in their order, each with the sides as they were or the other way round.
fn draw(count: usize, wanted: usize, random: &mut Random) -> Vec<(usize, bool)> {
    let mut left = wanted;
    let drawn = (0..count).filter_map(|block| {
        let taken = (random.below((count - block) as u32) as usize) < left;
        left -= usize::from(taken);
        taken.then(|| (block, random.below(2) == 1))
    });
    drawn.collect()
}

/// The cells of figures that a gate calls worse, by figure.
fn called(
    figures: &[Blocks],
    drawn: &[(usize, bool)],
    slowed: Option<&Slowed>,
) -> Vec<Option<usize>> {
    let shift = |figure: &Blocks| {
        let slowed = slowed.filter(|slowed| slowed.cell == figure.cell);
        let factor = slowed.map_or(1.0, |slowed| match figure.limit.higher_is_better {
            true => 1.0 - slowed.share,
            false => 1.0 / (1.0 - slowed.share),
        });
        let pairs = drawn.iter().map(|&(block, swapped)| {
            let (first, second) = figure.pairs[block];
            if swapped {
                (second, first * factor)
            } else {
                (first, second * factor)
            }
        });
        Shift::of(
            &Sample::Interleaved(&pairs.collect::<Vec<_>>()),
            figures.len(),
        )
    };
    let shifts: Vec<Option<Shift>> = figures.iter().map(shift).collect();
    let p_values: Vec<f64> = shifts
        .iter()
        .map(|shift| shift.map_or(1.0, |shift| shift.p_value))
        .collect();
    let judged = figures.iter().zip(shifts).zip(adjusted(&p_values));
    judged
        .map(|((figure, shift), p)| {
            let call = figure.limit.judge(&shift?, p);
            (call == Call::Worse).then_some(figure.cell)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Options;
    use crate::testing::{cell, manifest, normal, record};

    /// Twelve cells that take turns with a copy of themselves, with this deviation between repeats.
    fn run(deviation: f64, repeats: u32) -> Run {
        let mut random = Random::new(9);
        let mut records = Vec::new();
        for repeat in 1..=repeats {
            for depth in 1..=12 {
                let rate = 1e9 * (deviation * normal(&mut random)).exp();
                let mut one = record(cell("inline", 4096, depth), repeat, rate);
                one.started_unix_ms = 1000 * u64::from(repeat) + u64::from(depth);
                records.push(one);
            }
        }
        Run {
            name: "aa".to_owned(),
            manifest: manifest(&records),
            records,
        }
    }

    fn noise(run: &Run, effect: f64) -> Noise {
        let metrics = vec![(Metric::Throughput, 0.05)];
        let options = Options {
            metrics: vec![Metric::Throughput],
            across: None,
            labels: ["A", "B"],
        };
        let [first, second] = &halves(run);
        let diff = Diff::of([first, second], &options).unwrap();
        let question = Question {
            metrics,
            effect,
            decisions: 60,
            repeats: None,
            seed: 1,
        };
        Noise::of(&diff, &question)
    }

    #[test]
    fn halves_take_turns_and_an_odd_repeat_is_left_out() {
        let [first, second] = halves(&run(0.01, 7));
        assert_eq!(
            (
                first.records.len(),
                second.records.len(),
                first.manifest.repeats
            ),
            (36, 36, 3)
        );
        let started = |run: &Run| run.records[0].started_unix_ms;
        assert_eq!((started(&first), started(&second)), (1001, 2001));
    }

    #[test]
    fn noise_is_what_was_put_in_and_gates_find_what_is_said_to_be_found() {
        let found = noise(&run(0.02, 40), 0.1);
        assert_eq!((found.figures.len(), found.tests), (12, 12));
        let mean = found
            .figures
            .iter()
            .filter_map(|figure| figure.noise_percent)
            .sum::<f64>()
            / 12.0;
        // Of a pair: the root of two times that of a repeat.
        assert!((mean - 2.83).abs() < 0.5, "{mean}");
        assert!(
            found
                .figures
                .iter()
                .all(|figure| figure.detectable_percent.unwrap() < 10.0)
        );
        let tried = found.tried.clone().unwrap();
        assert_eq!(
            (tried.decisions, tried.false_alarms, tried.repeats),
            (60, 0, 20)
        );
        assert!(tried.found >= 57, "{tried:?}");
        assert!(found.repeats_for_all().unwrap() <= 20);
        assert_eq!(found, noise(&run(0.02, 40), 0.1));
    }

    #[test]
    fn what_is_too_noisy_says_how_many_repeats_it_takes() {
        let found = noise(&run(0.2, 40), 0.1);
        assert!(found.repeats_for_all().unwrap() > 100);
        let tried = found.tried.unwrap();
        assert!(tried.found < 30 && tried.false_alarms == 0, "{tried:?}");
        // No number of repeats shows what is allowed.
        assert_eq!(noise(&run(0.02, 40), 0.05).repeats_for_all(), None);
    }

    #[test]
    fn too_little_to_try_out_is_said_and_not_made_up() {
        let mut short = run(0.02, 40);
        short
            .records
            .retain(|record| record.cell.depth != 3 || record.repeat < 30);
        let found = noise(&short, 0.1);
        assert_eq!(found.tried, None);
        assert!(!found.warnings.is_empty());
        let nothing = noise(&run(0.02, 1), 0.1);
        assert_eq!(
            (nothing.figures.len(), nothing.repeats_for_all()),
            (0, None)
        );
    }
}

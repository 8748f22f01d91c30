//! Where a series of figures changes its level.
//!
//! Each series is cut where the two sides are least likely to be alike, by the test of [`Shift`] and counting all places where
//! it might have been cut. Of all series together those cuts stay that are discoveries (Benjamini and Hochberg), and both
//! sides of each are looked at in the same way, until nothing is found any more.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::{FALSE_DISCOVERIES, Sample, Shift, adjusted};

/// Fewest figures on either side of a change.
const LEAST: usize = 3;

/// How many figures on either side are looked at.
const REACHES: [usize; 2] = [12, usize::MAX];

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first figure after it.
    pub at: usize,
    /// Level after / level before, up to the neighbouring changes.
    pub ratio: f64,
    /// The chance of such a difference, among all that was looked at.
    pub p_value: f64,
}

/// The changes of each series, in order. Figures that are negative or not finite make a series have none.
#[must_use]
pub fn change_points(series: &[Vec<f64>]) -> Vec<Vec<ChangePoint>> {
    let mut found: Vec<Vec<ChangePoint>> = vec![Vec::new(); series.len()];
    let mut open: Vec<(usize, Range<usize>)> = series
        .iter()
        .enumerate()
        .map(|(index, figures)| (index, 0..figures.len()))
        .collect();
    while !open.is_empty() {
        let cuts: Vec<(usize, Range<usize>, ChangePoint)> = open
            .into_iter()
            .filter_map(|(index, range)| {
                let cut = best_cut(&series[index], range.clone())?;
                Some((index, range, cut))
            })
            .collect();
        let p_values: Vec<f64> = cuts.iter().map(|(.., cut)| cut.p_value).collect();
        open = Vec::new();
        for ((index, range, cut), p_value) in cuts.into_iter().zip(adjusted(&p_values)) {
            if p_value <= FALSE_DISCOVERIES {
                found[index].push(ChangePoint { p_value, ..cut });
                open.push((index, range.start..cut.at));
                open.push((index, cut.at..range.end));
            }
        }
    }
    for (points, figures) in found.iter_mut().zip(series) {
        points.sort_by_key(|point| point.at);
        level(points, figures);
    }
    found
}

/// Where a stretch falls apart most clearly, seen from near and as a whole: from near a level shows that does not stay, as a
/// whole a small change. `None` where it is too short.
fn best_cut(figures: &[f64], range: Range<usize>) -> Option<ChangePoint> {
    let places = range.start + LEAST..(range.end + 1).saturating_sub(LEAST);
    let count = places.len() * REACHES.len();
    let cuts = places
        .flat_map(|at| REACHES.map(|reach| (at, reach)))
        .filter_map(|(at, reach)| {
            let start = range.start.max(at.saturating_sub(reach));
            let end = range.end.min(at.saturating_add(reach));
            let sample = Sample::Apart(&figures[start..at], &figures[at..end]);
            let shift = Shift::of(&sample, 1)?;
            let p_value = (shift.p_value * count as f64).min(1.0);
            let at = start + between_levels(&figures[start..end]);
            Some(ChangePoint {
                at,
                ratio: shift.ratio,
                p_value,
            })
        });
    cuts.min_by(|a, b| a.p_value.total_cmp(&b.p_value))
}

/// Where two levels fit some figures best: the first index of the second one. A change that is seen from near may lie a few
/// figures beside the place at which it was looked for.
fn between_levels(figures: &[f64]) -> usize {
    let all: f64 = figures.iter().sum();
    let count = figures.len() as f64;
    let mut below: f64 = figures[..LEAST - 1].iter().sum();
    let gains = (LEAST..=figures.len() - LEAST).map(|at| {
        below += figures[at - 1];
        let before = at as f64;
        let means = (below / before, (all - below) / (count - before));
        (at, before * (count - before) * (means.0 - means.1).powi(2))
    });
    let best = gains.max_by(|a, b| a.1.total_cmp(&b.1));
    best.map_or(LEAST, |(at, _)| at)
}

/// Ratios between neighbouring levels, now that all changes are known.
fn level(points: &mut [ChangePoint], figures: &[f64]) {
    let ends: Vec<usize> = points
        .iter()
        .map(|point| point.at)
        .chain([figures.len()])
        .collect();
    let mut start = 0;
    for (index, point) in points.iter_mut().enumerate() {
        let (before, after) = (
            &figures[start..point.at],
            &figures[point.at..ends[index + 1]],
        );
        if let Some(shift) = Shift::of(&Sample::Apart(before, after), 1) {
            point.ratio = shift.ratio;
        }
        start = point.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;
    use crate::testing::normal;

    fn series(levels: &[(usize, f64)], random: &mut Random) -> Vec<f64> {
        let figures = levels
            .iter()
            .flat_map(|(count, level)| vec![*level; *count]);
        figures
            .map(|level| level * (0.02 * normal(random)).exp())
            .collect()
    }

    #[test]
    fn changes_of_level_are_found_where_they_are() {
        let mut random = Random::new(3);
        let all = [
            series(&[(15, 100.0), (15, 80.0)], &mut random),
            series(&[(12, 100.0), (10, 130.0), (12, 100.0)], &mut random),
            series(&[(30, 100.0)], &mut random),
        ];
        let found = change_points(&all);
        let places: Vec<Vec<usize>> = found
            .iter()
            .map(|points| points.iter().map(|point| point.at).collect())
            .collect();
        assert_eq!(places, [vec![15], vec![12, 22], vec![]]);
        assert!((found[0][0].ratio - 0.8).abs() < 0.02, "{:?}", found[0]);
        assert!(
            (found[1][1].ratio - 100.0 / 130.0).abs() < 0.02,
            "{:?}",
            found[1]
        );
    }

    #[test]
    fn noise_and_short_series_have_no_changes() {
        let mut random = Random::new(8);
        let quiet: Vec<Vec<f64>> = (0..100)
            .map(|_| series(&[(20, 7.0)], &mut random))
            .collect();
        let called = change_points(&quiet)
            .iter()
            .filter(|points| !points.is_empty())
            .count();
        assert!(called <= 1, "{called} of 100");
        let odd = [
            vec![],
            vec![1.0],
            vec![1.0; 30],
            vec![f64::NAN; 30],
            vec![1.0, 1.0, 9.0, 9.0],
        ];
        assert!(change_points(&odd).iter().all(Vec::is_empty));
    }
}

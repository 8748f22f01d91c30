//! Noise as a table, and what it means.

#![forbid(unsafe_code)]

use super::{Figure, Noise, Tried};
use crate::diff::text::aligned;
use crate::report::escape::plain;
use crate::report::metric::Metric;

/// The whole answer.
#[must_use]
pub fn text(noise: &Noise) -> String {
    let mut text = String::new();
    for warning in &noise.warnings {
        text += &format!("! {}\n", plain(warning));
    }
    if noise.figures.is_empty() {
        return text + "no cell has repeats that can be compared\n";
    }
    let effect = format!("for {} %", noise.effect_percent);
    let heading = [
        "cell",
        "metric",
        "noise",
        "floor",
        "detectable",
        "repeats",
        &effect,
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(noise.figures.iter().map(row));
    text += &aligned(&rows);
    text.push('\n');
    text += &need(noise);
    if let Some(tried) = &noise.tried {
        text += &tried_text(tried, noise.effect_percent);
    }
    text + "\n" + NOTES
}

const NOTES: &str = "\
noise: standard deviation of candidate / baseline of one block. floor: how far both sides are off each other at most, with 99 %
confidence. detectable: the least slow-down that a gate finds in 95 % of the cases with these repeats. for ..: the repeats with
which it finds that slow-down in 95 %.
";

fn row(figure: &Figure) -> Vec<String> {
    let percent =
        |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} %"));
    vec![
        plain(&figure.cell),
        Metric::from_key(figure.metric)
            .map_or(figure.metric, Metric::title)
            .to_owned(),
        percent(figure.noise_percent),
        percent(figure.floor_percent),
        percent(figure.detectable_percent),
        figure.repeats.to_string(),
        figure
            .repeats_for_effect
            .map_or("-".to_owned(), |repeats| repeats.to_string()),
    ]
}

fn need(noise: &Noise) -> String {
    let effect = noise.effect_percent;
    match noise.repeats_for_all() {
        Some(repeats) => {
            format!("a slow-down of {effect} % in any of these figures takes {repeats} repeats\n")
        }
        None => format!(
            "a slow-down of {effect} % can't be found in some of these figures: too noisy, or within what is allowed\n"
        ),
    }
}

fn tried_text(tried: &Tried, effect: f64) -> String {
    format!(
        "tried out on these figures, {} repeats: {} of {} gates called a regression where there is none, and {} of {} found \
         one cell that was slowed down by {effect} %\n",
        tried.repeats, tried.false_alarms, tried.decisions, tried.found, tried.slowed
    )
}

//! Where the results of a run go, and when: at its end, and at intervals before it.

#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use super::{json, outcome, text};
use crate::cli::{Failure, Outcome};
use crate::cmd::output::Sink;
use crate::jobfile::place::Plan;
use crate::jobfile::value::{Kind, Units, Value as Parsed, parse};
use crate::play::{self, Played, Player, Watch};
use crate::progress::say;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Text for people.
    Normal,
    /// fio's JSON, version 3.
    Json,
    /// The same with `bins`: how many requests took how long, in fio's buckets.
    #[value(name = "json+")]
    JsonPlus,
}

/// Parses a status interval.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let kind = Kind::Time { bare_seconds: true };
    match parse(kind, Some(text), Units::default())? {
        Parsed::TimeUs(from_us, _) if from_us >= 10_000 => Ok(Duration::from_micros(from_us)),
        _ => Err("the shortest interval is 10ms".to_owned()),
    }
}

/// Prints results.
pub(super) struct Publisher {
    /// Whether there is text for people.
    normal: bool,
    /// Whether there is JSON, and with `bins`.
    json: Option<bool>,
    status: Option<Duration>,
    sink: Sink,
}

impl Publisher {
    /// Looks whether results can be written where they shall be.
    ///
    /// # Errors
    /// Where they can't.
    pub(super) fn open(
        formats: &[Format],
        path: Option<&Path>,
        status: Option<Duration>,
    ) -> Outcome<Self> {
        let plus = formats.contains(&Format::JsonPlus);
        let json = (plus || formats.contains(&Format::Json)).then_some(plus);
        Ok(Self {
            normal: formats.contains(&Format::Normal),
            json,
            status,
            sink: Sink::open(path, status.is_some() && json.is_some())?,
        })
    }

    /// Plays the threads of a stage, those of the stages before being over.
    ///
    /// # Errors
    /// What breaks while they play.
    pub(super) fn play(
        &mut self,
        plan: &Plan,
        players: Vec<Player>,
        before: &[Played],
        stop: &AtomicBool,
    ) -> Outcome<Vec<Played>> {
        let Some(every) = self.status else {
            return play::play(players, stop).map_err(Failure::Internal);
        };
        let mut failure = None;
        let mut look = |now: &[Option<Played>]| {
            let threads = before
                .iter()
                .map(Some)
                .chain(now.iter().map(Option::as_ref));
            let threads: Vec<Option<&Played>> = threads.collect();
            if failure.is_none() {
                failure = self.print_status(plan, &threads).err();
            }
        };
        let mut watch = Watch {
            every,
            look: &mut look,
        };
        let played = play::play_watched(players, stop, Some(&mut watch));
        match failure {
            Some(failure) => Err(failure),
            None => played.map_err(Failure::Internal),
        }
    }

    fn print_status(&mut self, plan: &Plan, threads: &[Option<&Played>]) -> Outcome {
        let reports = outcome::reports(plan, threads);
        let bins = self.json.unwrap_or(false);
        let document = json::document(plan, &reports, bins, true).map_err(Failure::Internal)?;
        if self.json.is_some() {
            return self.sink.write(&line(&document));
        }
        say(&document);
        Ok(())
    }

    /// Prints the results.
    ///
    /// # Errors
    /// Where they can't be written.
    pub(super) fn finish(self, plan: &Plan, played: &[Played]) -> Outcome {
        let threads: Vec<Option<&Played>> = played.iter().map(Some).collect();
        let reports = outcome::reports(plan, &threads);
        let mut output = String::new();
        if self.normal {
            output += &text::text(&reports).map_err(Failure::Internal)?;
        }
        if let Some(bins) = self.json {
            let document =
                json::document(plan, &reports, bins, false).map_err(Failure::Internal)?;
            output += &match self.status {
                Some(_) => line(&document),
                None => format!("{document:#}\n"),
            };
        }
        self.sink.finish(&output)
    }
}

fn line(document: &Value) -> String {
    format!("{document}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_seconds_unless_they_say_otherwise() {
        assert_eq!(interval("2"), Ok(Duration::from_secs(2)));
        assert_eq!(interval("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "0", "2sec", "1us", "-1"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}

//! fio's job files: text in, typed jobs out, and where every value came from.
//!
//! ```text
//! source (lines, sections, includes) -> expand (variables) -> catalog + value (options and their
//! grammar) -> settings (inheritance) -> data + verify + job (typed) -> place (byte ranges, order)
//! ```
//!
//! Pure: files and variables come through [`Surroundings`]. The dialect is fio's (`HOWTO.rst`, "Job
//! file format"), but stricter where fio guesses: a suffix it does not know, an unset variable, a
//! comment sign inside a file name, a contradictory mix. What is not understood is refused with its
//! line and what to write instead, never ignored. No input panics.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod data;
pub mod expand;
mod expression;
mod files;
mod goals;
pub mod job;
pub mod logs;
pub mod offsets;
pub mod place;
mod range;
pub mod replay;
pub mod settings;
pub mod source;
pub mod value;
pub mod verify;

use std::fmt;
use std::io::BufRead;
use std::sync::Arc;

use job::Job;
use replay::Replay;

use crate::input::printable;

/// Where something stands in a job file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why a job file is not taken: where, what, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where; `None` for something about a file as a whole.
    pub position: Option<Position>,
    /// What is wrong and what to do, without the place.
    pub message: String,
}

impl Refusal {
    /// Refuses what stands at `position`.
    #[must_use]
    pub fn at(position: &Position, message: impl Into<String>) -> Self {
        Self {
            position: Some(position.clone()),
            message: printable(&message.into()),
        }
    }

    /// Refuses a whole file or run.
    #[must_use]
    pub fn whole(message: impl Into<String>) -> Self {
        Self {
            position: None,
            message: printable(&message.into()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Some(position) => write!(f, "{position}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Refusal {}

/// What a job file may ask of the system around it.
pub trait Surroundings {
    /// The text of a file.
    ///
    /// # Errors
    /// Where it can't be read; in words, without its name.
    fn read(&self, path: &str) -> Result<String, String>;

    /// A long text, to be read line by line.
    ///
    /// # Errors
    /// Where it can't be read; in words, without its name.
    fn lines(&self, path: &str) -> Result<Box<dyn BufRead>, String>;

    /// An environment variable; `None` where it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// The value of `$pagesize`, `$mb_memory` or `$ncpus`, in bytes, MiB and CPUs.
    fn keyword(&self, name: &str) -> Option<u64>;
}

/// Reads job files one after the other: the jobs of each wait for those of the file before.
///
/// `wanted` names the sections to take; all where it is empty.
///
/// # Errors
/// The first thing that is refused, and files without a job.
pub fn load(
    paths: &[String],
    wanted: &[String],
    surroundings: &dyn Surroundings,
) -> Result<Vec<Job>, Refusal> {
    let mut jobs: Vec<Job> = Vec::new();
    for path in paths {
        let sections = source::read(path, surroundings)?;
        let before = jobs.len();
        for section in settings::resolve(&sections, wanted, surroundings)? {
            let mut job = Job::new(section)?;
            if let Some(replay) = Replay::of(&job, surroundings)? {
                replay.apply(&mut job);
            }
            jobs.push(job);
        }
        match jobs.get_mut(before) {
            Some(first) => first.stonewall |= before > 0,
            None => {
                let message =
                    format!("{path}: there is no job in it; write [name] and its options");
                return Err(Refusal::whole(message));
            }
        }
    }
    let copies: u64 = jobs.iter().map(|job| u64::from(job.numjobs)).sum();
    if copies > MOST_COPIES {
        let message =
            format!("{copies} jobs with their copies; at most {MOST_COPIES} are possible");
        return Err(Refusal::whole(message));
    }
    Ok(jobs)
}

/// Most copies of all jobs together.
const MOST_COPIES: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::Refusal;
    use super::testing::Fake;

    fn refused(text: &str) -> String {
        let fake = Fake::default().file("a.fio", text);
        let refusal = super::load(&["a.fio".to_owned()], &[], &fake).unwrap_err();
        refusal.to_string()
    }

    #[test]
    fn messages_quote_what_is_odd_so_that_it_can_be_read() {
        let message = refused("[a]\nbs=\u{1b}[31m4k\n");
        assert!(message.contains("`\\u{1b}[31m4k`"), "{message:?}");
        let message = refused("\u{feff}[a]\nbs=4k\n");
        assert!(
            message.starts_with("a.fio:1: ") && message.contains("byte order mark"),
            "{message}"
        );
        let message = refused(&format!("[a]\nbs={}\n", "7".repeat(1 << 20)));
        assert!(
            message.len() < 1000 && message.ends_with("` is too large"),
            "{message}"
        );
        let short = "é".repeat(700);
        assert_eq!(Refusal::whole(short.as_str()).message, short);
    }

    #[test]
    fn a_file_full_of_jobs_is_refused_before_they_are_made() {
        let long = "x".repeat(1 << 20);
        let jobs = "[a]\n".repeat(700_000);
        let message = refused(&format!("[global]\ndescription={long}\n{jobs}"));
        assert!(message.contains("at most 65536"), "{message}");
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Surroundings made of values.

    use std::collections::HashMap;
    use std::io::{BufRead, Cursor};

    use super::Surroundings;

    /// Files and variables by name.
    #[derive(Default)]
    pub(crate) struct Fake {
        pub(crate) files: HashMap<String, String>,
        pub(crate) variables: HashMap<String, String>,
    }

    impl Fake {
        pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
            self.files.insert(name.to_owned(), text.to_owned());
            self
        }

        pub(crate) fn variable(mut self, name: &str, text: &str) -> Self {
            self.variables.insert(name.to_owned(), text.to_owned());
            self
        }
    }

    impl Surroundings for Fake {
        fn read(&self, path: &str) -> Result<String, String> {
            self.files
                .get(path)
                .cloned()
                .ok_or_else(|| "no such file".to_owned())
        }

        fn lines(&self, path: &str) -> Result<Box<dyn BufRead>, String> {
            self.read(path)
                .map(|text| Box::new(Cursor::new(text)) as Box<dyn BufRead>)
        }

        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).cloned()
        }

        fn keyword(&self, name: &str) -> Option<u64> {
            [("pagesize", 4096), ("mb_memory", 2048), ("ncpus", 2)]
                .into_iter()
                .find_map(|(known, value)| (known == name).then_some(value))
        }
    }
}

//! The process that may die: reads one input after the other, under limits of time and memory.
//!
//! The input at hand is in a file before it is read, so that it is known afterwards whatever happens: a panic, an
//! abort, an overflow of the stack, too much memory (which aborts) or time (which exits with [`TOO_SLOW`]).

#![forbid(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::mutate::Mutator;
use crate::targets::Target;

/// Exit status where an input took too long.
pub const TOO_SLOW: i32 = 70;
/// How often the time is looked at.
const TICK: Duration = Duration::from_millis(50);

/// What an input may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time in milliseconds.
    pub most_ms: u64,
    /// Memory of the whole process in MiB, stacks left out.
    pub most_mib: u64,
}

/// Keeps the limits.
pub struct Guard {
    current: File,
    begun: Instant,
    /// When the input at hand was begun, in milliseconds and counted from 1; 0 between inputs.
    since: Arc<AtomicU64>,
}

impl Guard {
    /// Limits this process. Inputs will be in the file `current`, after their length in 8 bytes.
    ///
    /// # Errors
    /// Where the file can't be written, or the limit not be set.
    pub fn start(limits: Limits, current: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", current.display());
        let current = File::create(current).map_err(failed)?;
        for (resource, most) in [(Resource::Data, limits.most_mib << 20), (Resource::Core, 0)] {
            let limit = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            setrlimit(resource, limit).map_err(|error| format!("{resource:?}: {error}"))?;
        }
        let guard = Self {
            current,
            begun: Instant::now(),
            since: Arc::default(),
        };
        let (begun, since) = (guard.begun, Arc::clone(&guard.since));
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(TICK);
                let since = since.load(Ordering::Relaxed);
                if since > 0 && millis(begun) > since + limits.most_ms {
                    eprintln!("an input takes longer than {} ms", limits.most_ms);
                    std::process::exit(TOO_SLOW);
                }
            }
        });
        Ok(guard)
    }

    /// Reads an input; whether it was accepted.
    ///
    /// # Errors
    /// Where it can't be noted down.
    ///
    /// # Panics
    /// Where the target does.
    pub fn check(&self, target: &Target, input: &[u8]) -> Result<bool, String> {
        let noted = [&(input.len() as u64).to_le_bytes(), input].concat();
        let written = self.current.write_all_at(&noted, 0);
        written.map_err(|error| format!("the input at hand: {error}"))?;
        self.since.store(millis(self.begun), Ordering::Relaxed);
        let accepted = (target.check)(input);
        self.since.store(0, Ordering::Relaxed);
        Ok(accepted)
    }
}

fn millis(begun: Instant) -> u64 {
    1 + begun.elapsed().as_millis() as u64
}

/// Makes inputs until the time is over.
///
/// # Errors
/// A target that no input or every input is good for, since nothing was tried then.
pub fn fuzz(
    target: &Target,
    guard: &Guard,
    length: Duration,
    seed: u64,
    most_bytes: usize,
) -> Result<(), String> {
    let started = Instant::now();
    let corpus = (target.corpus)();
    let given = corpus.len();
    let mut good_of_given = 0;
    for input in &corpus {
        good_of_given += usize::from(guard.check(target, input)?);
    }
    let mut mutator = Mutator::new(seed, corpus, (target.pieces)(), most_bytes);
    let (mut accepted, mut refused, mut slowest) = (0_u64, 0_u64, Duration::ZERO);
    while started.elapsed() < length {
        let input = mutator.next_input();
        let since = Instant::now();
        let good = guard.check(target, &input)?;
        slowest = slowest.max(since.elapsed());
        if good {
            accepted += 1;
            mutator.keep(input);
        } else {
            refused += 1;
        }
    }
    println!(
        "{}: {accepted} inputs accepted, {refused} refused; of the {given} to begin with {good_of_given} accepted; \
         the slowest took {} ms (seed {seed})",
        target.name,
        slowest.as_millis()
    );
    match accepted > 0 && refused > 0 {
        true => Ok(()),
        false => Err(format!("{}: all inputs were alike to it", target.name)),
    }
}

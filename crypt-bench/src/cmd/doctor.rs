//! `crypt-bench doctor`: what on this host disturbs measurements.

#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crypt_core::Volume;
use crypt_core::cipher::Backend;
use crypt_core::clock::Clock;
use crypt_core::device::file::{FileDevice, FileEngine, FileOptions};

use crate::cli::{Failure, Outcome};
use crate::cmd::output;
use crate::doctor::{Finding, Probed, State, System, examine, text};
use crate::host::{self, Counters};

/// How long the load of the machine is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Say what on this host disturbs measurements, and what to do about it.
///
/// Looks only, and changes nothing: frequency governor, turbo, hardware threads, mitigations, steal time and other
/// load, heat, quotas, schedulers and write caches of disks, cipher instructions, limits of memory, io_uring.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Exit with status 10 where something disturbs
    #[arg(long)]
    check: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Standard output that can't be written; with `--check`, anything that disturbs.
pub fn run(args: &Args) -> Outcome {
    let findings = examine(&System::Here, &probe());
    let document = if args.json {
        let json = serde_json::to_string_pretty(&findings);
        json.unwrap_or_else(|error| unreachable!("plain data: {error}")) + "\n"
    } else {
        text::text(&findings)
    };
    output::write_stdout(&document)?;
    let disturbs = |finding: &&Finding| finding.state == State::Disturbs;
    match findings.iter().filter(disturbs).count() {
        some if some > 0 && args.check => Err(Failure::Missed(format!(
            "doctor: {some} things disturb measurements"
        ))),
        _ => Ok(()),
    }
}

/// What has to be tried out.
fn probe() -> Probed {
    // Before anything of this program's own.
    let before = Counters::now();
    sleep(LOOK);
    let after = Counters::now();
    let backend = Backend::available().next().map_or("none", Backend::name);
    let fastest = Backend::ALL.first().and_then(|backend| backend.missing());
    let environment = host::environment();
    Probed {
        backend: (backend.to_owned(), fastest.map(str::to_owned)),
        io_uring: io_uring(),
        clock: Clock::monotonic().source().to_owned(),
        steal_percent: after.steal_percent_since(&before),
        busy_percent: after.busy_percent_since(&before),
        cpus: host::allowed_cpus().len(),
        memlock_bytes: environment.memlock_limit_bytes,
        optimised: !cfg!(debug_assertions),
    }
}

/// Whether a file can be read by io_uring, on one that is removed again.
fn io_uring() -> Result<(), String> {
    let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    file.write_all(&[0; 4096])
        .map_err(|error| error.to_string())?;
    let options = FileOptions {
        read_only: true,
        engine: FileEngine::IoUring,
        ..FileOptions::default()
    };
    let device = FileDevice::open(file.path(), options).map_err(|error| error.to_string())?;
    let volume = Volume::builder(Arc::new(device))
        .build()
        .map_err(|error| error.to_string())?;
    volume.io().map(drop).map_err(|error| error.to_string())
}

//! Where the text of a command goes: standard output, or a file.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::cli::{Failure, Outcome};
use crate::journal::replace;
use crate::report::terminal::Style;

/// Writes a text to a file, or where none is named to standard output.
///
/// # Errors
/// Where that can't be written.
pub(super) fn deliver(path: Option<&Path>, text: &str) -> Outcome {
    match path {
        Some(path) => write_file(path, text),
        None => write_stdout(text),
    }
}

/// How to write to standard output.
pub(super) fn stdout_style() -> Style {
    let stdout = io::stdout();
    let width = stdout.is_terminal().then(|| {
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        size.map_or(80, |size| usize::from(size.ws_col))
    });
    Style::choose(width, |name| std::env::var(name).ok())
}

pub(super) fn write_file(path: &Path, text: &str) -> Outcome {
    // Renaming over a device or a pipe would put a file in its place.
    let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let written = if is_special {
        fs::write(path, text)
    } else {
        replace(path, text.as_bytes())
    };
    written.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Prints a result; a reader that has gone away is no failure.
///
/// # Errors
/// Where standard output can't be written.
pub(super) fn write_stdout(text: &str) -> Outcome {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

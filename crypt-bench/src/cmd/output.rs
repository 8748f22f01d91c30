//! Where the text of a command goes: standard output, or a file.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::cli::{Failure, Outcome};
use crate::input;
use crate::journal::{replace, stage};
use crate::progress::say;
use crate::report::terminal::Style;

/// Where a text will go, found to be writable.
pub(super) enum Sink {
    /// Standard output.
    Stdout,
    /// A file that is replaced at the end, and is as it was until then.
    Replace(PathBuf),
    /// A file that is written as texts come; devices and pipes always are.
    Stream(PathBuf, File),
}

impl Sink {
    /// Looks whether `path` can be written; standard output where none is named. With `streamed`, what was
    /// in the file is gone when this returns.
    ///
    /// # Errors
    /// Where it can't be.
    pub(super) fn open(path: Option<&Path>, streamed: bool) -> Outcome<Self> {
        let Some(path) = path else {
            return Ok(Self::Stdout);
        };
        let path = &behind_links(path).map_err(|error| unwritable(path, &error))?;
        let found = fs::metadata(path).ok().map(|found| found.file_type());
        if let Some(kind) = found.filter(|kind| kind.is_block_device() || kind.is_dir()) {
            let message = format!("{}; name a file for the results", input::kind_of(kind));
            return Err(Failure::usage(format!("{}: {message}", path.display())));
        }
        // Renaming over a device or a pipe would put a file in its place.
        let is_special = found.is_some_and(|kind| !kind.is_file());
        let opened = if is_special {
            let file = OpenOptions::new().write(true).open(path);
            file.map(|file| Self::Stream(path.to_owned(), file))
        } else if streamed {
            File::create(path).map(|file| Self::Stream(path.to_owned(), file))
        } else {
            stage(path).map(|_| Self::Replace(path.to_owned()))
        };
        opened.map_err(|error| unwritable(path, &error))
    }

    /// Writes a text that is not the last one.
    ///
    /// # Errors
    /// Where that fails.
    pub(super) fn write(&mut self, text: &str) -> Outcome {
        match self {
            Self::Stdout => write_stdout(text),
            Self::Replace(_) => Ok(()),
            Self::Stream(path, file) => file
                .write_all(text.as_bytes())
                .map_err(|error| unwritable(path, &error)),
        }
    }

    /// Writes the last text, and says where it is.
    ///
    /// # Errors
    /// Where that fails.
    pub(super) fn finish(mut self, text: &str) -> Outcome {
        self.write(text)?;
        let path = match &self {
            Self::Stdout => return Ok(()),
            Self::Replace(path) => {
                replace(path, text.as_bytes()).map_err(|error| unwritable(path, &error))?;
                path
            }
            Self::Stream(path, _) => path,
        };
        say(format_args!("wrote {}", path.display()));
        Ok(())
    }
}

/// The file that a link leads to: replacing the link would leave that as it was.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match is_link.then(|| fs::canonicalize(path)) {
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // What `/dev/stdout` leads to may have no name.
        Some(Ok(real)) if real.exists() => Ok(real),
        _ => Ok(path.to_owned()),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()))
}

/// Writes a text to a file, or where none is named to standard output.
///
/// # Errors
/// Where that can't be written.
pub(super) fn deliver(path: Option<&Path>, text: &str) -> Outcome {
    Sink::open(path, false)?.finish(text)
}

/// The file that a path names; `None` for `-`, standard output.
pub(super) fn named(path: &Path) -> Option<&Path> {
    (path.as_os_str() != "-").then_some(path)
}

/// Refuses to write where one of these files is.
///
/// # Errors
/// Where one of `paths` is the same file as one of `used`, by whatever name; `told` says what the path is for.
pub(super) fn keep_apart<'a>(
    told: &str,
    paths: &[&Path],
    used: impl Iterator<Item = &'a Path>,
) -> Outcome {
    if paths.is_empty() {
        return Ok(());
    }
    let used: HashMap<Identity, &Path> = used.map(|file| (identity(file), file)).collect();
    for path in paths {
        if let Some(file) = used.get(&identity(path)) {
            let message = format!(
                "{told} {}: that is {}, which the jobs need; name another file",
                path.display(),
                file.display()
            );
            return Err(Failure::usage(message));
        }
    }
    Ok(())
}

/// What makes two paths one file: device and number, or where it does not exist the path itself.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Found(u64, u64),
    Missing(PathBuf),
}

fn identity(path: &Path) -> Identity {
    match fs::metadata(path) {
        Ok(found) => Identity::Found(found.dev(), found.ino()),
        Err(_) => Identity::Missing(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
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

/// Replaces a file without a word about it. What takes only one text, as a pipe does, is left alone.
///
/// # Errors
/// Where that can't be written.
pub(super) fn put(path: &Path, text: &str) -> Outcome {
    match Sink::open(Some(path), false)? {
        Sink::Replace(path) => {
            replace(&path, text.as_bytes()).map_err(|error| unwritable(&path, &error))
        }
        Sink::Stdout | Sink::Stream(..) => Ok(()),
    }
}

/// Writes a text to a file.
///
/// # Errors
/// Where that can't be written.
pub(super) fn write_file(path: &Path, text: &str) -> Outcome {
    deliver(Some(path), text)
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

//! Text that users name: read whole, within a bound, or refused in words.
//!
//! A folder, an endless device or a picture given by mistake is told apart from a file that is not there.

#![forbid(unsafe_code)]

use std::fs::{File, FileType};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Most bytes of what people write, and of other programs' results: 64 MiB.
pub const MOST_BYTES: u64 = 64 << 20;
/// Most bytes of the results of a run: 2 GiB, some 500,000 records.
pub const MOST_RESULT_BYTES: u64 = 2 << 30;

/// The text of a file or pipe; `-` is a file like any other here.
///
/// # Errors
/// What can't be read, has more than `most_bytes`, or is not UTF-8; in words, without its name.
pub fn text(path: &Path, most_bytes: u64) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let kind = file
        .metadata()
        .map_err(|error| error.to_string())?
        .file_type();
    if kind.is_dir() || kind.is_block_device() {
        return Err(format!("{}, not a text file", kind_of(kind)));
    }
    text_of(file, most_bytes)
}

/// The text that a reader gives.
///
/// # Errors
/// As [`text`].
pub fn text_of(reader: impl Read, most_bytes: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = reader.take(most_bytes + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most_bytes {
        return Err(format!(
            "longer than {most_bytes} bytes, which no such file is"
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..good];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("not a text file: line {line} is not UTF-8")
    })
}

/// What stands in the place of a file, in words.
#[must_use]
pub fn kind_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_block_device() {
        "a block device"
    } else {
        "a file"
    }
}

/// A message that quotes what somebody wrote, fit for a terminal: control characters are written out, and of what is
/// very long the middle is left out.
#[must_use]
pub fn printable(message: &str) -> String {
    let mut text = String::with_capacity(message.len().min(2 * MOST_HALF_CHARS));
    let left_out = message.chars().count().saturating_sub(2 * MOST_HALF_CHARS);
    for (index, c) in message.chars().enumerate() {
        match index.checked_sub(MOST_HALF_CHARS) {
            Some(0) if left_out > 0 => text.push_str(" ... "),
            Some(behind) if behind < left_out => {}
            _ if c.is_control() => text.extend(c.escape_default()),
            _ => text.push(c),
        }
    }
    text
}

/// The same for a message of several lines, each by itself.
#[must_use]
pub fn printable_lines(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(printable).collect();
    lines.join("\n")
}

/// Characters of each half of a long line.
const MOST_HALF_CHARS: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert!(text(&path, 9).unwrap_err().contains("No such file"));
        assert!(
            text(folder.path(), 9)
                .unwrap_err()
                .contains("a folder, not a text file")
        );
        assert!(
            text(Path::new("/dev/zero"), 9)
                .unwrap_err()
                .contains("longer than 9 bytes")
        );
        std::fs::write(&path, b"a\nb\xffc\n").unwrap();
        assert_eq!(
            text(&path, 9).unwrap_err(),
            "not a text file: line 2 is not UTF-8"
        );
        std::fs::write(&path, "123456789").unwrap();
        assert_eq!(text(&path, 9).as_deref(), Ok("123456789"));
        assert!(text(&path, 8).is_err());
    }

    #[test]
    fn messages_are_fit_for_a_terminal() {
        assert_eq!(printable("a\n\u{1b}[2J"), "a\\n\\u{1b}[2J");
        assert_eq!(printable_lines("a\nb\r"), "a\nb\\r");
        let long = printable(&"x".repeat(1 << 20));
        assert_eq!(long.len(), 2 * MOST_HALF_CHARS + " ... ".len());
    }
}

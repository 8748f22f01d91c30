//! One line of an iolog.

#![forbid(unsafe_code)]

use super::Kind;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Add,
    Open,
    Close,
    /// For so many microseconds.
    Wait(u64),
    /// With offset and length.
    Request(Kind, u64, u64),
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Where lines have times.
    pub(super) time_us: Option<u64>,
    pub(super) file: &'a str,
    pub(super) action: Action,
}

impl<'a> Line<'a> {
    /// Reads a line; `None` for an empty one.
    pub(super) fn parse(text: &'a str, timed: bool) -> Result<Option<Self>, String> {
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else {
            return Ok(None);
        };
        let (time_us, file) = match timed {
            true => (Some(number("time", Some(first))?), words.next()),
            false => (None, Some(first)),
        };
        let (Some(file), Some(action)) = (file, words.next()) else {
            return Err("write FILE and what is done".to_owned());
        };
        let numbers = (words.next(), words.next());
        if words.next().is_some() {
            return Err("more than an offset and a length behind what is done".to_owned());
        }
        Ok(Some(Self {
            time_us,
            file,
            action: action_of(action, numbers)?,
        }))
    }
}

fn action_of(name: &str, numbers: (Option<&str>, Option<&str>)) -> Result<Action, String> {
    let kind = match name {
        "read" => Kind::Read,
        "write" => Kind::Write,
        "trim" => Kind::Trim,
        "sync" | "datasync" => return Ok(Action::Request(Kind::Sync, 0, 0)),
        "wait" => return number("time to wait", numbers.0).map(Action::Wait),
        "add" => return Ok(Action::Add),
        "open" => return Ok(Action::Open),
        "close" => return Ok(Action::Close),
        _ => {
            return Err(format!(
                "`{name}`: use add, open, close, read, write, sync, datasync, trim or wait"
            ));
        }
    };
    let offset = number("offset", numbers.0)?;
    let len = number("length", numbers.1)?;
    Ok(Action::Request(kind, offset, len))
}

pub(super) fn number(what: &str, text: Option<&str>) -> Result<u64, String> {
    let text = text.ok_or_else(|| format!("the {what} is missing"))?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| digits);
    value.ok_or_else(|| format!("`{text}` is not a whole number: the {what} is one"))
}

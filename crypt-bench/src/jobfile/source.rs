//! Job files as lines: sections, their options in order, includes put in their place.
//!
//! fio's rules: a line whose first sign is `;` or `#` is a comment, and so is the rest of a line
//! from the first `;` or `#` on; `include FILE` stands for that file's lines, which may hold no
//! section; a name is looked up from here first, then beside the including file.

#![forbid(unsafe_code)]

use std::sync::Arc;

use super::{Position, Refusal, Surroundings};

/// Deepest chain of includes.
const MOST_INCLUDES: usize = 16;
/// Most bytes of all files of a job file together.
const MOST_BYTES: usize = 4 << 20;
/// Most sections, `[global]` ones among them.
const MOST_SECTIONS: usize = 2 * 65_536;

/// An option as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where.
    pub position: Position,
    /// Left of `=`.
    pub name: String,
    /// Right of `=`, trimmed, without comment; `None` without `=`.
    pub value: Option<String>,
    /// A comment that begins right behind the value, without a blank: `a#b`.
    pub glued_comment: bool,
}

/// A `[section]` with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where its head is.
    pub position: Position,
    /// Between the brackets.
    pub name: String,
    /// In order, included ones in place.
    pub lines: Vec<Line>,
}

impl Section {
    /// Whether it sets defaults for the sections after it.
    #[must_use]
    pub fn is_global(&self) -> bool {
        self.name == "global"
    }
}

/// Reads a job file with what it includes.
///
/// # Errors
/// A file that can't be read, an option outside of a section, a section that can't be one.
pub fn read(path: &str, surroundings: &dyn Surroundings) -> Result<Vec<Section>, Refusal> {
    let mut reader = Reader {
        surroundings,
        sections: Vec::new(),
        bytes: 0,
    };
    reader.file(path, 0)?;
    Ok(reader.sections)
}

struct Reader<'a> {
    surroundings: &'a dyn Surroundings,
    sections: Vec<Section>,
    bytes: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, depth: usize) -> Result<(), Refusal> {
        let text = self
            .surroundings
            .read(path)
            .map_err(|error| Refusal::whole(format!("{path}: {error}")))?;
        self.text(path, &text, depth)
    }

    fn text(&mut self, path: &str, text: &str, depth: usize) -> Result<(), Refusal> {
        self.bytes += text.len();
        if self.bytes > MOST_BYTES {
            let message = format!("{path}: more than {MOST_BYTES} bytes of job files");
            return Err(Refusal::whole(message));
        }
        let file: Arc<str> = path.into();
        for (index, line) in text.lines().enumerate() {
            let position = Position {
                file: Arc::clone(&file),
                line: index + 1,
            };
            if index == 0 && line.starts_with('\u{feff}') {
                let message = "begins with a byte order mark; save it as UTF-8 without one";
                return Err(Refusal::at(&position, message));
            }
            let (content, glued_comment) = without_comment(line);
            if content.is_empty() {
                continue;
            }
            if content.contains('\0') {
                let message = "a zero byte: this is not a job file";
                return Err(Refusal::at(&position, message));
            }
            if content.starts_with('[') {
                self.section(position, line.trim(), content, depth)?;
            } else if let Some(name) = include(content) {
                self.include(path, &position, name, depth)?;
            } else {
                self.option(option(position, content, glued_comment))?;
            }
        }
        Ok(())
    }

    fn section(
        &mut self,
        position: Position,
        line: &str,
        content: &str,
        depth: usize,
    ) -> Result<(), Refusal> {
        if depth > 0 {
            let message = format!("{content}: an included file can't have sections of its own");
            return Err(Refusal::at(&position, message));
        }
        let name = content
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .filter(|name| !name.is_empty());
        let Some(name) = name else {
            let message = format!("`{line}` is not a section: write [name], alone on its line");
            return Err(Refusal::at(&position, message));
        };
        if name != "global" && name.starts_with("global") {
            let message = format!(
                "[{name}]: fio takes every section whose name begins with `global` for [global]; \
                 write [global], or another name for a job"
            );
            return Err(Refusal::at(&position, message));
        }
        if self.sections.len() > MOST_SECTIONS {
            let message =
                format!("more than {MOST_SECTIONS} sections; at most 65536 jobs are possible");
            return Err(Refusal::at(&position, message));
        }
        self.sections.push(Section {
            position,
            name: name.to_owned(),
            lines: Vec::new(),
        });
        Ok(())
    }

    fn include(
        &mut self,
        from: &str,
        position: &Position,
        name: &str,
        depth: usize,
    ) -> Result<(), Refusal> {
        if depth >= MOST_INCLUDES {
            let message = format!("include {name}: more than {MOST_INCLUDES} files deep");
            return Err(Refusal::at(position, message));
        }
        if self.sections.is_empty() {
            let message = format!("include {name} outside of a section; write [global] before it");
            return Err(Refusal::at(position, message));
        }
        let beside = from
            .rsplit_once('/')
            .map(|(folder, _)| format!("{folder}/{name}"));
        let mut last_error = String::new();
        for path in [Some(name.to_owned()), beside].into_iter().flatten() {
            match self.surroundings.read(&path) {
                Ok(text) => return self.text(&path, &text, depth + 1),
                Err(error) => last_error = error,
            }
        }
        let message = format!("include {name}: {last_error}");
        Err(Refusal::at(position, message))
    }

    fn option(&mut self, line: Line) -> Result<(), Refusal> {
        match self.sections.last_mut() {
            Some(section) => {
                section.lines.push(line);
                Ok(())
            }
            None => Err(Refusal::at(
                &line.position,
                format!(
                    "option `{}` outside of a section; write [global] or [job] before it",
                    line.name
                ),
            )),
        }
    }
}

/// The trimmed part before a comment, and whether the comment begins without a blank before it.
fn without_comment(line: &str) -> (&str, bool) {
    let Some(at) = line.find([';', '#']) else {
        return (line.trim(), false);
    };
    let before = &line[..at];
    let glued = before.ends_with(|c: char| !c.is_whitespace());
    (before.trim(), glued)
}

/// The file that an include names.
fn include(content: &str) -> Option<&str> {
    let rest = content.strip_prefix("include")?;
    let name = rest.trim_start();
    (name.len() < rest.len() && !name.is_empty() && !name.starts_with('=')).then_some(name)
}

fn option(position: Position, content: &str, glued_comment: bool) -> Line {
    let (name, value) = match content.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
        None => (content, None),
    };
    Line {
        position,
        name: name.to_owned(),
        value,
        glued_comment,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn parse(text: &str) -> Result<Vec<Section>, Refusal> {
        read("a.fio", &Fake::default().file("a.fio", text))
    }

    fn pairs(section: &Section) -> Vec<(&str, Option<&str>)> {
        let lines = section.lines.iter();
        lines
            .map(|line| (line.name.as_str(), line.value.as_deref()))
            .collect()
    }

    #[test]
    fn sections_hold_options_in_order_with_their_lines() {
        let text = "; c\n[global]\n bs = 4k ; inline\n\n[a job]\nsize=1m # x\nstonewall\nbs=8k#y\n";
        let sections = parse(text).unwrap();
        assert!(sections[0].is_global() && !sections[1].is_global());
        assert_eq!(pairs(&sections[0]), [("bs", Some("4k"))]);
        assert_eq!(sections[1].name, "a job");
        assert_eq!(
            pairs(&sections[1]),
            [
                ("size", Some("1m")),
                ("stonewall", None),
                ("bs", Some("8k"))
            ]
        );
        assert_eq!(sections[1].lines[2].position.to_string(), "a.fio:8");
        assert!(!sections[1].lines[0].glued_comment && sections[1].lines[2].glued_comment);
    }

    #[test]
    fn includes_stand_for_their_lines_and_are_found_beside_the_file() {
        let fake = Fake::default()
            .file("dir/a.fio", "[j]\ninclude b.inc\nrw=read\n")
            .file("dir/b.inc", "bs=4k\n  include c.inc\n")
            .file("c.inc", "size=1m\n");
        let sections = read("dir/a.fio", &fake).unwrap();
        assert_eq!(
            pairs(&sections[0]),
            [
                ("bs", Some("4k")),
                ("size", Some("1m")),
                ("rw", Some("read"))
            ]
        );
        assert_eq!(sections[0].lines[0].position.to_string(), "dir/b.inc:1");
    }

    #[test]
    fn what_cannot_be_a_job_file_is_refused_with_its_line() {
        for (text, place, reason) in [
            ("bs=4k\n", "a.fio:1", "outside of a section"),
            ("[globalcache]\n", "a.fio:1", "begins with `global`"),
            ("[]\n", "a.fio:1", "not a section"),
            ("[a\n", "a.fio:1", "not a section"),
            ("[a] b=1\n", "a.fio:1", "not a section"),
            ("\n[a]\ninclude none.fio\n", "a.fio:3", "no such file"),
            ("[a]\ninclude a.fio\n", "a.fio:1", "can't have sections"),
            ("include x\n", "a.fio:1", "outside of a section"),
            ("[a]\nb\0=1\n", "a.fio:2", "not a job file"),
        ] {
            let refusal = parse(text).unwrap_err().to_string();
            assert!(refusal.starts_with(place), "{refusal}");
            assert!(refusal.contains(reason), "{refusal}");
        }
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let fake = Fake::default()
            .file("a.fio", "[a]\ninclude b\n")
            .file("b", "bs=4k\ninclude b\n");
        let refusal = read("a.fio", &fake).unwrap_err().to_string();
        assert!(refusal.contains("files deep"), "{refusal}");
    }
}

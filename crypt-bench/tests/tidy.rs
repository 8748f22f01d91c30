//! The house rules that no compiler checks: file length, module docs, where unsafe code is, and that
//! imports go one way. `ARCHITECTURE.md` says why.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Most lines of a file, its tests left out.
const MOST_LINES: usize = 400;

/// Modules of the library, from what stands on nothing to what stands on all. A module imports from
/// its own line and from those above.
const CORE_ORDER: &[&[&str]] = &[
    &["error"],
    &["units", "sys", "pages"],
    &["secret", "clock", "request"],
    &["key", "buffer"],
    &["cipher", "spec", "iv"],
    &["policy"],
    &["device"],
    &["exec"],
    &["pipeline"],
    &["queue"],
    &["volume", "volume_io"],
    &["lib"],
];

/// Modules of the program, likewise.
const BENCH_ORDER: &[&[&str]] = &[
    &["doubt", "input"],
    &["result"],
    &["manifest", "summary"],
    &["buckets", "host", "storage", "definition"],
    &["mark"],
    &[
        "matrix",
        "generate",
        "issuer",
        "record",
        "log",
        "judge",
        "progress",
        "dip",
        "verify",
        "preset",
        "trace",
        "statistics",
    ],
    &[
        "account", "journal", "target", "drive", "play", "jobfile", "fio",
    ],
    &["cell"],
    &["run", "simulate", "calibrate", "report"],
    &["score", "diff", "merge", "doctor"],
    &["gate"],
    &["noise", "history"],
    &["cmd", "cli"],
    &["lib", "main", "testing"],
];

struct Source {
    /// Path from the root of the repository.
    path: String,
    text: String,
}

impl Source {
    /// The file up to its tests.
    fn without_tests(&self) -> &str {
        let text = &self.text;
        let ends = ["\n#[cfg(test)]\nmod ", "\n#[cfg(test)]\npub(crate) mod "];
        let end = ends.iter().filter_map(|mark| text.find(mark)).min();
        &text[..end.unwrap_or(text.len())]
    }

    /// Identifiers outside comments and strings, in order.
    fn words(&self) -> Vec<String> {
        code_of(&self.text)
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn has_unsafe_code(&self) -> bool {
        self.words().iter().any(|word| word == "unsafe")
    }

    fn is_test_code(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("tests.rs")
    }
}

/// A text without what stands in comments and between quotes.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let skipped = match next {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => string_len(rest),
            'r' if rest.starts_with("r\"") => raw_len(rest, "\""),
            'r' if rest.starts_with("r#\"") => raw_len(rest, "\"#"),
            '\'' if rest.starts_with("'\"'") => 3,
            '\'' if rest.starts_with("'\\") => 4,
            _ => 0,
        };
        if skipped == 0 {
            code.push(next);
        } else {
            code.push(' ');
        }
        rest = &rest[skipped.max(next.len_utf8())..];
    }
    code
}

/// Length of the string literal that `text` starts with.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of the raw string literal that `text` starts with.
fn raw_len(text: &str, end: &str) -> usize {
    let start = 1 + end.len();
    text[start..]
        .find(end)
        .map_or(text.len(), |at| start + at + end.len())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["crypt-core", "crypt-bench", "benches", "fuzz"]
        .map(|name| root().join(name))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            // What cargo builds is beside a manifest; a module may have the same name.
            let built = path.ends_with("target") && folder.join("Cargo.toml").exists();
            if path.is_dir() && !built {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root()).unwrap();
                let path = path.to_str().unwrap().to_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 50, "the walk lost its way: {}", found.len());
    found
}

/// The paths in the section of `ARCHITECTURE.md` with this heading.
fn listed(heading: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let items = section.lines().filter_map(|line| line.strip_prefix("- `"));
    items
        .map(|item| item.split('`').next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<String> = sources()
        .into_iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.path)
        .collect();
    assert_eq!(
        silent,
        Vec::<String>::new(),
        "files that don't open with //!"
    );
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|source| !source.is_test_code())
        .map(|source| (source.without_tests().lines().count(), &source.path))
        .filter(|(lines, _)| *lines > MOST_LINES)
        .map(|(lines, path)| format!("{path}: {lines}"))
        .collect();
    assert_eq!(
        long,
        Vec::<String>::new(),
        "more than {MOST_LINES} lines without tests"
    );
}

#[test]
fn unsafe_code_is_where_it_is_listed_and_forbidden_elsewhere() {
    let sources = sources();
    let found: BTreeSet<String> = sources
        .iter()
        .filter(|source| source.has_unsafe_code())
        .map(|source| source.path.clone())
        .collect();
    assert_eq!(
        found,
        listed("Unsafe code"),
        "found, and listed in ARCHITECTURE.md"
    );
    let silent: Vec<&str> = sources
        .iter()
        .filter(|source| !found.contains(&source.path))
        .filter(|source| !source.text.contains("#![forbid(unsafe_code)]"))
        .map(|source| source.path.as_str())
        .filter(|path| !has_unsafe_below(path, &found))
        .collect();
    assert_eq!(
        silent,
        Vec::<&str>::new(),
        "files that don't forbid unsafe code"
    );
}

/// Whether a module with unsafe code is a descendant of this one, which then can't forbid it.
fn has_unsafe_below(path: &str, found: &BTreeSet<String>) -> bool {
    let folder = path
        .strip_suffix("mod.rs")
        .or_else(|| path.strip_suffix("lib.rs"))
        .unwrap_or(path);
    found.iter().any(|other| other.starts_with(folder))
}

#[test]
fn imports_go_one_way() {
    for (krate, order) in [("crypt-core", CORE_ORDER), ("crypt-bench", BENCH_ORDER)] {
        let rank = |module: &str| order.iter().position(|line| line.contains(&module));
        for source in sources() {
            let Some(inner) = source.path.strip_prefix(&format!("{krate}/src/")) else {
                continue;
            };
            if source.is_test_code() || inner == "testing.rs" {
                continue;
            }
            let own = inner.split('/').next().unwrap().trim_end_matches(".rs");
            let own_rank = rank(own).unwrap_or_else(|| panic!("{own} has no place in the order"));
            for module in imported(source.without_tests()) {
                if let Some(other) = rank(&module) {
                    assert!(
                        other <= own_rank,
                        "{}: must not import {module}",
                        source.path
                    );
                }
            }
        }
    }
}

/// Modules that a text names after `crate::`.
fn imported(text: &str) -> BTreeSet<String> {
    let code = code_of(text);
    let mut modules = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let name = |text: &str| -> String {
            let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
            text.trim_start().chars().take_while(is_name).collect()
        };
        match rest.strip_prefix('{') {
            None => modules.extend([name(rest)]),
            Some(group) => modules.extend(group.split('}').next().unwrap().split(',').map(name)),
        }
    }
    modules
}

#[test]
fn the_checks_see_what_they_look_for() {
    let source = |text: &str| Source {
        path: "x.rs".to_owned(),
        text: text.to_owned(),
    };
    assert!(source("fn f() { unsafe { g() } }").has_unsafe_code());
    let harmless = "// unsafe\n#![forbid(unsafe_code)] \"\\\"\n unsafe\" '\"' r#\"\" unsafe\"#";
    assert!(!source(harmless).has_unsafe_code());
    assert!(source("'\"' unsafe '\"'").has_unsafe_code());
    let imports = imported("use crate::device::x;\nuse crate::{a, b::c};\n// use crate::no;");
    assert_eq!(imports, ["a", "b", "device"].map(str::to_owned).into());
    assert_eq!(
        source("a\n#[cfg(test)]\nmod tests {\n}\n").without_tests(),
        "a"
    );
}

//! What is fuzzed.

#![forbid(unsafe_code)]

pub mod bssplit;
pub mod cipher;
pub mod fio_json;
pub mod jobs;
pub mod machine;
pub mod matrix;
pub mod policy;
pub mod preset;
pub mod quantity;
pub mod results;
pub mod trace;
pub mod verify;

/// A reader with what it is fed.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Reads an input; whether it was accepted.
    ///
    /// # Panics
    /// Where the answer is wrong.
    pub check: fn(&[u8]) -> bool,
    /// Inputs to begin with.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Pieces that its inputs are made of.
    pub pieces: fn() -> Vec<String>,
}

/// The target of a module, which has the three functions.
macro_rules! target {
    ($module:ident) => {
        Target {
            name: stringify!($module),
            check: $module::check,
            corpus: $module::corpus,
            pieces: $module::pieces,
        }
    };
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target!(bssplit),
    target!(cipher),
    target!(fio_json),
    target!(jobs),
    target!(machine),
    target!(matrix),
    target!(policy),
    target!(preset),
    target!(quantity),
    target!(results),
    target!(trace),
    target!(verify),
];

/// Values of TOML and JSON, right and wrong.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1",
    "4096",
    "1.5",
    "1e400",
    "nan",
    "inf",
    "-0.0",
    "true",
    "null",
    "\"\"",
    "\"4k\"",
    "\"1s\"",
    "\"x\"",
    "[]",
    "{}",
    "[1,2,3]",
    "[\"4k\",\"1m\"]",
    "18446744073709551615",
    "9223372036854775807",
    "1979-05-27",
];

/// Signs of TOML and JSON.
const SIGNS: &[&str] = &[
    "[", "]", "{", "}", ",", ":", "=", "\"", "'", "\n", "#", "\\u0000", "\\", "\u{1b}", "é", "\0",
    "\r", ".", "[[", "]]", "\"\"\"", " = ", "-", "e",
];

/// Lines of TOML with these keys, and what else it is made of.
fn toml_pieces(keys: &[&str]) -> Vec<String> {
    let lines = keys.iter().flat_map(|key| {
        VALUES
            .iter()
            .map(move |value| format!("\n{key} = {value}\n"))
    });
    lines.chain(words(VALUES)).chain(words(SIGNS)).collect()
}

/// Members of JSON with these names, and what else it is made of.
fn json_pieces(keys: &[&str]) -> Vec<String> {
    let members = keys.iter().flat_map(|key| {
        VALUES
            .iter()
            .map(move |value| format!("\"{key}\":{value},"))
    });
    members.chain(words(VALUES)).chain(words(SIGNS)).collect()
}

fn words<'a>(words: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    words.iter().map(|word| (*word).to_owned())
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Something is said, and not megabytes of it.
///
/// `input_bytes` may be repeated once.
fn check_message(message: &str, input_bytes: usize) {
    assert!(message.len() > 5, "says little: {message:?}");
    let most = 4000 + 4 * input_bytes;
    assert!(message.len() < most, "says {} bytes", message.len());
}

/// The files of a folder of the repository that end in `suffix`, by name.
fn files(folder: &str, suffix: &str) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(suffix));
    paths.sort();
    let read = paths
        .into_iter()
        .filter_map(|path| std::fs::read(path).ok());
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_pieces_and_a_way_in_for_libfuzzer() {
        let manifest = include_str!("../../Cargo.toml");
        for target in TARGETS {
            let corpus = (target.corpus)();
            assert!(
                corpus.iter().any(|input| (target.check)(input)),
                "{}",
                target.name
            );
            assert!((target.pieces)().len() > 10, "{}", target.name);
            let path = format!("fuzz_targets/{}.rs", target.name);
            assert!(manifest.contains(&path), "{path} in Cargo.toml");
            let text = std::fs::read_to_string(
                std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&path),
            );
            assert!(
                text.is_ok_and(|text| text.contains(&format!("targets::{}::check", target.name))),
                "{path}"
            );
        }
    }
}

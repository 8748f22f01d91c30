//! Runs the real program in a folder of its own, and reads what it wrote.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crypt_bench::manifest::Manifest;
use crypt_bench::result::ResultRecord;
use serde_json::Value;

/// A folder to run in; everything the program may write is below it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with these arguments, separated by spaces.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crypt-bench"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the program, which must succeed; its standard output.
    pub(crate) fn succeed(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Measures for longer and longer until the records are enough: how much gets done in a time is
    /// up to the machine and its other work.
    pub(crate) fn measure(
        &self,
        arguments: &str,
        enough: impl Fn(&[ResultRecord]) -> bool,
    ) -> Vec<ResultRecord> {
        for runtime in ["20ms", "300ms", "3s", "20s"] {
            let out = format!("results-{runtime}");
            self.succeed(&format!("{arguments} --runtime {runtime} --out {out}"));
            let records = self.records(&out);
            if enough(&records) {
                return records;
            }
        }
        panic!("{arguments}: not enough done in 20 seconds");
    }

    /// Everything in the folder, relative to it.
    pub(crate) fn content(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        walk(self.folder.path(), self.folder.path(), &mut found);
        found
    }

    pub(crate) fn manifest(&self, folder: &str) -> Manifest {
        serde_json::from_str(&self.read(folder, "manifest.json")).unwrap()
    }

    pub(crate) fn records(&self, folder: &str) -> Vec<ResultRecord> {
        self.read(folder, "results.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// A document that the program or another one wrote.
    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }

    pub(crate) fn read(&self, folder: &str, name: &str) -> String {
        fs::read_to_string(self.path(folder).join(name)).unwrap()
    }
}

fn walk(root: &Path, folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.insert(path.strip_prefix(root).unwrap().to_owned());
        if path.is_dir() {
            walk(root, &path, found);
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Checks every value against a published schema.
pub(crate) fn assert_schema(name: &str, values: impl IntoIterator<Item = Value>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("schema")
        .join(name);
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut checked = 0;
    for value in values {
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        checked += 1;
    }
    assert!(checked > 0, "nothing to check");
}

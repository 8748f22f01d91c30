//! The job files of `tests/jobs`, and surroundings to read them in.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, Cursor};
use std::path::PathBuf;

use crypt_bench::jobfile::Surroundings;

/// Variables that the job files use.
pub(crate) const VARIABLES: [(&str, &str); 2] = [("JOB_SIZE", "1m"), ("JOB_BLOCK", "8")];

/// Folder of the job files.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/jobs")
}

/// Names of the job files, sorted.
pub(crate) fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".fio"))
        .collect();
    names.sort();
    assert!(names.len() >= 40, "the job files are gone: {}", names.len());
    names
}

/// The folder, with some files replaced.
#[derive(Default)]
pub(crate) struct Folder {
    pub(crate) replaced: HashMap<String, String>,
}

impl Surroundings for Folder {
    fn read(&self, path: &str) -> Result<String, String> {
        if let Some(text) = self.replaced.get(path) {
            return Ok(text.clone());
        }
        // Mutated names must not lead out of the folder, or to a device.
        let inside = !path.starts_with('/') && !path.contains("..");
        let path = folder().join(path);
        if !inside || !path.is_file() {
            return Err("no such file".to_owned());
        }
        fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn lines(&self, path: &str) -> Result<Box<dyn BufRead>, String> {
        self.read(path)
            .map(|text| Box::new(Cursor::new(text)) as Box<dyn BufRead>)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = VARIABLES.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn keyword(&self, name: &str) -> Option<u64> {
        match name {
            "pagesize" => Some(4096),
            "ncpus" => std::thread::available_parallelism()
                .ok()
                .map(|cpus| cpus.get() as u64),
            _ => Some(1000),
        }
    }
}

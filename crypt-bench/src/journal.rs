//! The results folder on disk: `results.jsonl`, which only grows, and `manifest.json`, which is
//! replaced atomically.
//!
//! A record is on disk, synced, before the next measurement starts. Its last field is a mark, the
//! hash of everything before it: a line without a fitting mark (torn by a crash) does not exist. The
//! runs of all policies in one repeat of a cell belong together; on resuming, a repeat with some of
//! them missing is thrown away and measured again, so that what is compared was measured
//! interleaved. Nothing outside the folder is touched.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::host::hex;
use crate::input;
use crate::manifest::Manifest;
use crate::result::{CellParams, ResultRecord};

/// Name of the file with one record per line.
pub const RESULTS: &str = "results.jsonl";
/// Name of the file that describes them.
pub const MANIFEST: &str = "manifest.json";

/// How a marked line ends, before the hash.
const MARK_KEY: &str = "\"mark\":\"";

/// An open results folder.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    results: File,
    /// Whether the folder was not there before.
    made: bool,
}

impl Journal {
    /// Starts a new folder, which may exist if it is empty.
    ///
    /// # Errors
    /// Where the folder can't be made or written, or has something in it.
    pub fn create(folder: &Path, manifest: &Manifest) -> io::Result<Self> {
        let made = !folder.exists();
        fs::create_dir_all(folder)?;
        if fs::read_dir(folder)?.next().is_some() {
            let message = "has files in it already; give another --out, or --resume to continue";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let results = append_to(&folder.join(RESULTS))?;
        let journal = Self {
            folder: folder.to_owned(),
            results,
            made,
        };
        journal.write_manifest(manifest)?;
        Ok(journal)
    }

    /// Opens a folder to go on with it, leaving only whole repeats of `plan` in it. Returns their
    /// records in order.
    ///
    /// # Errors
    /// Where the folder can't be read or written.
    pub fn resume(folder: &Path, plan: &[CellParams]) -> io::Result<(Self, Vec<ResultRecord>)> {
        let path = folder.join(RESULTS);
        // Held until the file is replaced and the new one is locked.
        let lock = append_to(&path)?;
        // A crash can cut a character in two.
        let bytes = fs::read(&path)?;
        let text = String::from_utf8_lossy(&bytes);
        let records = whole_repeats(parse(&text), plan);
        let kept: String = records.iter().map(|record| seal(record).1 + "\n").collect();
        let results = if kept.as_bytes() == bytes {
            lock
        } else {
            replace(&path, kept.as_bytes())?;
            append_to(&path)?
        };
        let journal = Self {
            folder: folder.to_owned(),
            results,
            made: false,
        };
        Ok((journal, records))
    }

    /// Marks a record as finished and puts it on disk; when this returns, it is there. The mark is
    /// stored in `record`.
    ///
    /// # Errors
    /// Where the disk refuses it; the folder is then as if the record had not been.
    pub fn append(&mut self, record: &mut ResultRecord) -> io::Result<()> {
        let (mark, line) = seal(record);
        record.mark = mark;
        self.results.write_all(format!("{line}\n").as_bytes())?;
        self.results.sync_data()
    }

    /// The same with many records at once.
    ///
    /// # Errors
    /// Where the disk refuses them.
    pub fn fill(&mut self, records: &mut [ResultRecord]) -> io::Result<()> {
        let mut out = BufWriter::new(&self.results);
        for record in records {
            let (mark, line) = seal(record);
            record.mark = mark;
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        drop(out);
        self.results.sync_data()
    }

    /// Takes back [`Journal::create`] where the run could not begin: removes the two files, and the
    /// folder if it made it. Failing to is no harm.
    pub fn abandon(&self) {
        for name in [RESULTS, MANIFEST] {
            drop(fs::remove_file(self.folder.join(name)));
        }
        if self.made {
            drop(fs::remove_dir(&self.folder));
        }
    }

    /// Replaces the manifest atomically.
    ///
    /// # Errors
    /// Where the disk refuses it; the old manifest is then still there.
    pub fn write_manifest(&self, manifest: &Manifest) -> io::Result<()> {
        let text = serde_json::to_string_pretty(manifest)? + "\n";
        replace(&self.folder.join(MANIFEST), text.as_bytes())
    }

    /// Writes a file that can be made again from the results, atomically.
    ///
    /// # Errors
    /// Where the disk refuses it.
    pub fn write_rendering(&self, name: &str, text: &str) -> io::Result<()> {
        replace(&self.folder.join(name), text.as_bytes())
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Reads the manifest of a folder.
///
/// # Errors
/// A missing or broken file, in words.
pub fn read_manifest(folder: &Path) -> Result<Manifest, String> {
    let path = folder.join(MANIFEST);
    let text = input::text(&path, input::MOST_BYTES);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The records with a fitting mark.
fn parse(text: &str) -> Vec<ResultRecord> {
    text.lines()
        .filter(|line| is_sealed(line))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The mark of a record, and the line that carries it.
pub(crate) fn seal(record: &ResultRecord) -> (String, String) {
    let unmarked = ResultRecord {
        mark: String::new(),
        ..record.clone()
    };
    let text = serde_json::to_string(&unmarked)
        .unwrap_or_else(|error| unreachable!("plain data: {error}"));
    // The mark is the last field: `..."mark":""}`.
    let body = &text[..text.len() - 2];
    let mark = hex(&Sha256::digest(body.as_bytes()));
    let line = format!("{body}{mark}\"}}");
    (mark, line)
}

/// Whether a line carries a fitting mark.
pub(crate) fn is_sealed(line: &str) -> bool {
    let Some((body, mark)) = line.strip_suffix("\"}").and_then(|line| {
        let at = line.rfind(MARK_KEY)? + MARK_KEY.len();
        line.split_at_checked(at)
    }) else {
        return false;
    };
    hex(&Sha256::digest(body.as_bytes())) == mark
}

/// Leaves out repeats in which a policy of the plan is missing, records that are not in the plan,
/// and second ones of the same run.
fn whole_repeats(records: Vec<ResultRecord>, plan: &[CellParams]) -> Vec<ResultRecord> {
    let mut policies: HashMap<CellParams, Vec<&str>> = HashMap::new();
    for cell in plan {
        policies
            .entry(cell.without_policy())
            .or_default()
            .push(&cell.policy);
    }
    let mut found: HashMap<(CellParams, u32), Vec<String>> = HashMap::new();
    let mut known = Vec::with_capacity(records.len());
    for record in records {
        let group = record.cell.without_policy();
        let wanted = policies
            .get(&group)
            .is_some_and(|policies| policies.contains(&record.cell.policy.as_str()));
        let seen = found.entry((group, record.repeat)).or_default();
        if wanted && !seen.contains(&record.cell.policy) {
            seen.push(record.cell.policy.clone());
            known.push(record);
        }
    }
    known.retain(|record| {
        let group = record.cell.without_policy();
        let wanted = policies.get(&group).map_or(0, Vec::len);
        let seen = found.get(&(group, record.repeat));
        seen.is_some_and(|seen| seen.len() == wanted)
    });
    known
}

/// Opens the results to add to them; no other run may have them open like this.
fn append_to(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    file.try_lock()
        .map_err(|_| io::Error::other("another run is writing there"))?;
    sync_folder(path)?;
    Ok(file)
}

/// Puts `bytes` in the place of a file: either the old content is there or the new, whatever happens.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |out| out.write_all(bytes))
}

/// The same with what `write` writes.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = stage(path)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// An empty file beside `path`, to take its place. It is removed if it does not.
pub(crate) fn stage(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(|error| in_folder(folder, &error))
}

/// What the user has to know of a file that could not be made: its folder, not the name that it had for a moment.
fn in_folder(folder: &Path, error: &io::Error) -> io::Error {
    let kind = error.kind();
    let shown = folder.display();
    io::Error::new(
        kind,
        match kind {
            io::ErrorKind::NotFound if !folder.exists() => {
                format!("there is no folder {shown}; make it first")
            }
            io::ErrorKind::NotADirectory => format!("{shown} is not a folder"),
            _ => format!("nothing can be written in the folder {shown}: {kind}"),
        },
    )
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, manifest, record};

    fn read_results(folder: &Path) -> Vec<ResultRecord> {
        parse(&fs::read_to_string(folder.join(RESULTS)).unwrap())
    }

    use proptest::prelude::*;

    /// Two cells, two policies, two repeats, interleaved.
    fn records() -> Vec<ResultRecord> {
        let mut records = Vec::new();
        for block in [4096, 8192] {
            for repeat in 1..=2 {
                for policy in ["inline", "adaptive"] {
                    records.push(record(cell(policy, block, 4), repeat, 1e9));
                }
            }
        }
        records
    }

    fn written(folder: &Path) -> (Vec<CellParams>, Vec<ResultRecord>) {
        let mut records = records();
        let manifest = manifest(&records);
        let mut journal = Journal::create(folder, &manifest).unwrap();
        for record in &mut records {
            journal.append(record).unwrap();
        }
        (manifest.plan, records)
    }

    #[test]
    fn what_is_appended_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let (_, records) = written(folder.path());
        assert_eq!(read_results(folder.path()), records);
        assert_eq!(read_manifest(folder.path()).unwrap(), manifest(&records));
    }

    #[test]
    fn a_folder_with_files_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes"), "mine").unwrap();
        let error = Journal::create(folder.path(), &manifest(&records())).unwrap_err();
        assert!(error.to_string().contains("--resume"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_changed_figure_does_not_fit_its_mark() {
        let (_, line) = seal(&records()[0]);
        assert!(is_sealed(&line));
        assert!(!is_sealed(&line.replace("\"depth\":4", "\"depth\":5")));
        assert!(!is_sealed("") && !is_sealed("{}") && !is_sealed("\"mark\":\"\"}"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn cut_anywhere_only_whole_repeats_survive(cut in 0.0..=1.0) {
            let folder = tempfile::tempdir().unwrap();
            let (plan, records) = written(folder.path());
            let path = folder.path().join(RESULTS);
            let bytes = fs::read(&path).unwrap();
            let cut = (bytes.len() as f64 * cut) as usize;
            fs::write(&path, &bytes[..cut]).unwrap();
            let lines = bytes[..cut].iter().filter(|&&byte| byte == b'\n').count();
            // The cut may fall just before a line's end, where the record is whole all the same.
            let whole = bytes.get(cut) == Some(&b'\n');
            let expected = (lines + usize::from(whole)) / 2 * 2;
            let (mut journal, kept) = Journal::resume(folder.path(), &plan).unwrap();
            prop_assert_eq!(&kept[..], &records[..expected]);
            for record in &mut records.clone()[expected..] {
                journal.append(record).unwrap();
            }
            prop_assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }
}

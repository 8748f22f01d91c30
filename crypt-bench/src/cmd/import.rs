//! `crypt-bench import FILE...`: fio's JSON as a results folder, for `report`.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cell;
use crate::cli::{Failure, Outcome};
use crate::definition::device::DeviceSpec;
use crate::definition::quantity::Size;
use crate::doubt::Doubt;
use crate::fio::asked::Said;
use crate::fio::{import, read};
use crate::host;
use crate::input;
use crate::journal::Journal;
use crate::manifest::{Environment, Manifest, State, Tool};
use crate::progress::say;
use crate::result::{CellParams, ResultRecord, SCHEMA_VERSION};

/// What `--help` says after the options.
const EXAMPLES: &str = "\
Examples:
  fio job.fio --output-format=json+ --lat_percentiles=1 --output=dm-crypt.json
  crypt-bench import dm-crypt.json --policy dm-crypt-default --cipher aes-xts-plain64 --out reports/fio
  crypt-bench import raw=raw.json default=a1.json default=a2.json no_workqueue=b1.json no_workqueue=b2.json \\
      --device file:/dev/nvme0n1 --cipher aes-xts-plain64 --key-bits 512 --sector-size 512 --out reports/fio
  crypt-bench report reports/fio

A record is made of each job, copies (numjobs) together; the same cell again, in the same file or in another, is
its next repeat. A group that fio reported as one (group_reporting) is taken for copies of its first job, which is
all that the file says of it. What a file does not say is a doubt beside the figures.";

/// Read fio's JSON into a results folder
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files that fio wrote with --output-format json or json+, or that `run` or `export` did; with the name of
    /// the policy that was measured, if they differ in it
    #[arg(required = true, value_name = "[POLICY=]FILE")]
    pub files: Vec<String>,

    /// Folder to make, for results.jsonl and manifest.json
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Policy of the files without one; `raw` for no encryption [default: the job's crypt_policy]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,

    /// Device as `matrix` names it [default: file:FILENAME of the job, null with its null engine]
    #[arg(long, value_parser = parse_device)]
    pub device: Option<String>,

    /// Cipher in dm-crypt's notation [default: the job's crypt_cipher]
    #[arg(long)]
    pub cipher: Option<String>,

    /// Bits of the volume key
    #[arg(long, value_name = "BITS")]
    pub key_bits: Option<u32>,

    /// Unit of one IV [default: the job's crypt_sector_size]
    #[arg(long, value_parser = parse_sector)]
    pub sector_size: Option<u32>,

    /// The files were measured on this machine: describe it in the manifest
    #[arg(long)]
    pub here: bool,
}

/// Runs the subcommand. Nothing is written unless all files are understood.
///
/// # Errors
/// A file that can't be read or is not fio's JSON, jobs that no cell describes, and a folder that is not new.
pub fn run(args: &Args) -> Outcome {
    let mut records = Vec::new();
    for file in &args.files {
        records.extend(read_file(args, file)?);
    }
    number(&mut records)?;
    let tool = host::tool().map_err(|error| Failure::internal(format!("this program: {error}")))?;
    let environment = if args.here {
        host::environment()
    } else {
        Environment::default()
    };
    for record in &mut records {
        record.cell_hash = cell::cell_hash(&record.cell, &tool, &environment);
    }
    let manifest = manifest(&records, tool, environment);
    write(&args.out, &manifest, &mut records)?;
    say(format_args!(
        "wrote {} records to {}",
        records.len(),
        args.out.display()
    ));
    Ok(())
}

fn read_file(args: &Args, file: &str) -> Outcome<Vec<ResultRecord>> {
    let (policy, path) = match file.split_once('=') {
        Some((policy, path)) if !Path::new(file).exists() => (Some(policy.to_owned()), path),
        _ => (args.policy.clone(), file),
    };
    if policy.as_ref().is_some_and(String::is_empty) {
        return Err(Failure::usage(format!(
            "{file}: write POLICY=FILE, or --policy NAME"
        )));
    }
    let text = input::text(Path::new(path), input::MOST_BYTES);
    let text = text.map_err(|why| Failure::usage(format!("{path}: {why}")))?;
    let document = read::document(&text).map_err(|trouble| {
        Failure::usage(format!(
            "{path}:{}:{}: {}",
            trouble.line, trouble.column, trouble.why
        ))
    })?;
    let said = Said {
        policy,
        device: args.device.clone(),
        cipher: args.cipher.clone(),
        key_bits: args.key_bits,
        sector_size_bytes: args.sector_size,
    };
    import::records(&document, &said).map_err(|why| Failure::usage(format!("{path}: {why}")))
}

/// Numbers the repeats of each cell, and the records over all.
fn number(records: &mut [ResultRecord]) -> Outcome {
    let mut seen: BTreeMap<CellParams, (u32, Vec<String>)> = BTreeMap::new();
    for (sequence, record) in records.iter_mut().enumerate() {
        let others = other_options(record);
        let (repeats, first) = seen
            .entry(record.cell.clone())
            .or_insert_with(|| (0, others.clone()));
        if *first != others {
            return Err(Failure::usage(format!(
                "two jobs are alike but for options that a cell does not hold ({} and {}): import them into folders \
                 of their own",
                listed(first),
                listed(&others)
            )));
        }
        *repeats += 1;
        record.repeat = *repeats;
        record.sequence = sequence as u64;
    }
    Ok(())
}

fn other_options(record: &ResultRecord) -> Vec<String> {
    let options = record.doubts.iter().find_map(|doubt| match doubt {
        Doubt::OtherOptions { options } => Some(options.clone()),
        _ => None,
    });
    options.unwrap_or_default()
}

fn listed(options: &[String]) -> String {
    if options.is_empty() {
        "none".to_owned()
    } else {
        options.join(" ")
    }
}

fn manifest(records: &[ResultRecord], tool: Tool, environment: Environment) -> Manifest {
    let mut plan: Vec<CellParams> = Vec::new();
    for record in records.iter().filter(|record| record.repeat == 1) {
        plan.push(record.cell.clone());
    }
    let repeats = records
        .iter()
        .map(|record| record.repeat)
        .max()
        .unwrap_or(1);
    let now = jiff::Timestamp::now().to_string();
    Manifest {
        schema_version: SCHEMA_VERSION,
        plan_hash: cell::plan_hash(&plan, repeats, &tool, &environment),
        tool,
        environment,
        command_line: host::command_line(),
        definition_toml: String::new(),
        preset: None,
        created_files: Vec::new(),
        started: now.clone(),
        finished: Some(now),
        state: State::Complete,
        plan,
        repeats,
    }
}

fn write(folder: &Path, manifest: &Manifest, records: &mut [ResultRecord]) -> Outcome {
    let failed = |error: std::io::Error| Failure::usage(format!("{}: {error}", folder.display()));
    // Killed on the way, it is a folder that says that it is not whole.
    let begun = Manifest {
        state: State::Running,
        finished: None,
        ..manifest.clone()
    };
    let mut journal = Journal::create(folder, &begun).map_err(failed)?;
    for record in records {
        if let Err(error) = journal.append(record) {
            journal.abandon();
            return Err(failed(error));
        }
    }
    journal.write_manifest(manifest).map_err(failed)
}

fn parse_device(text: &str) -> Result<String, String> {
    text.parse::<DeviceSpec>().map(|_| text.to_owned())
}

fn parse_sector(text: &str) -> Result<u32, String> {
    let Size(bytes) = text.parse()?;
    match bytes {
        512 | 1024 | 2048 | 4096 => Ok(bytes as u32),
        _ => Err("one of 512, 1k, 2k and 4k".to_owned()),
    }
}

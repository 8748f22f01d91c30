//! Our reading of every job file against fio's: the options of each section as `--showcmd` prints
//! them, and the numbers that fio's parser takes out of each value (`--debug=parse`).

#![forbid(unsafe_code)]

use std::process::Command;

use crypt_bench::jobfile::source::Section;
use crypt_bench::jobfile::value::{self, Share, Units, Value};
use crypt_bench::jobfile::{self, catalog, expand, source};

use crate::common::{Folder, VARIABLES, folder, names};

/// Runs fio in the folder of job files; `None` where it is not installed.
fn fio(arguments: &[&str]) -> Option<String> {
    let output = Command::new("fio")
        .args(arguments)
        .current_dir(folder())
        .envs(VARIABLES)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    Some(text)
}

/// Whether fio is there, knows these options, and was built with its debug output.
fn fio_is_here() -> bool {
    let Some(text) = fio(&["--debug=parse", "--parse-only", "01-minimal.fio"]) else {
        println!("skipped: fio is not installed");
        return false;
    };
    if !text.contains("handle_option=") {
        println!("skipped: this fio does not say what it parses");
        return false;
    }
    true
}

/// Job files that fio can understand: those without options of our own, which it does not have.
fn shared_names() -> Vec<String> {
    let (shared, own): (Vec<String>, Vec<String>) = names().into_iter().partition(|name| {
        let sections = source::read(name, &Folder::default()).unwrap();
        let mut lines = sections.iter().flat_map(|section| &section.lines);
        !lines.any(|line| line.name.starts_with("crypt_"))
    });
    for name in &own {
        println!("skipped: {name}: fio has no crypt_ options");
    }
    assert_eq!(own, ["70-crypt.fio"]);
    shared
}

/// An option with its value, variables replaced.
type Pair = (String, Option<String>);

fn pairs(section: &Section) -> Vec<Pair> {
    let mut pairs: Vec<(i32, Pair)> = section
        .lines
        .iter()
        .map(|line| {
            let name = catalog::find(&line.name).unwrap().name;
            let text = line.value.as_deref();
            let text = text.map(|text| expand::expand(text, &Folder::default()).unwrap());
            (priority(name), (name.to_owned(), text))
        })
        .collect();
    pairs.sort_by_key(|(priority, _)| *priority);
    pairs.into_iter().map(|(_, pair)| pair).collect()
}

/// fio takes some options before, some after the others.
fn priority(name: &str) -> i32 {
    match name {
        "kb_base" | "cpus_allowed_policy" => -1,
        "filename" | "filename_format" => 1,
        // Options of engines come after all others.
        "hipri" => 2,
        _ => 0,
    }
}

/// A command line as `--showcmd` makes it; every `[global]` repeats those before it.
fn command(sections: &[Section]) -> Vec<String> {
    let mut globals = Vec::new();
    let mut words = Vec::new();
    for section in sections {
        let own = pairs(section);
        if section.is_global() {
            globals.extend(own);
            words.extend(globals.iter().map(word));
        } else {
            words.push(format!("name={}", section.name));
            words.extend(own.iter().map(word));
        }
    }
    words
}

fn word((name, text): &Pair) -> String {
    let text = text.as_ref().map(|text| text.replace('"', ""));
    match text {
        Some(text) => format!("{name}={text}"),
        None => name.clone(),
    }
}

fn shown(output: &str) -> Vec<String> {
    let words = output.trim().split(" --").skip(1);
    words
        .map(|word| word.trim().replace('"', "").replacen("= ", "=", 1))
        .collect()
}

/// Options that fio's parser handled, with the numbers it took.
fn parsed(output: &str) -> Vec<(Pair, Vec<u64>)> {
    let mut options: Vec<(Pair, Vec<u64>)> = Vec::new();
    for line in output.lines() {
        let line = line
            .trim_start_matches("parse")
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start();
        if let Some(rest) = line.strip_prefix("handle_option=") {
            let (name, text) = rest.split_once(", ptr=").unwrap();
            let text = (text != "(null)").then(|| text.trim().to_owned());
            options.push(((name.to_owned(), text), Vec::new()));
        } else if let Some(number) = line.strip_prefix("ret=0, out=") {
            options.last_mut().unwrap().1.push(number.parse().unwrap());
        }
    }
    options
}

/// The numbers that a value holds, in the order in which they are written.
fn numbers(text: Option<&str>, value: &Value) -> Vec<u64> {
    match value {
        Value::Flag(flag) => vec![u64::from(*flag)],
        Value::Number(number) => vec![*number],
        Value::Share(Share::Bytes(bytes)) => vec![*bytes],
        Value::Share(Share::Percent(percent)) => vec![u64::MAX - percent],
        Value::TimeUs(from, to) if from == to => vec![*from],
        Value::TimeUs(from, to) => vec![*from, *to],
        Value::Numbers(numbers) => {
            let parts = text.unwrap_or_default().split(',').zip(numbers);
            parts
                .filter(|(part, _)| !part.is_empty())
                .filter_map(|(_, number)| *number)
                .collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn the_options_of_every_section_are_those_that_fio_sees() {
    if !fio_is_here() {
        return;
    }
    for name in shared_names() {
        let output = fio(&["--parse-only", "--showcmd", &name]).unwrap();
        let sections = source::read(&name, &Folder::default()).unwrap();
        assert_eq!(command(&sections), shown(&output), "{name}");
    }
}

/// fio parses options of engines apart from the others, together with their defaults.
fn is_of_engine(name: &str) -> bool {
    name == "hipri" || catalog::find(name).is_err()
}

#[test]
fn every_number_is_the_one_that_fio_reads() {
    if !fio_is_here() {
        return;
    }
    let mut compared = 0;
    for name in shared_names() {
        let output = fio(&["--debug=parse", "--parse-only", &name]).unwrap();
        let mut theirs = parsed(&output)
            .into_iter()
            .filter(|((name, _), _)| !is_of_engine(name));
        for section in source::read(&name, &Folder::default()).unwrap() {
            let mut pairs = pairs(&section);
            pairs.retain(|(name, _)| !is_of_engine(name));
            let units = Units {
                decimal: pairs.contains(&("kb_base".to_owned(), Some("1000".to_owned()))),
            };
            for pair in pairs {
                let (their_pair, their_numbers) = theirs.next().unwrap();
                assert_eq!(pair, their_pair, "{name}");
                let info = catalog::find(&pair.0).unwrap();
                let value = value::parse(info.kind, pair.1.as_deref(), units).unwrap();
                let ours = numbers(pair.1.as_deref(), &value);
                if !ours.is_empty() {
                    assert_eq!(ours, their_numbers, "{name}: {pair:?}");
                    compared += 1;
                }
            }
        }
        assert_eq!(theirs.next(), None, "{name}");
    }
    assert!(compared > 150, "{compared} values compared");
}

#[test]
fn every_job_file_is_understood_as_a_whole() {
    for name in names() {
        let jobs = jobfile::load(std::slice::from_ref(&name), &[], &Folder::default());
        let jobs = jobs.unwrap_or_else(|refusal| panic!("{refusal}"));
        let plan = jobfile::place::Plan::new(jobs, &|_| Ok(None));
        plan.unwrap_or_else(|refusal| panic!("{refusal}"));
    }
}

#[test]
fn every_option_of_fio_is_known_if_only_to_refuse_it() {
    let Some(general) = fio(&["--cmdhelp"]) else {
        println!("skipped: fio is not installed");
        return;
    };
    let engines = fio(&["--enghelp"]).unwrap_or_default();
    let engines = engines.lines().skip(1).map(str::trim);
    let of_engines = engines.filter_map(|engine| fio_or_nothing(&format!("--enghelp={engine}")));
    let help: String = std::iter::once(general).chain(of_engines).collect();
    let names = help
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let names =
        names.filter_map(|line| Some(line.split_whitespace().next()?.trim_end_matches(':')));
    let unknown: Vec<&str> = names
        .filter(|name| catalog::find(name).is_err_and(|error| error.contains("is not an option")))
        .collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

/// An engine that is listed may still not load.
fn fio_or_nothing(argument: &str) -> Option<String> {
    let output = Command::new("fio").arg(argument).output().ok()?;
    String::from_utf8(output.stdout).ok()
}

#[test]
fn every_option_that_is_supported_is_in_a_job_file() {
    let mut used = std::collections::HashSet::new();
    for name in names() {
        for section in source::read(&name, &Folder::default()).unwrap() {
            let names = section.lines.iter().map(|line| catalog::find(&line.name));
            used.extend(names.map(|info| info.unwrap().name));
        }
    }
    let missing: Vec<&str> = catalog::OPTIONS
        .iter()
        .map(|info| info.name)
        .filter(|name| !used.contains(name))
        .collect();
    assert_eq!(
        missing,
        Vec::<&str>::new(),
        "write a job file for them in tests/jobs"
    );
}

//! The files of a job: their names, in which order they have their turns, and how large each is to be. Pure.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use super::Refusal;
use super::job::Job;
use crate::generate::{Random, Service, ServiceOrder};

/// Seed of sizes that are drawn, without `randseed`.
const DEFAULT_SEED: u64 = 0x5eed_f11e;

/// The files of a copy of a job, in order, each once. Files without a name have fio's: `job.copy.file`.
///
/// # Errors
/// A name that stands twice, a number of files that is not that of the names, a format that is not understood.
pub(super) fn paths(job: &Job, number: u32) -> Result<Vec<PathBuf>, Refusal> {
    let settings = &job.settings;
    let folders = settings.text("directory").map(split).unwrap_or_default();
    let given = settings.text("filename").map(split);
    // fio's copies share files that have a name, and so the first folder.
    let folder = match (&given, folders.len()) {
        (_, 0) => None,
        (Some(_), _) => folders.first(),
        (None, count) => folders.get(number as usize % count),
    };
    let names = match given {
        Some(names) => names,
        None => made(job, number)?,
    };
    let count = settings.number("nrfiles").unwrap_or(1);
    if settings.text("filename").is_some() && count > 1 && count != names.len() as u64 {
        let message = format!(
            "nrfiles={count}: filename names {} of them; remove one of the two",
            names.len()
        );
        return Err(job.refuse("nrfiles", message));
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let option = match settings.find("filename") {
            Some(_) => "filename",
            None => "filename_format",
        };
        let message = format!("{option}: {} stands for more than one file", twice[0]);
        return Err(job.refuse(option, message));
    }
    let path = |name: String| match folder {
        Some(folder) => PathBuf::from(folder).join(name.trim_start_matches('/')),
        None => PathBuf::from(name),
    };
    Ok(names.into_iter().map(path).collect())
}

/// Names that are made: by `filename_format` where there is one.
fn made(job: &Job, number: u32) -> Result<Vec<String>, Refusal> {
    let format = job.settings.text("filename_format");
    let format = format.unwrap_or("$jobname.$jobnum.$filenum");
    let count = job.settings.number("nrfiles").unwrap_or(1);
    let names = (0..count).map(|file| {
        format
            .replace("$jobname", &job.name)
            .replace("$jobnum", &number.to_string())
            .replace("$filenum", &file.to_string())
    });
    let names: Vec<String> = names.collect();
    match names.iter().find(|name| name.contains('$')) {
        None => Ok(names),
        Some(_) => Err(job.refuse(
            "filename_format",
            "filename_format: write it with $jobname, $jobnum and $filenum",
        )),
    }
}

/// A `:` separates names, `\:` is part of one.
fn split(names: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    let mut chars = names.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(':')) => {
                chars.next();
                push(&mut list, ':');
            }
            (':', _) => list.push(String::new()),
            _ => push(&mut list, c),
        }
    }
    list.retain(|name| !name.is_empty());
    list
}

fn push(list: &mut [String], c: char) {
    if let Some(name) = list.last_mut() {
        name.push(c);
    }
}

/// `file_service_type` and `openfiles`.
///
/// # Errors
/// What is not understood.
pub(super) fn service(job: &Job) -> Result<Service, Refusal> {
    let text = job
        .settings
        .text("file_service_type")
        .unwrap_or("roundrobin");
    let (name, run) = text.split_once(':').unwrap_or((text, "1"));
    let refuse = |message: String| {
        let message = format!("file_service_type={text}: {message}");
        job.refuse("file_service_type", message)
    };
    let order = match name {
        "random" => ServiceOrder::Random,
        "roundrobin" => ServiceOrder::RoundRobin,
        "sequential" => ServiceOrder::Sequential,
        "zipf" | "pareto" | "normal" | "gauss" => {
            let message = "files with a distribution are not supported; use random";
            return Err(refuse(message.to_owned()));
        }
        _ => return Err(refuse("use random, roundrobin or sequential".to_owned())),
    };
    let run_ios = run.parse().ok().filter(|ios| (1..=1 << 32).contains(ios));
    let open_files = job.settings.number("openfiles");
    Ok(Service {
        order,
        run_ios: run_ios
            .ok_or_else(|| refuse("write a number of requests after the `:`".to_owned()))?,
        open_files: open_files.map_or(usize::MAX, |files| files as usize),
    })
}

/// How large a file is to be by `filesize`: out of a range, what it is where that fits, else a size that is drawn,
/// the same one in every run.
pub(super) fn wanted_bytes(
    job: &Job,
    number: u32,
    file: usize,
    existing: Option<u64>,
) -> Option<u64> {
    let (from, to) = job.settings.range("filesize")?;
    if let Some(bytes) = existing.filter(|bytes| (from..=to).contains(bytes)) {
        return Some(bytes);
    }
    if from == to {
        return Some(from);
    }
    let seed = job.settings.number("randseed").unwrap_or(DEFAULT_SEED);
    let which = u64::from(number) << 32 | file as u64;
    let mut random = Random::new(seed ^ which.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let drawn = from + random.below_u64((to - from).saturating_add(1));
    let whole = drawn - drawn % job.smallest_bytes().max(1);
    Some(whole.max(from))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn load(options: &str) -> Result<Job, Refusal> {
        let fake = Fake::default().file("a.fio", &format!("[a]\n{options}\n"));
        super::super::load(&["a.fio".to_owned()], &[], &fake).map(|mut jobs| jobs.remove(0))
    }

    fn job(options: &str) -> Job {
        load(options).unwrap()
    }

    #[test]
    fn names_are_those_of_fio() {
        for (options, number, expected) in [
            ("", 1, "a.1.0"),
            ("nrfiles=2\ndirectory=x", 0, "x/a.0.0 x/a.0.1"),
            ("nrfiles=2\ndirectory=x:y", 1, "y/a.1.0 y/a.1.1"),
            ("directory=x:y", 2, "x/a.2.0"),
            ("filename=q:w\ndirectory=x:y", 1, "x/q x/w"),
            ("filename=/q:w\\:1:", 0, "/q w:1"),
            ("filename=q:w\nnrfiles=2", 0, "q w"),
            (
                "filename_format=$jobname-$jobnum/$filenum\nnrfiles=2",
                3,
                "a-3/0 a-3/1",
            ),
        ] {
            let paths = paths(&job(options), number).unwrap();
            let paths: Vec<_> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            assert_eq!(paths.join(" "), expected, "{options}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (options, reason) in [
            (
                "filename=q:w\nnrfiles=3",
                "a.fio:3: nrfiles=3: filename names 2",
            ),
            (
                "filename=q:w:q",
                "a.fio:2: filename: q stands for more than one",
            ),
            (
                "filename_format=x\nnrfiles=2",
                "a.fio:2: filename_format: x stands",
            ),
            ("filename_format=$clientuid", "write it with $jobname"),
        ] {
            let refusal = paths(&job(options), 0).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
        for (value, reason) in [
            ("zipf:1.2", "files with a distribution"),
            ("roundrobin:0", "a number of requests"),
            ("random:x", "a number of requests"),
            ("any", "use random, roundrobin"),
        ] {
            let refusal = load(&format!("file_service_type={value}")).unwrap_err();
            let refusal = refusal.to_string();
            assert!(refusal.contains(reason), "{value}: {refusal}");
        }
        let service = service(&job("file_service_type=random:8\nopenfiles=3")).unwrap();
        assert_eq!(
            (service.order, service.run_ios, service.open_files),
            (ServiceOrder::Random, 8, 3)
        );
    }

    #[test]
    fn sizes_are_drawn_where_they_are_not_given() {
        let range = job("filesize=16k-64k");
        let sizes: Vec<u64> = (0..50)
            .filter_map(|file| wanted_bytes(&range, 0, file, None))
            .collect();
        assert!(sizes.iter().all(|bytes| bytes % 4096 == 0));
        assert!(
            sizes
                .iter()
                .all(|bytes| (16 << 10..=64 << 10).contains(bytes))
        );
        assert!(sizes.iter().any(|bytes| *bytes != sizes[0]));
        assert_eq!(wanted_bytes(&range, 0, 3, None), Some(sizes[3]));
        assert_eq!(wanted_bytes(&range, 0, 3, Some(20_000)), Some(20_000));
        assert_eq!(
            wanted_bytes(&job("filesize=1m"), 0, 0, Some(9)),
            Some(1 << 20)
        );
        assert_eq!(wanted_bytes(&job(""), 0, 0, Some(9)), None);
    }
}

//! fio's JSON into results: a record for each job, copies of one job together.
//!
//! | ours | from |
//! | --- | --- |
//! | `ios`, `bytes`, throughput, IOPS | `total_ios`, `io_bytes`, `bw_bytes`, `iops`; over the longest runtime where copies add up |
//! | latencies | see [`latency`] |
//! | `cpu` | `usr_cpu` and `sys_cpu` of `job_runtime` |
//! | `depth_mean` | the most that `iodepth_level` allows, which knows powers of two |
//! | stages, slices, placements, backend | nothing: fio does not measure them |
//!
//! Every record is doubted as imported, and for what the file does not say. Pure.

#![forbid(unsafe_code)]

use super::asked::{Asked, Said};
use super::latency;
use super::read::{Direction, Document, Entry, OwnDoubt};
use crate::doubt::Doubt;
use crate::judge::{self, Evidence, StorageEvidence};
use crate::result::{
    Achieved, CellParams, CpuTime, DirectionStats, Distribution, Placements, ResultRecord,
    SCHEMA_VERSION,
};
use crate::summary;

/// How documents of our own begin their version.
const OWN: &str = "crypt-bench";

/// What one document holds: records without number, hash and mark.
///
/// # Errors
/// The first job that can't be taken: which, and why.
pub fn records(document: &Document, said: &Said) -> Result<Vec<ResultRecord>, String> {
    if document.jobs.is_empty() {
        return Err("there is no job in it".to_owned());
    }
    let groups = copies(&document.jobs);
    groups
        .iter()
        .map(|entries| {
            let (index, first) = entries[0];
            let named = |why: String| format!("jobs[{index}] ({}): {why}", first.jobname);
            let beside = groups
                .iter()
                .filter(|other| other[0].1.groupid == first.groupid)
                .count()
                - 1;
            let entries: Vec<&Entry> = entries.iter().map(|(_, entry)| *entry).collect();
            record(document, &entries, beside as u32, said).map_err(named)
        })
        .collect()
}

/// Copies of one job, which ran together, in groups; never jobs with other parameters.
fn copies(jobs: &[Entry]) -> Vec<Vec<(usize, &Entry)>> {
    let mut groups: Vec<Vec<(usize, &Entry)>> = Vec::new();
    for (index, entry) in jobs.iter().enumerate() {
        let own = |entry: &Entry| {
            entry
                .crypt_bench
                .as_ref()
                .is_some_and(|own| own.cell.is_some())
        };
        let same = |group: &&mut Vec<(usize, &Entry)>| {
            let other = group[0].1;
            let names = (&other.jobname, other.groupid) == (&entry.jobname, entry.groupid);
            names && other.options == entry.options && !own(other) && !own(entry)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push((index, entry)),
            None => groups.push(vec![(index, entry)]),
        }
    }
    groups
}

fn record(
    document: &Document,
    entries: &[&Entry],
    beside: u32,
    said: &Said,
) -> Result<ResultRecord, String> {
    let first = entries[0];
    if entries
        .iter()
        .any(|entry| entry.trim.is_some_and(|trim| trim.total_ios > 0))
    {
        return Err("it has trims, which results have no place for".to_owned());
    }
    let asked = Asked::new(document, first, entries.len() as u32, said)?;
    let exact = is_own(document);
    let read = stats(entries, |entry| &entry.read, exact).map_err(|why| format!("read.{why}"))?;
    let write =
        stats(entries, |entry| &entry.write, exact).map_err(|why| format!("write.{why}"))?;
    let depth = Depth::of(entries, asked.cell.depth);
    let achieved = achieved(&asked.cell, entries, [&read, &write], depth);
    let mut record = ResultRecord {
        schema_version: SCHEMA_VERSION,
        cell_hash: String::new(),
        cell: asked.cell.clone(),
        repeat: 1,
        sequence: 0,
        started_unix_ms: first.job_start.unwrap_or(0),
        achieved,
        read,
        write,
        slice_ns: 0,
        cpu: cpu(entries),
        doubts: Vec::new(),
        mark: String::new(),
    };
    record.check()?;
    record.doubts = doubts(document, entries, beside, &asked, depth, &record);
    Ok(record)
}

/// Everything that is to be said about a record, the worst first and each once.
fn doubts(
    document: &Document,
    entries: &[&Entry],
    beside: u32,
    asked: &Asked,
    depth: Option<Depth>,
    record: &ResultRecord,
) -> Vec<Doubt> {
    let exact = is_own(document);
    let directions = [&record.read, &record.write];
    let mut doubts = vec![Doubt::Imported {
        program: document.version.clone(),
    }];
    doubts.extend(unsaid(asked, depth, beside, exact));
    doubts.extend(directions.into_iter().flatten().flat_map(coarse));
    doubts.extend(judged(asked, &record.achieved, directions, depth));
    doubts.extend(own_doubts(entries).filter_map(|doubt| match doubt {
        OwnDoubt::Typed(doubt) => Some(doubt.clone()),
        _ => None,
    }));
    let mut seen = Vec::new();
    doubts.retain(|doubt| {
        let new = !seen.contains(doubt);
        seen.push(doubt.clone());
        new
    });
    doubts.sort_by_key(|doubt| !doubt.invalidates());
    doubts
}

/// Whether this program wrote it.
fn is_own(document: &Document) -> bool {
    document.version.starts_with(OWN)
}

/// What is beyond 64 bits is refused with the record.
fn sum(figures: impl Iterator<Item = u64>) -> u64 {
    figures.fold(0, u64::saturating_add)
}

/// One direction of all copies; `None` where nothing completed.
fn stats(
    entries: &[&Entry],
    of: fn(&Entry) -> &Direction,
    exact: bool,
) -> Result<Option<DirectionStats>, String> {
    let parts: Vec<&Direction> = entries
        .iter()
        .map(|entry| of(entry))
        .filter(|part| part.total_ios > 0)
        .collect();
    let Some(&first) = parts.first() else {
        return Ok(None);
    };
    let ios = sum(parts.iter().map(|part| part.total_ios));
    let bytes = sum(parts.iter().map(|part| part.io_bytes));
    let runtime_ms = parts
        .iter()
        .map(|part| part.runtime)
        .max()
        .unwrap_or(0)
        .max(1);
    let (bw_bytes_per_s, iops) = match parts.as_slice() {
        [_] => (first.bw_bytes as f64, first.iops),
        _ => (
            bytes as f64 * 1e3 / runtime_ms as f64,
            ios as f64 * 1e3 / runtime_ms as f64,
        ),
    };
    let merged = |name: &str, of: fn(&Direction) -> &super::read::Latency| {
        let all: Result<Vec<Distribution>, String> = parts
            .iter()
            .map(|part| latency::distribution(of(part), !exact))
            .collect();
        let all = all.map_err(|why| format!("{name}: {why}"))?;
        match all.as_slice() {
            [only] => Ok(only.clone()),
            all => summary::merge(all).map(|merged| merged.unwrap_or_else(latency::unknown)),
        }
    };
    Ok(Some(DirectionStats {
        ios,
        bytes,
        bw_bytes_per_s,
        iops,
        slat: merged("slat_ns", |part| &part.slat_ns)?,
        clat: merged("clat_ns", |part| &part.clat_ns)?,
        lat: merged("lat_ns", |part| &part.lat_ns)?,
        stages: None,
        slice_ios: Vec::new(),
    }))
}

/// Requests in flight per job, as far as fio tells.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Depth {
    least: f64,
    most: f64,
}

impl Depth {
    /// From the shares of depths 1, 2 to 3, 4 to 7 and so on; `None` where there are none.
    fn of(entries: &[&Entry], asked: u32) -> Option<Self> {
        let asked = f64::from(asked);
        let (mut all, mut least, mut most) = (0.0, 0.0, 0.0);
        for (name, &percent) in entries
            .iter()
            .flat_map(|entry| entry.iodepth_level.iter().flatten())
        {
            let from: f64 = name.trim_start_matches(">=").parse().ok()?;
            let to = if name.starts_with(">=") {
                asked
            } else {
                2.0 * from - 1.0
            };
            all += percent;
            least += percent * from.min(asked);
            most += percent * to.min(asked);
        }
        (all > 0.0).then(|| Self {
            least: least / all,
            most: most / all,
        })
    }
}

fn achieved(
    cell: &CellParams,
    entries: &[&Entry],
    [read, write]: [&Option<DirectionStats>; 2],
    depth: Option<Depth>,
) -> Achieved {
    let both = || [read, write].into_iter().flatten();
    let ios = sum(both().map(|stats| stats.ios));
    let bytes = sum(both().map(|stats| stats.bytes));
    let per_io = |amount: u64| (ios > 0).then(|| amount as f64 / ios as f64);
    let runtimes = entries
        .iter()
        .map(|entry| entry.read.runtime.max(entry.write.runtime));
    let failed = entries.iter().find(|entry| entry.error != 0);
    Achieved {
        depth_mean: depth.map_or(0.0, |depth| depth.most),
        rwmixread_percent: per_io(read.as_ref().map_or(0, |stats| stats.ios))
            .map(|share| 100.0 * share),
        block_size_bytes_mean: per_io(bytes),
        runtime_ns: runtimes.max().unwrap_or(0).saturating_mul(1_000_000),
        errors: sum(entries
            .iter()
            .map(|entry| entry.total_err.max(u64::from(entry.error != 0)))),
        first_error: failed.map(|entry| format!("{}: error {}", entry.jobname, entry.error)),
        engine: cell.engine.clone(),
        direct: cell.direct,
        pinned: true,
        placements: Placements::default(),
        decisions: Vec::new(),
        predictions: Vec::new(),
        notes: own_doubts(entries).filter_map(words).collect(),
        ..Achieved::default()
    }
}

/// What this program doubted itself.
fn own_doubts<'a>(entries: &[&'a Entry]) -> impl Iterator<Item = &'a OwnDoubt> {
    let own = entries
        .iter()
        .filter_map(|entry| entry.crypt_bench.as_ref());
    own.flat_map(|own| &own.doubts)
        .collect::<Vec<_>>()
        .into_iter()
}

fn words(doubt: &OwnDoubt) -> Option<String> {
    match doubt {
        OwnDoubt::Words(text) | OwnDoubt::Other { text } => Some(text.clone()),
        OwnDoubt::Typed(_) => None,
    }
}

fn cpu(entries: &[&Entry]) -> CpuTime {
    let seconds = |percent: fn(&Entry) -> f64| {
        let each = entries
            .iter()
            .map(|entry| percent(entry) / 100.0 * entry.job_runtime as f64 / 1e3);
        each.sum::<f64>()
    };
    let (user_s, system_s) = (
        seconds(|entry| entry.usr_cpu),
        seconds(|entry| entry.sys_cpu),
    );
    CpuTime {
        total_s: user_s + system_s,
        user_s,
        system_s,
    }
}

/// Doubts about what the file does not say.
fn unsaid(asked: &Asked, depth: Option<Depth>, beside: u32, exact: bool) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let mut what = asked.not_said.clone();
    match depth {
        Some(Depth { least, most }) if least < most => {
            doubts.push(Doubt::DepthBetween { least, most });
        }
        Some(_) => {}
        None => what.push("depth reached".to_owned()),
    }
    if !what.is_empty() {
        doubts.push(Doubt::NotSaid { what });
    }
    if !asked.others.is_empty() {
        let options = asked.others.clone();
        doubts.push(Doubt::OtherOptions { options });
    }
    // Cells of an export ran one after the other.
    if beside > 0 && !exact {
        doubts.push(Doubt::RanBeside { jobs: beside });
    }
    doubts
}

/// Doubts about a direction's latency.
fn coarse(stats: &DirectionStats) -> Option<Doubt> {
    let (lat, clat) = (&stats.lat, &stats.clat);
    if lat.hdr_v2_deflate_base64.is_some() {
        Some(Doubt::CoarseHistogram)
    } else if lat.p50_ns.is_none() && clat.p50_ns.is_some() {
        Some(Doubt::LatNotKept)
    } else {
        Some(Doubt::NoHistogram)
    }
}

/// What the figures themselves say.
fn judged(
    asked: &Asked,
    achieved: &Achieved,
    [read, write]: [&Option<DirectionStats>; 2],
    depth: Option<Depth>,
) -> Vec<Doubt> {
    let evidence = Evidence {
        cell: &asked.cell,
        achieved,
        read: read.as_ref(),
        write: write.as_ref(),
        slice_ns: 0,
        steal_percent: 0.0,
        storage: StorageEvidence {
            is_file: asked.cell.device != "null",
            ..StorageEvidence::default()
        },
        storage_read_bytes: None,
        cpus: u32::MAX,
        governor: None,
    };
    let bytes: u64 = [read, write]
        .into_iter()
        .flatten()
        .map(|stats| stats.bytes)
        .sum();
    let whole = asked
        .cell
        .size_bytes
        .saturating_mul(u64::from(asked.cell.jobs));
    let mut doubts = judge::judge_imported(&evidence);
    doubts.retain(|doubt| match doubt {
        Doubt::DepthNotReached { .. } => depth.is_some() && !asked.is_paced(),
        // Without time_based, which the file does not show, a job ends after its bytes.
        Doubt::RuntimeShort { .. } => whole == 0 || bytes < whole,
        _ => true,
    });
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::write;
    use crate::fio::{cell as export, read};
    use crate::testing::{cell, record as measured};
    use serde_json::{Value, json};

    fn said(policy: &str) -> Said {
        Said {
            policy: Some(policy.to_owned()),
            ..Said::default()
        }
    }

    /// A job as fio writes it, with 1000 reads of 4 KiB at depth 8.
    fn entry(options: &Value) -> Value {
        let stats = measured(cell("inline", 4096, 8), 1, 1e9).read.unwrap();
        let span = write::Span {
            runtime_ns: 1_000_000_000,
            slice_ns: 1,
            request_bytes: None,
        };
        let detail = write::Detail {
            percentiles: vec![50.0],
            shown: [false, true, true],
            bins: false,
        };
        json!({
            "jobname": "a", "job options": options, "job_runtime": 2000, "usr_cpu": 10.0, "sys_cpu": 5.0,
            "read": write::direction(Some(&stats), &span, &detail).unwrap(),
            "write": write::direction(None, &span, &detail).unwrap(),
            "iodepth_level": {"1": 0.0, "2": 0.0, "4": 0.0, "8": 100.0, "16": 0.0, ">=64": 0.0},
        })
    }

    fn options() -> Value {
        json!({
            "rw": "randread", "bs": "4k", "iodepth": "8", "ioengine": "io_uring", "filename": "/dev/x", "size": "1g",
            "runtime": "1", "direct": "1"
        })
    }

    fn imported(jobs: &[Value], said: &Said) -> Result<Vec<ResultRecord>, String> {
        let document = json!({ "fio version": "fio-3.33", "jobs": jobs }).to_string();
        records(&read::document(&document).unwrap(), said)
    }

    #[test]
    fn figures_beyond_all_runs_are_named() {
        for (place, name) in [
            ("/read/runtime", "achieved.runtime_ns"),
            ("/read/io_bytes", "read.bytes"),
            ("/read/total_ios", "read.ios"),
            ("/total_err", "achieved.errors"),
        ] {
            let mut job = entry(&options());
            job["total_err"] = json!(0);
            // Other directions and copies must not push a sum beyond 64 bits.
            job["write"] = job["read"].clone();
            *job.pointer_mut(place).unwrap() = json!(u64::MAX);
            let why = imported(&[job.clone(), job], &said("inline")).unwrap_err();
            assert!(why.contains(&format!("{name}: ")), "{why}");
        }
    }

    #[test]
    fn an_export_comes_back_with_the_same_figures() {
        let params = cell("adaptive", 4096, 8);
        let one = measured(params.clone(), 1, 1e9);
        for bins in [false, true] {
            let job = export::job(&params, &[&one], bins).unwrap();
            let document = write::document(&[job], &jiff::ZonedDateTime::now(), None).to_string();
            let back = records(&read::document(&document).unwrap(), &Said::default()).unwrap();
            let [back] = back.as_slice() else {
                panic!("{back:?}")
            };
            assert_eq!(back.cell, params);
            let (mine, theirs) = (back.read.as_ref().unwrap(), one.read.as_ref().unwrap());
            assert_eq!((mine.ios, mine.bytes), (theirs.ios, theirs.bytes));
            assert!((mine.iops - theirs.iops).abs() <= 1.0);
            assert!((mine.bw_bytes_per_s - theirs.bw_bytes_per_s).abs() <= 4096.0);
            assert_eq!(
                (mine.lat.max_ns, mine.lat.mean_ns),
                (theirs.lat.max_ns, theirs.lat.mean_ns)
            );
            if !bins {
                assert_eq!(mine.lat.p99_ns, theirs.lat.p99_ns);
            }
            assert!(back.is_valid(), "{:?}", back.doubts);
            assert_eq!(back.doubts.contains(&Doubt::CoarseHistogram), bins);
            assert_eq!(back.doubts.contains(&Doubt::NoHistogram), !bins);
        }
    }

    #[test]
    fn copies_are_one_record_and_other_jobs_are_not() {
        let mut other = options();
        other["bs"] = json!("8k");
        let jobs = [entry(&options()), entry(&other), entry(&options())];
        let found = imported(&jobs, &said("x")).unwrap();
        assert_eq!(found.len(), 2);
        let single = imported(&jobs[..1], &said("x")).unwrap();
        assert_eq!((found[0].cell.jobs, single[0].cell.jobs), (2, 1));
        let ios = |record: &ResultRecord| record.read.as_ref().unwrap().ios;
        assert_eq!(ios(&found[0]), 2 * ios(&single[0]));
        assert!((found[0].cpu.user_s - 0.4).abs() < 1e-9);
        assert!(found[0].doubts.contains(&Doubt::RanBeside { jobs: 1 }));
        let unmixed = |record: &ResultRecord| {
            !record
                .doubts
                .iter()
                .any(|doubt| matches!(doubt, Doubt::RanBeside { .. }))
        };
        assert!(unmixed(&single[0]));
    }

    #[test]
    fn what_is_not_said_is_a_doubt_and_nothing_is_made_up() {
        let bare = json!({ "rw": "read", "rate_iops": "5" });
        let found = imported(&[entry(&bare)], &said("default")).unwrap();
        let record = &found[0];
        let what = ["cipher", "sector size", "runtime", "device", "size"].map(str::to_owned);
        assert!(
            record.doubts.contains(&Doubt::NotSaid {
                what: what.to_vec()
            }),
            "{:?}",
            record.doubts
        );
        let options = vec!["rate_iops=5".to_owned()];
        assert!(record.doubts.contains(&Doubt::OtherOptions { options }));
        assert_eq!(
            (record.cell.cipher.as_str(), record.cell.key_bits),
            ("unknown", None)
        );
        let read = record.read.as_ref().unwrap();
        assert_eq!((read.stages, read.lat.p99_ns), (None, None));
        assert!(read.lat.p50_ns.is_some() && read.slice_ios.is_empty());
    }

    #[test]
    fn a_depth_that_was_not_reached_is_invalid() {
        let mut shallow = entry(&options());
        shallow["iodepth_level"] = json!({ "1": 50.0, "4": 50.0 });
        let record = &imported(&[shallow.clone()], &said("x")).unwrap()[0];
        assert_eq!(record.achieved.depth_mean, 4.0);
        assert!(!record.is_valid());
        assert!(record.doubts.contains(&Doubt::DepthBetween {
            least: 2.5,
            most: 4.0
        }));
        shallow["job options"]["rate"] = json!("1m");
        assert!(imported(&[shallow], &said("x")).unwrap()[0].is_valid());
    }

    #[test]
    fn failures_and_page_caches_are_invalid() {
        let mut failed = entry(&options());
        failed["error"] = json!(5);
        let record = &imported(&[failed], &said("x")).unwrap()[0];
        assert!(record.doubts.contains(&Doubt::Errors { errors: 1 }));
        let mut buffered = options();
        buffered["direct"] = json!("0");
        assert!(!imported(&[entry(&buffered)], &said("x")).unwrap()[0].is_valid());
    }

    #[test]
    fn jobs_that_no_result_describes_are_refused_by_name() {
        let refused = |change: fn(&mut Value), said: &Said| {
            let mut job = entry(&options());
            change(&mut job);
            imported(&[job], said).unwrap_err()
        };
        let none = refused(|_| (), &Said::default());
        assert!(
            none.starts_with("jobs[0] (a): ") && none.contains("--policy"),
            "{none}"
        );
        let trims = refused(|job| job["trim"] = json!({ "total_ios": 3 }), &said("x"));
        assert!(trims.contains("trims"), "{trims}");
        let mean = refused(|job| job["read"]["lat_ns"]["mean"] = json!(0.5), &said("x"));
        assert!(mean.contains("read.lat_ns: min"), "{mean}");
        assert!(imported(&[], &said("x")).is_err());
    }
}

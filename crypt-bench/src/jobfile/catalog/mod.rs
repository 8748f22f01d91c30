//! The options: names, grammars, and for what is not supported, what to do instead.
//!
//! Every option of fio 3.33 is in one of two tables: [`OPTIONS`], understood, and `REFUSED`. A name
//! in neither is not an option.

#![forbid(unsafe_code)]

mod refused;

use super::value::Kind;

/// An option that is understood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What its value looks like.
    pub kind: Kind,
}

const fn run(name: &'static str, aliases: &'static [&'static str], kind: Kind) -> OptionInfo {
    OptionInfo {
        name,
        aliases,
        kind,
    }
}

const SECONDS: Kind = Kind::Time { bare_seconds: true };
const MICROSECONDS: Kind = Kind::Time {
    bare_seconds: false,
};

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

/// Most files of a job: what a ring can hold.
const MOST_FILES: u64 = 1 << 15;

/// Engines, and what they map onto: `null`, plain system calls, `io_uring`.
pub const ENGINES: &[&str] = &[
    "null", "sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring",
];

/// Checksums, and `0` for none.
pub const VERIFIES: &[&str] = &[
    "crc32c",
    "crc32c-intel",
    "md5",
    "sha256",
    "sha512",
    "pattern",
    "0",
];

/// All options that are understood.
pub const OPTIONS: &[OptionInfo] = &[
    run("ba", &["blockalign"], Kind::Sizes),
    run("bs", &["blocksize"], Kind::Sizes),
    run("bsrange", &["blocksize_range"], Kind::Ranges),
    run("bssplit", &[], Kind::Splits),
    run("buffer_compress_chunk", &[], Kind::Size),
    run("buffer_compress_percentage", &[], count(0, 100)),
    run("buffer_pattern", &[], Kind::Bytes { offsets: false }),
    run("buffered", &[], Kind::Bool),
    run("clat_percentiles", &[], Kind::Bool),
    run(
        "continue_on_error",
        &[],
        Kind::Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]),
    ),
    run("cpus_allowed", &[], Kind::Cpus),
    run(
        "cpus_allowed_policy",
        &[],
        Kind::Choice(&["shared", "split"]),
    ),
    run("crypt_cipher", &[], Kind::Text),
    run("crypt_key_file", &[], Kind::Paths),
    run("crypt_policy", &[], Kind::Text),
    run("crypt_sector_size", &[], Kind::Size),
    run("dedupe_percentage", &[], count(0, 100)),
    run("description", &[], Kind::Text),
    run("direct", &[], Kind::Bool),
    run("directory", &[], Kind::Paths),
    run("do_verify", &[], Kind::Bool),
    run("end_fsync", &[], Kind::Bool),
    run("fdatasync", &[], count(0, u32::MAX as u64)),
    run("file_service_type", &[], Kind::Text),
    run("filename", &[], Kind::Paths),
    run("filename_format", &[], Kind::Paths),
    run("filesize", &[], Kind::SizeRange),
    run("fsync", &[], count(0, u32::MAX as u64)),
    run("group_reporting", &[], Kind::Flag),
    run("hipri", &[], Kind::Flag),
    run("io_size", &["io_limit"], Kind::Share),
    run("iodepth", &[], count(1, 16_384)),
    run(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        count(0, u32::MAX as u64),
    ),
    run("iodepth_batch_complete_max", &[], count(0, u32::MAX as u64)),
    run(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        count(0, u32::MAX as u64),
    ),
    run("iodepth_low", &[], count(0, u32::MAX as u64)),
    run("ioengine", &[], Kind::Choice(ENGINES)),
    run("kb_base", &[], Kind::Choice(&["1000", "1024"])),
    run("lat_percentiles", &[], Kind::Bool),
    run("latency_percentile", &[], Kind::Percentiles),
    run("latency_run", &[], Kind::Bool),
    run("latency_target", &[], MICROSECONDS),
    run("latency_window", &[], MICROSECONDS),
    run("log_avg_msec", &[], count(0, u32::MAX as u64)),
    run("log_entries", &[], count(1024, 1 << 30)),
    run("loops", &[], count(1, u32::MAX as u64)),
    run("max_latency", &[], MICROSECONDS),
    run("name", &[], Kind::Text),
    run("new_group", &[], Kind::Flag),
    run("norandommap", &[], Kind::Flag),
    run("nrfiles", &["nr_files"], count(1, MOST_FILES)),
    run("number_ios", &[], count(0, u64::MAX)),
    run("numjobs", &[], count(1, 4096)),
    run("offset", &["fileoffset"], Kind::Share),
    run("offset_increment", &[], Kind::Share),
    run("openfiles", &[], count(1, MOST_FILES)),
    run("per_job_logs", &[], Kind::Bool),
    run("percentage_random", &[], Kind::Counts { max: 100 }),
    run("percentile_list", &[], Kind::Percentiles),
    run("ramp_time", &[], SECONDS),
    run("random_distribution", &[], Kind::Spread),
    run(
        "random_generator",
        &[],
        Kind::Choice(&["tausworthe", "lfsr", "tausworthe64"]),
    ),
    run("randrepeat", &["allrandrepeat"], Kind::Bool),
    run("randseed", &[], count(0, i64::MAX as u64)),
    run("rate", &[], Kind::Sizes),
    run(
        "rate_iops",
        &[],
        Kind::Counts {
            max: u32::MAX as u64,
        },
    ),
    run("rate_process", &[], Kind::Choice(&["linear", "poisson"])),
    run("read_iolog", &[], Kind::Paths),
    run("read_iolog_chunked", &[], Kind::Bool),
    run("refill_buffers", &[], Kind::Flag),
    run("replay_align", &[], count(0, 1 << 30)),
    run("replay_no_stall", &[], Kind::Bool),
    run("replay_redirect", &[], Kind::Paths),
    run("replay_scale", &[], count(0, u32::MAX as u64)),
    run("replay_skip", &[], Kind::Text),
    run("replay_time_scale", &[], count(1, u32::MAX as u64)),
    run("runtime", &["timeout"], SECONDS),
    run("rw", &["readwrite"], Kind::Pattern),
    run(
        "rw_sequencer",
        &[],
        Kind::Choice(&["sequential", "identical"]),
    ),
    run("rwmixread", &[], count(0, 100)),
    run("rwmixwrite", &[], count(0, 100)),
    run("scramble_buffers", &[], Kind::Bool),
    run("size", &[], Kind::Share),
    run("slat_percentiles", &[], Kind::Bool),
    run("startdelay", &[], Kind::TimeRange),
    run("steadystate", &["ss"], Kind::Text),
    run("steadystate_duration", &["ss_dur"], SECONDS),
    run("steadystate_ramp_time", &["ss_ramp"], SECONDS),
    run("stonewall", &["wait_for_previous"], Kind::Flag),
    run(
        "sync",
        &[],
        Kind::Choice(&["none", "0", "sync", "1", "dsync"]),
    ),
    run("thinktime", &[], MICROSECONDS),
    run("thinktime_blocks", &[], count(1, u32::MAX as u64)),
    run("thread", &["threads"], Kind::Flag),
    run("time_based", &[], Kind::Flag),
    run("verify", &[], Kind::Choice(VERIFIES)),
    run("verify_fatal", &[], Kind::Bool),
    run("verify_interval", &[], count(0, 1 << 30)),
    run("verify_only", &[], Kind::Flag),
    run("verify_pattern", &[], Kind::Bytes { offsets: true }),
    run("wait_for", &[], Kind::Text),
    run("write_bw_log", &[], Kind::Prefix),
    run("write_iops_log", &[], Kind::Prefix),
    run("write_lat_log", &[], Kind::Prefix),
    run("zero_buffers", &[], Kind::Flag),
    run("zonemode", &[], Kind::Choice(&["none", "strided"])),
    run("zonerange", &[], Kind::Size),
    run("zonesize", &[], Kind::Size),
    run("zoneskip", &[], Kind::Size),
];

/// The option of a name or alias.
///
/// # Errors
/// A name that is not an option, or one that is not supported; in words, with advice.
pub fn find(name: &str) -> Result<&'static OptionInfo, String> {
    let known = |info: &&OptionInfo| info.name == name || info.aliases.contains(&name);
    if let Some(info) = OPTIONS.iter().find(known) {
        return Ok(info);
    }
    if let Some(advice) = refused::advice(name) {
        return Err(format!("option `{name}` is {advice}"));
    }
    let hint = closest(name).map_or_else(
        || "see `crypt-bench explain --options` for those there are".to_owned(),
        |close| format!("did you mean `{close}`?"),
    );
    Err(format!("`{name}` is not an option; {hint}"))
}

/// The name that differs least, where it differs little.
fn closest(name: &str) -> Option<&'static str> {
    if name.len() > 40 {
        return None;
    }
    let lower = name.to_lowercase();
    let names = OPTIONS
        .iter()
        .flat_map(|info| info.aliases.iter().copied().chain([info.name]));
    names
        .map(|candidate| (distance(&lower, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| distance * 3 <= candidate.len())
        .map(|(_, candidate)| candidate)
}

/// Insertions, removals and replacements between two words (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, a) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_stand_once() {
        let names: Vec<&str> = OPTIONS.iter().map(|info| info.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        for info in OPTIONS {
            assert_eq!(refused::advice(info.name), None, "{}", info.name);
        }
    }

    #[test]
    fn what_is_not_an_option_gets_advice() {
        for (name, advice) in [
            ("BS", "did you mean `bs`"),
            ("iodept", "did you mean `iodepth`"),
            ("readwrit", "did you mean `readwrite`"),
            ("qqqqqq", "explain --options"),
            ("verify_async", "not supported"),
            ("unlink", "never removed"),
            ("gtod_reduce", "always recorded"),
            ("", "not an option"),
        ] {
            let message = find(name).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
        assert_eq!(find("blocksize").map(|info| info.name), Ok("bs"));
    }
}

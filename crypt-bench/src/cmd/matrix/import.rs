//! A fio job file as the base of a matrix: what its job says becomes a definition with one value on each axis,
//! which flags replace or multiply. Pure.
//!
//! What a cell can't express is refused with its line, never left out; so is every option that is not
//! known here, whatever `run` makes of it. What a job file says nothing of and fio has no notion of - ciphers
//! and policies without the `crypt_` options - stays as a matrix has it by default.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Duration;

use crate::definition::Definition;
use crate::definition::device::{DeviceSpec, Engine};
use crate::definition::quantity::{Count, CpuList, Size, Time};
use crate::generate::Blocks;
use crate::jobfile::job::{Access, Job};
use crate::jobfile::value::{Share, Value};
use crate::jobfile::{Position, Refusal};

/// Options that a cell expresses, or that change nothing of it.
const TAKEN: &[&str] = &[
    "blocksize",
    "bs",
    "bsrange",
    "bssplit",
    "buffered",
    "cpus_allowed",
    "cpus_allowed_policy",
    "crypt_cipher",
    "crypt_policy",
    "crypt_sector_size",
    "description",
    "direct",
    "directory",
    "filename",
    "group_reporting",
    "hipri",
    "iodepth",
    "ioengine",
    "kb_base",
    "name",
    "numjobs",
    "percentile_list",
    "ramp_time",
    "randseed",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "size",
    "stonewall",
    "thread",
    "time_based",
    "new_group",
];

/// Options with the value that asks for nothing.
const NEUTRAL: &[(&str, &str)] = &[
    ("loops", "1"),
    ("nrfiles", "1"),
    ("offset", "0"),
    ("offset_increment", "0"),
    ("norandommap", "0"),
    ("random_distribution", "random"),
    ("randrepeat", "1"),
    ("startdelay", "0"),
    ("thinktime", "0"),
    ("fsync", "0"),
    ("fdatasync", "0"),
    ("end_fsync", "0"),
    ("verify", "0"),
    ("percentage_random", "100"),
    ("number_ios", "0"),
    ("refill_buffers", "0"),
    ("rate", "0"),
    ("rate_iops", "0"),
];

/// What to do about some of the others.
const ADVICE: &[(&str, &str)] = &[
    ("crypt_key_file", "give --key-file on the command line"),
    (
        "io_size",
        "a cell runs for a time; remove it and give --runtime",
    ),
    (
        "loops",
        "a cell runs for a time; remove it and give --runtime",
    ),
    (
        "number_ios",
        "a cell runs for a time; remove it and give --runtime",
    ),
    (
        "rate",
        "a cell keeps its depth; use `crypt-bench run` for a rate",
    ),
    (
        "rate_iops",
        "a cell keeps its depth; use `crypt-bench run` for a rate",
    ),
    (
        "thinktime",
        "a cell keeps its depth; use `crypt-bench run` for pauses",
    ),
    (
        "offset",
        "a cell begins at the start of its device; remove it",
    ),
    ("filesize", "give --size, and --create for a new file"),
];

/// The definition of the jobs, each a case where there are several.
///
/// # Errors
/// Jobs that run at the same time, and what a cell can't express.
pub(super) fn definition(jobs: &[Job]) -> Result<Definition, Refusal> {
    if let Some(job) = jobs.iter().skip(1).find(|job| !job.stonewall) {
        let message = format!(
            "[{}] runs beside the job above, and a cell is one job; take one of them with --section {}, or add \
             stonewall to measure one after the other",
            job.section, job.section
        );
        return Err(Refusal::at(&job.position, message));
    }
    let mut cases: Vec<Definition> = jobs.iter().map(one).collect::<Result<_, _>>()?;
    let Some(first) = jobs.first() else {
        return Ok(Definition::default());
    };
    let policy = policy(first);
    if let Some(other) = jobs.iter().find(|job| self::policy(job) != policy) {
        let message =
            "all jobs of a matrix run under the same policies; give --policy and remove it";
        return Err(other.refuse("crypt_policy", message));
    }
    if cases.len() == 1 {
        return Ok(Definition {
            policy,
            ..cases.remove(0)
        });
    }
    Ok(Definition {
        policy,
        case: cases,
        ..Definition::default()
    })
}

fn policy(job: &Job) -> Vec<String> {
    let crypt = job.crypt.iter();
    crypt
        .filter(|_| job.settings.find("crypt_policy").is_some())
        .map(|crypt| crypt.policy.to_string())
        .collect()
}

fn one(job: &Job) -> Result<Definition, Refusal> {
    check(job)?;
    let time = |us: u64| Time(Duration::from_micros(us));
    let blocks = Blocks::new(job.read_lengths.clone(), job.write_lengths.clone());
    let only = blocks.only(job.pattern.rw).map(Size);
    let crypt = job.crypt.as_ref();
    let sector =
        |crypt: &crate::jobfile::job::Crypt| Size(crypt.cipher.sector_size().bytes() as u64);
    let sync = job.access == Access::File(Engine::Sync);
    Ok(Definition {
        device: device(job)?.into_iter().collect(),
        rw: vec![job.pattern.rw],
        rwmixread: vec![job.rwmixread_percent],
        bs: only.into_iter().collect(),
        bssplit: match only {
            Some(_) => Vec::new(),
            None => vec![blocks.to_string()],
        },
        // Plain system calls are one at a time.
        depth: vec![if sync { 1 } else { job.depth }],
        jobs: vec![Count::Number(job.numjobs)],
        devices: vec![1],
        cipher: crypt
            .map(|crypt| crypt.cipher_text.clone())
            .into_iter()
            .collect(),
        sector_size: crypt.map(sector).into_iter().collect(),
        issuers: issuers(job)?,
        hipri: job.hipri.then_some(true),
        direct: Some(job.direct),
        engine: match job.access {
            Access::Null => None,
            Access::File(engine) => Some(engine),
        },
        size: size(job)?,
        runtime: job.runtime_us.map(time),
        ramp: (job.ramp_us > 0).then(|| time(job.ramp_us)),
        seed: job.settings.number("randseed"),
        ..Definition::default()
    })
}

/// Refuses what no cell expresses.
fn check(job: &Job) -> Result<(), Refusal> {
    for (name, setting) in job.settings.iter() {
        let neutral = NEUTRAL.contains(&(name, setting.text.as_str()));
        if TAKEN.contains(&name) || neutral {
            continue;
        }
        let advice = ADVICE.iter().find(|(known, _)| *known == name);
        let advice = advice.map_or("remove it, or use `crypt-bench run`", |(_, advice)| advice);
        let equals = if setting.text.is_empty() { "" } else { "=" };
        let message = format!(
            "{name}{equals}{} has no place in a matrix; {advice}",
            setting.text
        );
        return Err(Refusal::at(&setting.position, message));
    }
    if job.pattern.modifier.is_some() {
        let message =
            "a number behind rw has no place in a matrix; remove it, or use `crypt-bench run`";
        return Err(job.refuse("rw", message));
    }
    Ok(())
}

/// `None` where the job names none, so that flags or the default do.
fn device(job: &Job) -> Result<Option<DeviceSpec>, Refusal> {
    if job.access == Access::Null {
        return Ok(Some(DeviceSpec::Null));
    }
    let folder = job.settings.text("directory").map(PathBuf::from);
    let Some(name) = job.settings.text("filename") else {
        return Ok(folder.map(|folder| DeviceSpec::Scratch(Some(folder))));
    };
    if name.contains([':', '\\']) {
        let message = format!(
            "filename={name}: several files have no place in a matrix; give --device file:PATH"
        );
        return Err(job.refuse("filename", message));
    }
    let path = match folder {
        Some(folder) => folder.join(name.trim_start_matches('/')),
        None => PathBuf::from(name),
    };
    Ok(Some(DeviceSpec::File(path)))
}

fn size(job: &Job) -> Result<Option<Size>, Refusal> {
    match job.settings.share("size") {
        None | Some(Share::Bytes(0)) => Ok(None),
        Some(Share::Bytes(bytes)) => Ok(Some(Size(bytes))),
        Some(Share::Percent(_)) => Err(job.refuse(
            "size",
            "a percentage has no place in a matrix; write bytes, or give --size",
        )),
    }
}

/// CPUs of the jobs in turn, as `split` has them; one CPU is the same for both.
fn issuers(job: &Job) -> Result<Option<CpuList>, Refusal> {
    let Some(Value::Cpus(cpus)) = job
        .settings
        .find("cpus_allowed")
        .map(|setting| &setting.value)
    else {
        return Ok(None);
    };
    if cpus.len() > 1 && job.settings.text("cpus_allowed_policy") != Some("split") {
        let message = "a matrix pins each job to one CPU in turn; add cpus_allowed_policy=split, or give --issuers";
        return Err(job.refuse("cpus_allowed", message));
    }
    Ok(Some(CpuList(cpus.clone())))
}

/// What to say of a job that ends after its bytes in fio.
pub(super) fn remark(jobs: &[Job]) -> Option<String> {
    let endless = jobs.iter().find(|job| !job.time_based)?;
    let position: &Position = &endless.position;
    Some(format!(
        "{position}: [{}] ends after its bytes in fio; a cell goes on for its runtime",
        endless.section
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobfile::testing::Fake;
    use crate::result::Rw;

    fn import(text: &str) -> Result<Definition, Refusal> {
        let fake = Fake::default().file("a.fio", text);
        definition(&crate::jobfile::load(&["a.fio".to_owned()], &[], &fake)?)
    }

    #[test]
    fn a_job_becomes_one_value_on_each_axis() {
        let found = import(
            "[global]\nioengine=libaio\ndirect=1\n[a]\nfilename=/dev/x\nrw=randrw\nrwmixread=66\niodepth=32\n\
             numjobs=2\nbssplit=64k/60:1m/40,1m/100\nsize=1g\nruntime=2\ntime_based\nramp_time=500ms\nrandseed=7\n\
             cpus_allowed=0-1\ncpus_allowed_policy=split\ncrypt_cipher=aes-xts-plain64\ncrypt_sector_size=4k\n\
             crypt_policy=workqueue:same_cpu_crypt\ngroup_reporting\nrandrepeat=1\nthinktime=0\n",
        )
        .unwrap();
        let expected = "\
device = ['file:/dev/x']
rw = ['randrw']
rwmixread = [66]
bssplit = ['64k/60:1m/40,1m']
depth = [32]
jobs = [2]
devices = [1]
policy = ['workqueue:same_cpu_crypt']
cipher = ['aes-xts-plain64']
sector-size = ['4k']
issuers = '0,1'
direct = true
engine = 'io_uring'
size = '1g'
runtime = '2s'
ramp = '500ms'
seed = 7
";
        assert_eq!(found, Definition::parse(expected).unwrap());
    }

    #[test]
    fn what_a_job_does_not_say_is_as_fio_has_it_and_ciphers_as_a_matrix() {
        let found = import("[a]\nioengine=null\nsize=1m\n").unwrap();
        assert_eq!((found.rw, found.bs), (vec![Rw::Read], vec![Size(4096)]));
        assert_eq!((found.depth, found.jobs), (vec![1], vec![Count::Number(1)]));
        assert_eq!(found.device, [DeviceSpec::Null]);
        assert!(found.cipher.is_empty() && found.policy.is_empty() && found.runtime.is_none());
        let sync = import("[a]\nfilename=x\niodepth=8\n").unwrap();
        assert_eq!((sync.depth, sync.engine), (vec![1], Some(Engine::Sync)));
        let folder = import("[a]\ndirectory=/mnt\nsize=1m\n").unwrap();
        assert_eq!(folder.device[0].to_string(), "scratch:/mnt");
    }

    #[test]
    fn flags_multiply_it() {
        let flags = Definition::parse("bs = ['4k', '64k']\nruntime = '1s'").unwrap();
        let found =
            flags.over(import("[a]\nioengine=null\nsize=1m\nbssplit=4k/50:8k/50\n").unwrap());
        assert_eq!(
            (found.bs.len(), found.bssplit.len(), found.depth),
            (2, 0, vec![1])
        );
    }

    #[test]
    fn jobs_behind_each_other_are_cases_and_jobs_beside_each_other_are_refused() {
        let global = "[global]\nioengine=null\nsize=1m\n";
        let found = import(&format!("{global}[a]\nbs=4k\n[b]\nstonewall\nbs=8k\n")).unwrap();
        let blocks: Vec<Vec<Size>> = found.case.iter().map(|case| case.bs.clone()).collect();
        assert_eq!(blocks, [vec![Size(4096)], vec![Size(8192)]]);
        let refusal = import(&format!("{global}[a]\n[b]\n"))
            .unwrap_err()
            .to_string();
        assert!(refusal.starts_with("a.fio:5: [b] runs beside"), "{refusal}");
        assert!(refusal.contains("--section b"), "{refusal}");
        let policies = "crypt_cipher=aes-xts-plain64\ncrypt_policy=inline\n";
        let refusal = import(&format!("{global}[a]\n[b]\nstonewall\n{policies}")).unwrap_err();
        assert!(
            refusal.to_string().starts_with("a.fio:8: all jobs"),
            "{refusal}"
        );
    }

    #[test]
    fn what_a_cell_cannot_express_is_refused_with_its_line_and_advice() {
        for (options, reason) in [
            (
                "rate=1m",
                "a.fio:2: rate=1m has no place in a matrix; a cell keeps its depth",
            ),
            ("thinktime=5ms", "a.fio:2: thinktime=5ms"),
            (
                "fsync=8",
                "a.fio:2: fsync=8 has no place in a matrix; remove it",
            ),
            ("loops=3", "--runtime"),
            ("io_size=1g", "--runtime"),
            ("number_ios=5", "--runtime"),
            ("offset=1m", "a.fio:2: offset=1m"),
            ("norandommap", "a.fio:2: norandommap has no place"),
            ("randrepeat=0", "a.fio:2: randrepeat=0"),
            ("rw=randread:8", "a.fio:2: a number behind rw"),
            ("size=50%", "a.fio:2: a percentage"),
            ("filename=a:b", "a.fio:2: filename=a:b: several files"),
            ("cpus_allowed=0,1", "cpus_allowed_policy=split"),
            (
                "random_distribution=zipf:1.2",
                "a.fio:2: random_distribution=zipf:1.2",
            ),
            ("verify=crc32c", "a.fio:2: verify"),
            (
                "crypt_cipher=aes-xts-plain64\ncrypt_key_file=k",
                "a.fio:3: crypt_key_file=k has no place in a matrix; give --key-file",
            ),
        ] {
            let refusal = match import(&format!("[a]\n{options}\n")) {
                Err(refusal) => refusal.to_string(),
                Ok(taken) => panic!("{options}: {taken:?}"),
            };
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
    }

    /// A new option of job files is refused until somebody says what a cell makes of it.
    #[test]
    fn every_name_is_that_of_an_option() {
        let names = TAKEN.iter().chain(NEUTRAL.iter().map(|(name, _)| name));
        for name in names.chain(ADVICE.iter().map(|(name, _)| name)) {
            assert!(crate::jobfile::catalog::find(name).is_ok(), "{name}");
        }
    }
}

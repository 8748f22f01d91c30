//! Results made up for tests, complete and consistent, without measuring anything.

#![forbid(unsafe_code)]

use crate::generate::{Lengths, Random, Run, Script, Service, Span, Spread};
use crate::manifest::{Environment, Manifest, State, Storage, Tool};
use crate::result::{
    Achieved, CellParams, CpuTime, DirectionStats, Distribution, Placements, ResultRecord, Rw,
    SCHEMA_VERSION, Stages,
};
use crate::summary::{self, HIGHEST_NS, Moments};

/// A number from about the standard normal distribution: the sum of twelve uniform ones.
pub(crate) fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// The distribution of these samples; panics without any.
pub(crate) fn distribution_of(samples_ns: &[u64]) -> Distribution {
    let mut histogram = summary::histogram();
    let mut moments: Option<Moments> = None;
    for &sample_ns in samples_ns {
        let over_range = sample_ns > HIGHEST_NS;
        if !over_range {
            histogram.record(sample_ns).unwrap();
        }
        let one = Moments {
            samples: 1,
            over_range_samples: u64::from(over_range),
            min_ns: sample_ns,
            max_ns: sample_ns,
            mean_ns: sample_ns as f64,
            squares_ns2: 0.0,
        };
        moments = Some(moments.map_or(one, |sum| sum.merged(&one)));
    }
    summary::distribution(&histogram, &moments.unwrap()).unwrap()
}

/// Parameters of a plausible cell, to be changed with struct update syntax.
pub(crate) fn cell(policy: &str, block_size_bytes: u64, depth: u32) -> CellParams {
    CellParams {
        device: "memory".to_owned(),
        cipher: "aes-xts-plain64".to_owned(),
        key_bits: Some(512),
        sector_size_bytes: 4096,
        rw: Rw::RandRead,
        rwmixread_percent: 100,
        block_size_bytes,
        block_sizes: None,
        depth,
        jobs: 1,
        issuer_cpus: Vec::new(),
        devices: 1,
        cores: None,
        workers: 2,
        policy: policy.to_owned(),
        hipri: false,
        readahead: false,
        direct: true,
        engine: "auto".to_owned(),
        cipher_throttle_bytes_per_s: None,
        size_bytes: 64 << 20,
        runtime_ms: 200,
        ramp_ms: 50,
        slice_us: None,
        seed: 1,
    }
}

/// A record of `cell` with this throughput, and latency that follows from depth (Little's law).
pub(crate) fn record(cell: CellParams, repeat: u32, bw_bytes_per_s: f64) -> ResultRecord {
    let iops = bw_bytes_per_s / cell.block_size_bytes as f64;
    let lat_ns = (f64::from(cell.depth * cell.jobs) / iops * 1e9) as u64;
    let stats = |share: f64| (share > 0.0).then(|| direction_stats(&cell, iops * share, lat_ns));
    let read_share = f64::from(cell.rwmixread_percent) / 100.0;
    ResultRecord {
        schema_version: SCHEMA_VERSION,
        cell_hash: "0".repeat(64),
        repeat,
        sequence: 0,
        started_unix_ms: 1_700_000_000_000,
        achieved: achieved(&cell),
        read: stats(read_share),
        write: stats(1.0 - read_share),
        slice_ns: 20_000_000,
        cpu: CpuTime {
            total_s: 0.2,
            user_s: 0.15,
            system_s: 0.05,
        },
        doubts: Vec::new(),
        mark: "0".repeat(64),
        cell,
    }
}

/// A manifest for these records.
pub(crate) fn manifest(records: &[ResultRecord]) -> Manifest {
    let mut plan: Vec<CellParams> = Vec::new();
    for record in records {
        if !plan.contains(&record.cell) {
            plan.push(record.cell.clone());
        }
    }
    Manifest {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            version: "0.1.0".to_owned(),
            git_revision: Some("0123456789ab".to_owned()),
            binary_sha256: "1".repeat(64),
            profile: "release".to_owned(),
        },
        environment: environment(),
        created_files: Vec::new(),
        command_line: ["crypt-bench", "matrix", "--bs", "4k"]
            .map(str::to_owned)
            .to_vec(),
        definition_toml: "bs = [\"4k\"]\n".to_owned(),
        preset: None,
        started: "2026-01-02T03:04:05Z".to_owned(),
        finished: Some("2026-01-02T03:05:05Z".to_owned()),
        state: State::Complete,
        plan,
        repeats: records
            .iter()
            .map(|record| record.repeat)
            .max()
            .unwrap_or(1),
        plan_hash: "2".repeat(64),
    }
}

fn direction_stats(cell: &CellParams, iops: f64, lat_ns: u64) -> DirectionStats {
    let runtime_s = cell.runtime_ms as f64 / 1e3;
    let ios = ((iops * runtime_s) as u64).max(1);
    let slat: Vec<u64> = (0..100).map(|n| 200 + n).collect();
    let clat: Vec<u64> = (0..100)
        .map(|n| lat_ns.saturating_sub(200) + n * lat_ns / 200)
        .collect();
    let lat: Vec<u64> = slat
        .iter()
        .zip(&clat)
        .map(|(slat, clat)| slat + clat)
        .collect();
    DirectionStats {
        ios,
        bytes: ios * cell.block_size_bytes,
        bw_bytes_per_s: iops * cell.block_size_bytes as f64,
        iops,
        slat: distribution_of(&slat),
        clat: distribution_of(&clat),
        lat: distribution_of(&lat),
        stages: Some(Stages {
            wait_ns_mean: lat_ns as f64 * 0.1,
            dispatch_ns_mean: lat_ns as f64 * 0.1,
            cipher_ns_mean: lat_ns as f64 * 0.3,
            device_ns_mean: lat_ns as f64 * 0.5,
        }),
        slice_ios: vec![ios / 10; 10],
    }
}

fn achieved(cell: &CellParams) -> Achieved {
    Achieved {
        depth_mean: f64::from(cell.depth),
        device_depth_mean: f64::from(cell.depth) * 0.5,
        rwmixread_percent: Some(f64::from(cell.rwmixread_percent)),
        block_size_bytes_mean: Some(cell.block_size_bytes as f64),
        runtime_ns: cell.runtime_ms * 1_000_000,
        errors: 0,
        first_error: None,
        engine: "immediate".to_owned(),
        direct: cell.direct,
        polled: cell.hipri,
        registered_buffers: true,
        cipher_backend: Some("batched".to_owned()),
        clock: "tsc".to_owned(),
        pinned: true,
        workers: cell.workers,
        placements: Placements {
            inline: 1000,
            offload: 10,
            split: 1,
        },
        decisions: Vec::new(),
        predictions: Vec::new(),
        notes: Vec::new(),
    }
}

fn environment() -> Environment {
    Environment {
        host: "host".to_owned(),
        cpu_model: "Example CPU".to_owned(),
        cpus: 2,
        cpu_flags: vec!["aes".to_owned(), "vaes".to_owned()],
        kernel: "6.12.0".to_owned(),
        governor: None,
        mitigations: vec!["meltdown: Not affected".to_owned()],
        memory_bytes: 8 << 30,
        memlock_limit_bytes: None,
        virtual_machine: true,
        clock: "tsc".to_owned(),
        tsc_ticks_per_ns: Some(2.9),
        storage: vec![Storage {
            device: "scratch".to_owned(),
            mount_point: Some("/".to_owned()),
            filesystem: "ext4".to_owned(),
            source: "/dev/sda1".to_owned(),
            options: "rw,relatime".to_owned(),
        }],
    }
}

/// Asserts that the rows of each table of a Markdown document have equally many columns.
pub(crate) fn assert_tables_are_whole(markdown: &str) {
    for block in markdown
        .split("\n\n")
        .filter(|block| block.starts_with('|'))
    {
        let widths: Vec<usize> = block
            .lines()
            .map(|line| line.matches('|').count())
            .collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{block}");
    }
}

/// The published schema is the types' own. `UPDATE_SCHEMA=1 cargo test -p crypt-bench` rewrites
/// it after a change.
pub(crate) fn published(name: &str, mut generated: serde_json::Value) -> serde_json::Value {
    generated["$id"] = serde_json::json!(format!("crypt-bench/{name}"));
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("schema")
        .join(name);
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&generated).unwrap() + "\n";
        std::fs::write(&path, text).unwrap();
    }
    let published: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(
        published,
        generated,
        "{} is stale: set UPDATE_SCHEMA=1",
        path.display()
    );
    published
}

mod tests {
    use schemars::schema_for;
    use serde_json::json;

    use super::{cell, manifest, published, record};
    use crate::doubt::Doubt;
    use crate::manifest::Manifest;
    use crate::result::{DecisionCount, PredictedTime, ResultRecord};

    #[test]
    fn records_fit_the_published_schema() {
        let schema = published("result.schema.json", schema_for!(ResultRecord).to_value());
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut example = record(cell("adaptive", 4096, 32), 1, 1e9);
        example.doubts = vec![
            Doubt::NoSamples,
            Doubt::DepthNotReached {
                asked: 32,
                mean: 3.5,
            },
            Doubt::FewSamples {
                samples: 9,
                trusted_percentile: None,
            },
        ];
        example.achieved.decisions = vec![DecisionCount {
            up_to_bytes: Some(4096),
            placement: "inline".to_owned(),
            reason: "small".to_owned(),
            jobs: 7,
        }];
        example.achieved.predictions = vec![PredictedTime {
            up_to_bytes: None,
            placement: "inline".to_owned(),
            jobs: 7,
            predicted_ns_mean: Some(900.5),
            ended: 0,
            taken_ns_mean: None,
        }];
        let value = serde_json::to_value(&example).unwrap();
        assert!(
            validator.is_valid(&value),
            "{:?}",
            validator.iter_errors(&value).next()
        );
        let mut broken = value.clone();
        broken["read"]["ios"] = json!("many");
        assert!(!validator.is_valid(&broken));
        let mut unknown = value.clone();
        unknown["doubts"][0]["kind"] = json!("bad_mood");
        assert!(!validator.is_valid(&unknown));
        assert_eq!(
            serde_json::from_value::<ResultRecord>(value).unwrap(),
            example
        );
    }

    #[test]
    fn manifests_fit_the_published_schema() {
        let schema = published("manifest.schema.json", schema_for!(Manifest).to_value());
        let validator = jsonschema::validator_for(&schema).unwrap();
        let example = manifest(&[record(cell("inline", 4096, 1), 1, 1e9)]);
        let value = serde_json::to_value(&example).unwrap();
        assert!(
            validator.is_valid(&value),
            "{:?}",
            validator.iter_errors(&value).next()
        );
        assert_eq!(serde_json::from_value::<Manifest>(value).unwrap(), example);
    }
}

/// A pass over 1 MiB in blocks of 4 KiB, to be changed with struct update syntax.
pub(crate) fn script(rw: Rw) -> Script {
    Script {
        rw,
        rwmixread_percent: 50,
        lengths: [Lengths::Fixed(4096), Lengths::Fixed(4096)],
        random_percent: [100, 100],
        align_bytes: [4096, 4096],
        repeats: false,
        spread: Spread::Even,
        run_ios: 1,
        run: Run::Sequential,
        step_bytes: 0,
        strides: None,
        spans: vec![Span {
            start_bytes: 0,
            len_bytes: 1 << 20,
        }],
        service: Service::default(),
        total_bytes: Some(1 << 20),
        total_ios: None,
        flush_every: 0,
    }
}

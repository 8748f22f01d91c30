//! `crypt-bench matrix` from the outside: what it writes, in which order, and what it leaves behind.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Place, assert_schema, text};
use crypt_bench::definition::PRESETS;
use crypt_bench::doubt::Doubt;
use crypt_bench::manifest::State;
use crypt_bench::preset::Preset;
use crypt_bench::result::Rw;

/// A matrix that takes little time on any machine.
const QUICK: &str = "--runtime 20ms --ramp 5ms --size 4m";

#[test]
fn a_run_writes_results_that_fit_the_published_schemas() {
    let place = Place::new();
    let stdout = place.succeed(&format!(
        "matrix --device null,memory,model:nvme,scratch --rw randread,randrw --bs 4k,16k --depth 4 \
         --policy adaptive --repeats 2 --out results {QUICK}"
    ));
    assert!(stdout.contains("adaptive"), "{stdout}");
    let records = place.records("results");
    assert_eq!(records.len(), 4 * 2 * 2 * 3 * 2);
    let lines = place.read("results", "results.jsonl");
    assert_schema(
        "result.schema.json",
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap()),
    );
    let manifest = place.read("results", "manifest.json");
    assert_schema(
        "manifest.schema.json",
        [serde_json::from_str(&manifest).unwrap()],
    );
    let manifest = place.manifest("results");
    assert_eq!((manifest.state, manifest.repeats), (State::Complete, 2));
    assert!(manifest.finished.is_some());
    assert_eq!(manifest.plan.len() * 2, records.len());
    assert!(place.read("results", "report.html").contains("</html>"));
    // The scratch file is gone, and nothing else was written anywhere.
    let folders = place
        .content()
        .into_iter()
        .filter(|path| path.components().count() == 1);
    assert_eq!(
        folders.collect::<Vec<_>>(),
        [Path::new("results"), Path::new("tmp")]
    );
    assert_eq!(fs::read_dir(place.path("tmp")).unwrap().count(), 0);
}

#[test]
fn every_published_table_can_be_measured_again() {
    let place = Place::new();
    let list = place.succeed("matrix --preset list");
    for preset in Preset::names() {
        assert!(list.contains(preset), "{list}");
        // Small and short: that it runs, not what it says.
        let stdout = place.succeed(&format!(
            "matrix --preset {preset} --device null --depth 2 --jobs 1 --size 8m --runtime 20ms --ramp 1ms --slice 1ms \
             --repeats 1 --out {preset}"
        ));
        assert!(stdout.contains(&format!("({preset})")), "{stdout}");
        let plan = place.manifest(preset).plan;
        assert!(plan.iter().any(|cell| cell.policy == "raw"), "{preset}");
        let page = place.read(preset, "report.html");
        assert!(page.contains("id=\"published\""), "{preset}");
        let again = place.succeed(&format!("report {preset} --format text"));
        assert!(again.contains("Published: "), "{again}");
    }
}

#[test]
fn published_figures_stand_beside_measured_ones_of_the_same_row() {
    let place = Place::new();
    let stdout = place.succeed(
        "matrix --preset dorminy-ssd --bs 4k --depth 128,2048 --jobs 1,4 --device null --size 64m --runtime 20ms \
         --ramp 1ms --repeats 1 --out rows",
    );
    assert!(stdout.contains("282") && stdout.contains("283"), "{stdout}");
    let json: serde_json::Value =
        serde_json::from_str(&place.succeed("report rows --format json")).unwrap();
    let rows = json["published"][0]["tables"][0]["rows"]
        .as_array()
        .unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert_eq!(
        (&rows[1]["figures"], &rows[1]["raw"]),
        (&"published".into(), &285.0.into())
    );
}

#[test]
fn a_job_file_is_the_base_that_axes_multiply() {
    let place = Place::new();
    let job = "[global]\nioengine=null\nsize=8m\n[a]\nrw=randrw\nrwmixread=66\nbssplit=4k/60:16k/40,16k\niodepth=4\n\
               [b]\nrate=1m\n";
    fs::write(place.path("a.fio"), job).unwrap();
    place.succeed(&format!(
        "matrix --import a.fio --section a --depth 1,4 --jobs 1,2 --policy inline --only --repeats 1 --out results {QUICK}"
    ));
    let cells: Vec<_> = place
        .records("results")
        .into_iter()
        .map(|record| record.cell)
        .collect();
    let seen: Vec<_> = cells.iter().map(|cell| (cell.depth, cell.jobs)).collect();
    assert_eq!(seen, [(1, 1), (1, 2), (4, 1), (4, 2)]);
    for cell in cells {
        assert_eq!(cell.block_sizes.as_deref(), Some("4k/60:16k/40,16k"));
        assert_eq!((cell.rwmixread_percent, cell.size_bytes), (66, 4 << 20));
    }
}

#[test]
fn figures_of_a_record_agree_with_each_other() {
    let place = Place::new();
    let records = place.measure(
        "matrix --device memory --rw randrw --rwmixread 30 --bs 4k --depth 8 --jobs 2 --devices 2 \
         --policy inline,workqueue --repeats 1 --ramp 5ms --size 4m",
        |records| {
            records
                .iter()
                .all(|record| record.read.is_some() && record.write.is_some())
        },
    );
    for record in records {
        let (read, write) = (
            record.read.as_ref().unwrap(),
            record.write.as_ref().unwrap(),
        );
        assert_eq!(record.cell.rw, Rw::RandRw);
        let percent = 100.0 * read.ios as f64 / (read.ios + write.ios) as f64;
        assert!((percent - record.achieved.rwmixread_percent.unwrap()).abs() < 1e-6);
        for stats in [read, write] {
            assert_eq!(stats.bytes, stats.ios * 4096);
            assert_eq!(stats.slice_ios.iter().sum::<u64>(), stats.ios);
            assert!((stats.bw_bytes_per_s - 4096.0 * stats.iops).abs() < 1.0);
            for latency in [&stats.slat, &stats.clat, &stats.lat] {
                assert_eq!(latency.samples, stats.ios);
                let figures = [latency.p50_ns, latency.p99_ns, latency.p99_99_ns];
                let [p50, p99, p99_99] = figures.map(Option::unwrap);
                assert!(latency.min_ns <= p50 && p50 <= p99);
                assert!(p99 <= p99_99 && p99_99 <= latency.max_ns);
            }
            let sum_ns = stats.slat.mean_ns + stats.clat.mean_ns;
            assert!(
                (sum_ns - stats.lat.mean_ns).abs() < 1.0,
                "{sum_ns} {}",
                stats.lat.mean_ns
            );
        }
        let placements = record.achieved.placements;
        let placed = placements.inline + placements.offload + placements.split;
        assert_eq!(placed, read.ios + write.ios);
        let inline = record.cell.policy == "inline";
        assert_eq!(inline, placements.inline == placed, "{:?}", record.achieved);
    }
}

#[test]
fn policies_of_a_cell_run_interleaved() {
    let place = Place::new();
    place.succeed(&format!(
        "matrix --device null --rw randread --bs 4k,8k --depth 1 --policy adaptive --repeats 3 \
         --out results {QUICK}"
    ));
    let records = place.records("results");
    let expected: Vec<(u64, u32, &str)> = [4096, 8192]
        .into_iter()
        .flat_map(|block| (1..=3).map(move |repeat| (block, repeat)))
        .flat_map(|(block, repeat)| {
            ["inline", "workqueue", "adaptive"].map(|policy| (block, repeat, policy))
        })
        .collect();
    let order: Vec<(u64, u32, &str)> = records
        .iter()
        .map(|record| {
            let cell = &record.cell;
            (cell.block_size_bytes, record.repeat, cell.policy.as_str())
        })
        .collect();
    assert_eq!(order, expected);
    let sequence: Vec<u64> = records.iter().map(|record| record.sequence).collect();
    assert_eq!(sequence, (0..18).collect::<Vec<_>>());
    let started: Vec<u64> = records
        .iter()
        .map(|record| record.started_unix_ms)
        .collect();
    assert!(started.is_sorted());
}

#[test]
fn json_on_stdout_is_one_document_and_everything_else_is_on_stderr() {
    let place = Place::new();
    let output = place.run(&format!(
        "matrix --device null --rw read --bs 4k --depth 1 --policy inline --repeats 1 --json \
         --out results {QUICK}"
    ));
    assert!(output.status.success());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document.is_object());
    let stderr = text(&output.stderr);
    let (length, cells) = stderr.split_once('\n').unwrap();
    assert!(
        length.starts_with("cells: 1, runs: 1, which takes about "),
        "{stderr}"
    );
    assert!(
        cells.starts_with("[1/1] null read 4k depth 1: inline "),
        "{stderr}"
    );
}

#[test]
fn only_keeps_a_lone_adaptive_alone() {
    let place = Place::new();
    place.succeed(&format!(
        "matrix --device null --rw read --bs 4k --depth 1 --policy adaptive --only --repeats 1 \
         --out results {QUICK}"
    ));
    let records = place.records("results");
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].cell.policy, "adaptive");
}

#[test]
fn without_out_results_go_to_a_folder_named_after_time_and_host() {
    let place = Place::new();
    place.succeed(&format!(
        "matrix --device null --rw read --bs 4k --depth 1 --policy inline --repeats 1 {QUICK}"
    ));
    let folders: Vec<PathBuf> = fs::read_dir(place.path("reports"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [folder] = &folders[..] else {
        panic!("{folders:?}");
    };
    let name = folder.file_name().unwrap().to_str().unwrap();
    let (date, rest) = name.split_once('-').unwrap();
    let (time, host) = rest.split_once('-').unwrap();
    assert_eq!((date.len(), time.len()), (8, 6), "{name}");
    assert!(!host.is_empty());
    for file in ["results.jsonl", "manifest.json", "report.html"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
}

#[test]
fn asking_for_polling_where_there_is_none_is_a_doubt() {
    let place = Place::new();
    place.succeed(&format!(
        "matrix --device scratch --rw randread --bs 4k --depth 2 --policy inline --hipri \
         --readahead --repeats 1 --out results {QUICK}"
    ));
    let record = &place.records("results")[0];
    assert!(record.cell.hipri && record.cell.readahead);
    if !record.achieved.polled {
        assert!(
            record.doubts.contains(&Doubt::PollingNotPossible),
            "{:?}",
            record.doubts
        );
    }
}

#[test]
fn one_call_at_a_time_does_not_pass_for_a_depth() {
    let place = Place::new();
    let records = place.measure(
        "matrix --device scratch --rw randread --bs 4k --depth 1,8 --policy inline --engine sync \
         --repeats 1 --ramp 5ms --size 4m",
        |records| records.iter().all(|record| record.read.is_some()),
    );
    for record in records {
        assert_eq!(record.achieved.engine, "sync");
        let missed = record
            .doubts
            .iter()
            .any(|doubt| matches!(doubt, Doubt::DepthNotReached { .. }));
        assert_eq!(missed, record.cell.depth == 8, "{:?}", record.doubts);
    }
}

#[test]
fn a_throttled_cipher_is_slower_and_says_so() {
    let place = Place::new();
    let records = place.measure(
        "matrix --device null --rw write --bs 64k --depth 1 --policy inline --cipher-throttle \
         20MB/s --repeats 1 --ramp 5ms --size 4m",
        |records| records[0].write.is_some(),
    );
    let record = &records[0];
    // The last request may begin just inside the window, so one more than the rate is possible.
    let most = 20e6 + 65536.0 * 1000.0 / record.cell.runtime_ms as f64;
    let rate = record.bw_bytes_per_s();
    assert!(rate <= most, "{rate} of {most}");
    assert!(record.doubts.contains(&Doubt::CipherThrottled));
}

#[test]
fn every_definition_in_benches_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    let names: Vec<&str> = PRESETS.map(|(name, _)| name).to_vec();
    assert_eq!(
        files.len(),
        names.len(),
        "a definition is not built in: {files:?}"
    );
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(names.contains(&name), "{name} is not built in");
        let place = Place::new();
        // No machine but a simulated one has several numbers of cores.
        let command = match fs::read_to_string(&file).unwrap().contains("\ncores =") {
            true => "simulate --machine two-cores --sample 6",
            false => "matrix --device null --size 2m",
        };
        place.succeed(&format!(
            "{command} --matrix {} --runtime 1ms --ramp 0 --repeats 1 --out results",
            file.display()
        ));
        let manifest = place.manifest("results");
        assert_eq!(
            place.records("results").len(),
            manifest.plan.len(),
            "{name}"
        );
        assert_eq!(manifest.state, State::Complete);
    }
}

#[test]
fn the_same_seed_makes_the_same_plan_and_another_seed_other_cells() {
    let place = Place::new();
    let run = |seed: u32, out: &str| {
        place.succeed(&format!(
            "matrix --device null --rw randread --bs 4k --depth 1 --policy inline --repeats 1 \
             --seed {seed} --out {out} {QUICK}"
        ));
        place.records(out)[0].cell_hash.clone()
    };
    let hashes = [run(1, "a"), run(1, "b"), run(2, "c")];
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
}

#[test]
fn jobs_are_pinned_to_the_cpus_asked_for() {
    let place = Place::new();
    let cpus = fs::read_to_string("/proc/self/status").unwrap();
    let list = cpus
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap()
        .trim();
    place.succeed(&format!(
        "matrix --device null --rw randread --bs 4k --depth 1 --jobs 2 --policy inline --repeats 1 \
         --issuers {list} --out results {QUICK}"
    ));
    let record = &place.records("results")[0];
    assert!(record.achieved.pinned);
    assert!(!record.cell.issuer_cpus.is_empty());
}

#[test]
fn every_axis_reaches_the_cells() {
    let place = Place::new();
    place.succeed(&format!(
        "matrix --device null --rw read --bs 4k --depth 1 --policy inline --repeats 1 \
         --cipher aes-xts-plain64,cipher_null-ecb,none --key-bits 256,512 --sector-size 512,4k \
         --out results {QUICK}"
    ));
    let mut seen: BTreeMap<(String, Option<u32>, u32), Option<String>> = BTreeMap::new();
    for record in place.records("results") {
        let cell = record.cell;
        seen.insert(
            (cell.cipher, cell.key_bits, cell.sector_size_bytes),
            record.achieved.cipher_backend,
        );
    }
    let aes = "aes-xts-plain64".to_owned();
    for bits in [256, 512] {
        for sector in [512, 4096] {
            let backend = seen.remove(&(aes.clone(), Some(bits), sector));
            assert!(backend.flatten().is_some_and(|backend| !backend.is_empty()));
        }
    }
    assert!(
        seen.remove(&("cipher_null-ecb".to_owned(), None, 4096))
            .is_some()
    );
    assert!(
        seen.remove(&("cipher_null-ecb".to_owned(), None, 512))
            .is_some()
    );
    assert_eq!(seen.remove(&("none".to_owned(), None, 512)), Some(None));
    assert!(seen.is_empty(), "{seen:?}");
}

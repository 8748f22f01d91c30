//! `crypt-bench import` as a user meets it: what this program wrote, and what an installed fio writes.

#![forbid(unsafe_code)]
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::Place;

/// Records as what is in the file, whatever this program would read from it.
fn records(place: &Place, folder: &str) -> Vec<Value> {
    let text = place.read(folder, "results.jsonl");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The lines of a report as CSV, the name of the run left out.
fn cells(place: &Place, folder: &str) -> Vec<String> {
    let csv = place.succeed(&format!("report {folder} --format csv"));
    csv.lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap().1.to_owned())
        .collect()
}

#[test]
fn an_export_comes_back_with_the_same_figures() {
    let place = Place::new();
    place.succeed("matrix --policy inline,adaptive --only --device null --rw randread --bs 4k,64k --depth 1,4 --size 8m \
         --runtime 10ms --ramp 1ms --repeats 1 --out run",
    );
    place.succeed("export run --output all.json");
    place.succeed("import all.json --out back");
    let (before, after) = (cells(&place, "run"), cells(&place, "back"));
    let valid: Vec<&String> = before
        .iter()
        .filter(|line| line.contains(",valid,"))
        .collect();
    assert_eq!(
        valid.len(),
        after.iter().filter(|line| line.contains(",valid,")).count()
    );
    // Parameters, then throughput, IOPS and mean latency: the first columns.
    for (before, after) in valid.iter().zip(&after) {
        let columns = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let (before, after) = (columns(before), columns(after));
        assert_eq!(before[..24], after[..24]);
        for column in 24..27 {
            let number = |text: &str| text.parse::<f64>().unwrap();
            let (a, b) = (number(&before[column]), number(&after[column]));
            assert!((a - b).abs() <= a * 1e-6, "column {column}: {a} {b}");
        }
        assert_eq!(before[27..30], after[27..30], "percentiles");
    }
}

#[test]
fn a_run_comes_back_as_a_result() {
    let place = Place::new();
    let job = "[global]\nioengine=null\nsize=1m\n[a]\nrw=randrw\nrwmixread=70\nnumjobs=2\n[b]\nstonewall\nrw=read\n\
               bs=64k\nnumjobs=3\ngroup_reporting\n";
    fs::write(place.path("a.fio"), job).unwrap();
    place.succeed("run a.fio --output-format json+ --output a.json");
    place.succeed("import a.json --policy raw --out back");
    let found = records(&place, "back");
    let jobs: Vec<&Value> = found.iter().map(|record| &record["cell"]["jobs"]).collect();
    assert_eq!(jobs, [2, 3]);
    let bytes: u64 = found
        .iter()
        .flat_map(|record| [&record["read"]["bytes"], &record["write"]["bytes"]])
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(bytes, 5 << 20);
}

#[test]
fn broken_files_are_named_with_their_place_and_nothing_is_written() {
    let place = Place::new();
    fs::write(
        place.path("cut.json"),
        "fio: warning\n{\"fio version\": \"fio-3.33\",\n \"jobs\": [\n",
    )
    .unwrap();
    fs::write(
        place.path("good.json"),
        "{\"fio version\": \"fio-3.33\", \"jobs\": []}",
    )
    .unwrap();
    for (arguments, words) in [
        ("cut.json", "cut.json:4:"),
        ("none.json", "none.json: "),
        ("good.json", "no job"),
        ("=good.json", "POLICY=FILE"),
        ("good.json --device /dev/sda", "file:/dev/sda"),
        ("good.json --sector-size 3k", "one of 512"),
    ] {
        let output = place.run(&format!("import {arguments} --out new"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(words), "{arguments}: {said}");
        assert!(!place.path("new").exists(), "{arguments}");
    }
}

/// Patterns, and jobs of each.
type Cells = &'static [(&'static str, u64)];

/// Job files of several kinds, and the cells that each is.
const JOBS: &[(&str, &str, Cells)] = &[
    (
        "randrw",
        "[a]\nrw=randrw\nrwmixread=70\nbs=4k\n",
        &[("randrw", 1)],
    ),
    (
        "copies",
        "[a]\nrw=read\nbs=64k\nnumjobs=2\n",
        &[("read", 2)],
    ),
    (
        "group",
        "[global]\ngroup_reporting\n[a]\nrw=randwrite\nnumjobs=3\n",
        &[("randwrite", 3)],
    ),
    (
        "two",
        "[a]\nrw=read\nbs=4k\n[b]\nstonewall\nrw=write\nbssplit=4k/50:8k/50\n",
        &[("read", 1), ("write", 1)],
    ),
    (
        "rate",
        "[a]\nrw=randread\niodepth=4\nrate_iops=2000\nbs=4k\n",
        &[("randread", 1)],
    ),
];

#[test]
fn what_an_installed_fio_writes_is_read() {
    if Command::new("fio").arg("--version").output().is_err() {
        println!("skipped: fio is not installed");
        return;
    }
    let place = Place::new();
    for (name, job, expected) in JOBS {
        let head = "[global]\nioengine=null\nsize=4m\nthread\ndirect=1\nlat_percentiles=1\n";
        fs::write(place.path("a.fio"), format!("{head}{job}")).unwrap();
        for format in ["json", "json+"] {
            let file = format!("{name}.{format}");
            let fio = Command::new("fio")
                .args(["a.fio", "--output-format", format, "--output", &file])
                .current_dir(place.path("."))
                .output()
                .unwrap();
            assert!(
                fio.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&fio.stderr)
            );
            let folder = format!("{name}-{format}");
            place.succeed(&format!(
                "import x={file} --cipher aes-xts-plain64 --out {folder}"
            ));
            place.succeed(&format!("report {folder}"));
            let found = records(&place, &folder);
            let cells: Vec<(&str, u64)> = found
                .iter()
                .map(|record| {
                    (
                        record["cell"]["rw"].as_str().unwrap(),
                        record["cell"]["jobs"].as_u64().unwrap(),
                    )
                })
                .collect();
            assert_eq!(cells, *expected, "{file}");
            compare(&text_of(&place, &file), &found, format == "json+");
        }
    }
}

/// fio's document, without warnings in front of it.
fn text_of(place: &Place, file: &str) -> Value {
    let text = fs::read_to_string(place.path(file)).unwrap();
    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
}

fn compare(document: &Value, found: &[Value], bins: bool) {
    for direction in ["read", "write"] {
        let theirs = document["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| &job[direction]);
        let mine = found.iter().map(|record| &record[direction]);
        let sum = |values: &mut dyn Iterator<Item = &Value>, key: &str| -> u64 {
            values.filter_map(|stats| stats[key].as_u64()).sum()
        };
        assert_eq!(
            sum(&mut theirs.clone(), "total_ios"),
            sum(&mut mine.clone(), "ios")
        );
        assert_eq!(
            sum(&mut theirs.clone(), "io_bytes"),
            sum(&mut mine.clone(), "bytes")
        );
    }
    for (record, job) in found.iter().zip(document["jobs"].as_array().unwrap()) {
        for direction in ["read", "write"]
            .into_iter()
            .filter(|direction| !record[direction].is_null())
        {
            let (mine, theirs) = (&record[direction]["lat"], &job[direction]["lat_ns"]);
            if record["cell"]["jobs"] != 1 && mine["samples"] != theirs["N"] {
                continue;
            }
            assert_eq!(mine["max_ns"], theirs["max"]);
            assert_eq!(mine["hdr_v2_deflate_base64"].is_string(), bins);
            let p99 = mine["p99_ns"].as_f64().unwrap();
            let percentile = theirs["percentile"]["99.000000"].as_f64().unwrap();
            // fio's rank can be the neighbouring sample's; buckets are 1/64 wide.
            let listed = percentile.min(theirs["max"].as_f64().unwrap());
            assert!(bins || p99 == listed, "{p99} {listed}");
        }
    }
}

#[test]
fn repeats_and_policies_come_from_several_files() {
    let place = Place::new();
    let job = "[a]\nioengine=null\nsize=1m\nruntime=1\nrw=randread\n";
    fs::write(place.path("a.fio"), job).unwrap();
    place.succeed("run a.fio --output-format json+ --output a.json");
    place.succeed(
        "import raw=a.json default=a.json default=a.json --cipher aes-xts-plain64 --out back",
    );
    let manifest = place.json("back/manifest.json");
    assert_eq!(manifest["plan"].as_array().unwrap().len(), 2);
    let found = records(&place, "back");
    let repeats: Vec<&Value> = found.iter().map(|record| &record["repeat"]).collect();
    assert_eq!(repeats, [1, 1, 2]);
    assert_eq!(manifest["environment"]["host"], "");
    let again = place.run("import raw=a.json --out back");
    assert_eq!(again.status.code(), Some(2));
}

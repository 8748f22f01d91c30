//! `crypt-bench export` as a user meets it, and fio-plot on what it writes.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn bench(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// A folder with the results of a small matrix in `run`.
fn measured(policies: &str) -> TempDir {
    let place = TempDir::new().unwrap();
    let arguments = format!(
        "matrix --policy {policies} --only --device null --rw randread --bs 4k,64k --depth 1,4 --size 8m \
         --runtime 10ms --ramp 1ms --repeats 2 --out run"
    );
    let output = bench(place.path(), &arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    place
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_valid_cell_is_a_job_and_a_file() {
    let place = measured("inline,adaptive");
    let output = bench(
        place.path(),
        "export run --format fio-json+ --output all.json",
    );
    assert!(output.status.success());
    let jobs = read(&place.path().join("all.json"))["jobs"].clone();
    let jobs = jobs.as_array().unwrap();
    assert!(!jobs.is_empty() && jobs.len() <= 8, "{}", jobs.len());
    let output = bench(place.path(), "export run --output plots");
    assert!(output.status.success());
    for job in jobs {
        let cell = &job["crypt_bench"]["cell"];
        let file = format!(
            "plots/policy={}/{}/randread-{}-1.json",
            cell["policy"].as_str().unwrap(),
            if cell["block_size_bytes"] == 4096 {
                "4k"
            } else {
                "64k"
            },
            cell["depth"]
        );
        let alone = &read(&place.path().join(&file))["jobs"][0];
        assert_eq!(
            alone["read"]["total_ios"], job["read"]["total_ios"],
            "{file}"
        );
        assert!(job["read"]["clat_ns"]["bins"].is_object());
        assert!(alone["read"]["clat_ns"].get("bins").is_none());
    }
    let again = bench(place.path(), "export run --output plots");
    assert_eq!(again.status.code(), Some(2));
    let nothing = bench(place.path(), "export plots");
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn fio_plot_draws_what_is_exported() {
    let plot = std::env::var("FIO_PLOT").unwrap_or_else(|_| "fio-plot".to_owned());
    if Command::new(&plot).arg("--help").output().is_err() {
        println!("skipped: fio-plot is not installed (pip install fio-plot, or FIO_PLOT=PATH)");
        return;
    }
    let place = measured("inline");
    assert!(
        bench(place.path(), "export run --output plots")
            .status
            .success()
    );
    let drawn = Command::new(&plot)
        .args("-i plots/4k -T run -r randread -l -d 1 4 -n 1 -o plot.png".split_whitespace())
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&drawn.stderr).into_owned();
    assert!(drawn.status.success(), "{said}");
    let picture = fs::read(place.path().join("plot.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"), "{said}");
}

//! `crypt-bench export` as a user meets it, and fio-plot on what it writes.

#![forbid(unsafe_code)]
use std::fs;
use std::process::Command;

use crate::common::Place;

/// A folder with the results of a small matrix in `run`.
fn measured(policies: &str) -> Place {
    let place = Place::new();
    let arguments = format!(
        "matrix --policy {policies} --only --device null --rw randread --bs 4k,64k --depth 1,4 --size 8m \
         --runtime 10ms --ramp 1ms --repeats 2 --out run"
    );
    place.succeed(&arguments);
    place
}

#[test]
fn every_valid_cell_is_a_job_and_a_file() {
    let place = measured("inline,adaptive");
    let output = place.run("export run --format fio-json+ --output all.json");
    assert!(output.status.success());
    let jobs = place.json("all.json")["jobs"].clone();
    let jobs = jobs.as_array().unwrap();
    assert!(!jobs.is_empty() && jobs.len() <= 8, "{}", jobs.len());
    let output = place.run("export run --output plots");
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
        let alone = &place.json(&file)["jobs"][0];
        assert_eq!(
            alone["read"]["total_ios"], job["read"]["total_ios"],
            "{file}"
        );
        assert!(job["read"]["clat_ns"]["bins"].is_object());
        assert!(alone["read"]["clat_ns"].get("bins").is_none());
    }
    let again = place.run("export run --output plots");
    assert_eq!(again.status.code(), Some(2));
    let nothing = place.run("export plots");
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
    assert!(place.run("export run --output plots").status.success());
    let drawn = Command::new(&plot)
        .args("-i plots/4k -T run -r randread -l -d 1 4 -n 1 -o plot.png".split_whitespace())
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&drawn.stderr).into_owned();
    assert!(drawn.status.success(), "{said}");
    let picture = fs::read(place.path("plot.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"), "{said}");
}

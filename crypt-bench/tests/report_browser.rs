//! Measures a small matrix with the real program and opens its report in headless Chromium: the
//! numbers on screen are those of `results.jsonl`, the controls work, nothing is logged as an error,
//! and the page fits a phone. Prints `skipped: ...` where there is no Chromium.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What the page is asked after it has loaded. Runs as a script at the end of a copy of it.
const PROBE: &str = include_str!("report_probe.js");

/// Brings the answers of the framed page to the outer one.
const COPY: &str = r#"addEventListener("load", () => {
    const answer = document.createElement("script");
    answer.type = "application/json";
    answer.id = "answer";
    const inner = document.getElementById("page").contentDocument;
    answer.textContent = inner.getElementById("probe").textContent;
    document.body.append(answer);
});"#;

/// How long Chromium may take on a slow machine before the test fails.
const PATIENCE: Duration = Duration::from_secs(240);

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

struct Browser {
    program: &'static str,
    folder: tempfile::TempDir,
}

impl Browser {
    /// `None`, with the reason printed, where no Chromium runs.
    fn find() -> Option<Self> {
        let runs = |name: &&&str| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        };
        let Some(program) = NAMES.iter().find(runs) else {
            println!("skipped: no Chromium (looked for {})", NAMES.join(", "));
            return None;
        };
        Some(Self {
            program,
            folder: tempfile::tempdir().unwrap(),
        })
    }

    /// The answers of the probe on `page`, and the lines of the console. The page sits in a frame of
    /// `width` CSS pixels, because a browser window can't be as narrow as a phone.
    fn probe(&self, page: &str, width: u32) -> (Value, Vec<String>) {
        let probe = format!("<script>{PROBE}</script></body>");
        let inner = page.replacen("</body>", &probe, 1);
        let inner = inner.replace('&', "&amp;").replace('"', "&quot;");
        let outer = format!(
            "<!doctype html><html><body><iframe id=\"page\" width=\"{width}\" height=\"900\" \
             srcdoc=\"{inner}\"></iframe><script>{COPY}</script></body></html>"
        );
        let path = self.folder.path().join("page.html");
        fs::write(&path, outer).unwrap();
        let (dom, log) = self.open(&path);
        let answer = dom
            .split("<script type=\"application/json\" id=\"answer\">")
            .nth(1)
            .and_then(|rest| rest.split("</script>").next())
            .unwrap_or_else(|| panic!("the probe did not run:\n{log}"));
        let console = log
            .lines()
            .filter(|line| line.contains(":CONSOLE:"))
            .map(str::to_owned)
            .collect();
        (serde_json::from_str(answer).unwrap(), console)
    }

    /// The page's DOM after loading, and what was logged. Output goes to files, so that a full pipe
    /// can't stop it.
    fn open(&self, page: &Path) -> (String, String) {
        let at = |name: &str| self.folder.path().join(name);
        let profile = tempfile::tempdir_in(self.folder.path()).unwrap();
        let mut child = Command::new(self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-sync",
            ])
            .args([
                "--disable-component-update",
                "--enable-logging=stderr",
                "--v=0",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--window-size=1400,1000")
            .arg("--dump-dom")
            .arg(format!("file://{}", page.display()))
            .stdout(fs::File::create(at("dom")).unwrap())
            .stderr(fs::File::create(at("log")).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("Chromium did not end within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let read = |name: &str| String::from_utf8_lossy(&fs::read(at(name)).unwrap()).into_owned();
        (read("dom"), read("log"))
    }
}

/// A results folder of 2 x 2 x 2 cells under three policies, measured once, in a debug build.
fn measured(parent: &Path) -> PathBuf {
    let out = parent.join("results");
    let output = Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(["matrix", "--policy", "adaptive", "--device", "memory,null"])
        .args([
            "--rw", "randread", "--bs", "4k,64k", "--depth", "1,4", "--size", "4m",
        ])
        .args([
            "--runtime",
            "20ms",
            "--ramp",
            "2ms",
            "--repeats",
            "1",
            "--out",
        ])
        .arg(&out)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    out
}

fn report(dir: &Path, format: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_crypt-bench"))
        .args(["report", "--format", format, "-o", "-"])
        .arg(dir)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn records(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("results.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn is_valid(report: &Value, record: &Value) -> bool {
    let cell = &record["cell"];
    let same = |row: &&Value| {
        ["device", "policy", "block_size_bytes", "depth"]
            .iter()
            .all(|key| row[key] == cell[key])
    };
    let row = report["cells"].as_array().unwrap().iter().find(same);
    row.unwrap()["state"] == "valid"
}

#[test]
fn the_numbers_on_screen_are_those_of_the_results() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let dir = measured(folder.path());
    let summary: Value = serde_json::from_str(&report(&dir, "json")).unwrap();
    let (seen, console) = browser.probe(&report(&dir, "html"), 1280);
    assert_eq!(console, Vec::<String>::new());
    let rows = seen["rows"].as_array().unwrap();
    let records = records(&dir);
    assert_eq!(rows.len(), records.len());
    for record in &records {
        let cell = &record["cell"];
        let same = |row: &&Value| {
            row["Device"] == cell["device"]
                && row["Policy"] == cell["policy"]
                && row["Block"] == cell["block_size_bytes"]
                && row["Depth"] == cell["depth"]
        };
        let row = rows
            .iter()
            .find(same)
            .unwrap_or_else(|| panic!("no row for {cell}"));
        let read = &record["read"];
        for (column, expected) in [
            ("Throughput", &read["bw_bytes_per_s"]),
            ("IOPS", &read["iops"]),
            ("Mean", &read["lat"]["mean_ns"]),
            ("p50", &read["lat"]["p50_ns"]),
            ("p99", &read["lat"]["p99_ns"]),
            ("p99.9", &read["lat"]["p99_9_ns"]),
        ] {
            if is_valid(&summary, record) {
                assert_eq!(
                    row[column].as_f64(),
                    expected.as_f64(),
                    "{column} of {cell}"
                );
            } else {
                assert_eq!(row[column], Value::Null, "{column} of {cell}");
            }
        }
    }
    assert_eq!(
        seen["numbers_in_maps_but_not_in_tables"],
        Value::Array(Vec::new())
    );
    let headline = summary["verdict"][0].as_str().unwrap();
    assert_eq!(seen["headline"].as_str().unwrap(), headline);
}

#[test]
fn the_controls_work_and_the_page_fits_a_phone() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let dir = measured(folder.path());
    for width in [400, 1280] {
        let (seen, console) = browser.probe(&report(&dir, "html"), width);
        assert_eq!(console, Vec::<String>::new());
        assert_eq!(seen["width_px"], width);
        assert_eq!(
            seen["wider_than_the_page"],
            serde_json::json!([]),
            "{width}"
        );
        assert_eq!(seen["sorted_up"], true);
        assert_eq!(seen["sorted_down"], true);
        assert_eq!(seen["filter_shows"], seen["filter_expects"]);
        assert_eq!(seen["visible_metrics"], serde_json::json!(["lat_ns_p99"]));
        assert_eq!(seen["visible_devices"], serde_json::json!(["null"]));
        assert_eq!(seen["themes"], serde_json::json!(["dark", "light"]));
        assert!(
            seen["least_contrast"].as_f64().unwrap() >= 4.5,
            "{}",
            seen["least_contrast"]
        );
    }
}

#[test]
fn an_error_in_a_page_would_be_noticed() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let page = "<!doctype html><html><head></head><body><script>nonsense()</script></body></html>";
    let path = browser.folder.path().join("broken.html");
    fs::write(&path, page).unwrap();
    let (_, log) = browser.open(&path);
    assert!(log.lines().any(|line| line.contains(":CONSOLE:")), "{log}");
}

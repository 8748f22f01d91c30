//! The page as text: numbers present, markup escaped, nothing fetched, size bounded.

#![forbid(unsafe_code)]

use super::super::cells::Run;
use super::super::metric::Metric;
use super::super::model::Report;
use super::super::palette::Rgb;
use super::{SCRIPT, STYLE, page};
use crate::doubt::Doubt;
use crate::result::{ResultRecord, Rw};
use crate::testing::{cell, manifest, record};

fn run_of(records: Vec<ResultRecord>) -> Run {
    Run {
        name: "2026-01-02-host".to_owned(),
        manifest: manifest(&records),
        records,
    }
}

/// A matrix of `devices` x 2 x sizes x depths x 3 policies, two repeats each.
fn matrix(devices: &[&str], sizes: &[u64], depths: &[u32]) -> Vec<ResultRecord> {
    let mut records = Vec::new();
    for device in devices {
        for rw in [Rw::RandRead, Rw::RandWrite] {
            for (policy, factor) in [("inline", 1.0), ("workqueue", 1.2), ("adaptive", 1.3)] {
                for (&size, &depth) in sizes
                    .iter()
                    .flat_map(|s| depths.iter().map(move |d| (s, d)))
                {
                    let mut params = cell(policy, size, depth);
                    params.device = (*device).to_owned();
                    params.rw = rw;
                    params.rwmixread_percent = if rw.reads() { 100 } else { 0 };
                    let bw = 1e6 * factor * (size as f64).sqrt() * f64::from(depth).sqrt();
                    records.push(record(params.clone(), 1, bw));
                    records.push(record(params, 2, bw * 1.01));
                }
            }
        }
    }
    records
}

#[test]
fn every_number_of_every_cell_is_on_the_page() {
    let runs = [run_of(matrix(&["memory"], &[4096, 65536], &[1, 32]))];
    let report = Report::new(&runs);
    let html = page(&report);
    for cell in &report.cells {
        for metric in Metric::ALL {
            let value = cell.cell(metric).value().unwrap();
            let entry = format!("<td data-v=\"{value}\">{}</td>", metric.unit().text(value));
            assert!(html.contains(&entry), "{entry}");
        }
    }
    assert_eq!(
        html.matches("<tbody>\n<tr><td class=\"t\">memory").count(),
        1
    );
    assert_eq!(html, page(&report), "the same report gives the same bytes");
}

#[test]
fn names_from_outside_stay_text() {
    let hostile = "file:/tmp/</script><img src=x onerror=alert(1)>\"'&\u{1b}[31m\u{202e}";
    let mut runs = [run_of(matrix(&[hostile], &[4096], &[1]))];
    runs[0].name = hostile.to_owned();
    runs[0].manifest.environment.host = hostile.to_owned();
    runs[0].manifest.environment.cpu_model = hostile.to_owned();
    runs[0].manifest.definition_toml = hostile.to_owned();
    runs[0].records[0].achieved.notes.push(hostile.to_owned());
    let html = page(&Report::new(&runs));
    assert!(!html.contains("<img") && !html.contains("onerror=alert(1)>"));
    assert_eq!(html.matches("</script>").count(), 1);
    assert!(!html.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn the_page_fetches_nothing() {
    let runs = [run_of(matrix(&["memory"], &[4096], &[1]))];
    let html = page(&Report::new(&runs));
    let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
    let rest = html.replace(namespace, "");
    assert!(!rest.contains("http://") && !rest.contains("https://") && !rest.contains("@import"));
    assert!(!rest.contains(" src=") && rest.contains("default-src 'none'"));
    assert!(!SCRIPT.contains("</"));
}

#[test]
fn ids_are_unique() {
    let runs = [run_of(matrix(&["memory", "null"], &[4096], &[1]))];
    let html = page(&Report::new(&runs));
    let mut ids: Vec<&str> = html
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn invalid_and_missing_cells_say_so_everywhere() {
    let mut records = matrix(&["memory"], &[4096], &[1, 32]);
    for record in &mut records {
        if record.cell.depth == 32 && record.cell.policy == "inline" {
            record.doubts.push(Doubt::DepthNotReached {
                asked: 32,
                mean: 9.5,
            });
        }
    }
    let mut run = run_of(records);
    run.manifest.plan.push(cell("inline", 65536, 1));
    let runs = [run];
    let html = page(&Report::new(&runs));
    assert!(html.contains("invalid: depth 32 asked, 9.5 in flight on average"));
    assert!(html.contains("<li>4k 32: depth 32 asked"));
    assert!(html.contains("<td data-v=\"\">missing</td>") && html.contains("url(#f0-bw-0-m)"));
}

#[test]
fn no_results_are_a_page_too() {
    let runs = [run_of(Vec::new())];
    for report in [Report::new(&runs), Report::new(&[])] {
        assert!(page(&report).contains("There are no results."));
    }
}

#[test]
fn five_hundred_cells_stay_under_three_megabytes() {
    let sizes = [512, 4096, 16384, 65536, 262_144, 1 << 20, 4 << 20];
    let depths = [1, 2, 4, 8, 16, 32];
    let runs = [run_of(matrix(
        &["memory", "file:/data/disk.img"],
        &sizes,
        &depths,
    ))];
    let report = Report::new(&runs);
    assert!(report.cells.len() >= 500, "{}", report.cells.len());
    let bytes = page(&report).len();
    assert!(bytes < 3_000_000, "{bytes}");
}

#[test]
fn text_has_contrast_in_both_themes() {
    let themes: Vec<&str> = STYLE.split("--paper:").skip(1).collect();
    assert!(themes.len() >= 3);
    for theme in &themes[..3] {
        let color = |name: &str| -> Rgb {
            let text = format!("--paper:{theme}");
            let value = text.split(&format!("--{name}: #")).nth(1).unwrap();
            let channel = |i: usize| u8::from_str_radix(&value[i..i + 2], 16).unwrap();
            Rgb(channel(0), channel(2), channel(4))
        };
        for ground in ["paper", "panel"] {
            for ink in ["ink", "muted", "accent", "warn"] {
                let contrast = color(ground).contrast(color(ink));
                assert!(contrast >= 4.5, "{ink} on {ground}: {contrast:.2}");
            }
        }
        assert!(color("accent").contrast(color("accent-ink")) >= 4.5);
    }
}

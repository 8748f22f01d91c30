//! What the numbers depend on: the machine, the program, and how the run was made.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use super::super::cells::Run;
use super::super::escape::escape;
use super::super::model::Report;
use crate::manifest::{Environment, State};

/// The sections at the end of the page.
pub(super) fn sections(report: &Report<'_>) -> String {
    let each = |of: fn(&Run) -> String| -> String {
        let runs = report.runs.iter();
        runs.map(|run| {
            let name = if report.runs.len() > 1 {
                format!("<h3>{}</h3>\n", escape(&run.name))
            } else {
                String::new()
            };
            name + &of(run)
        })
        .collect()
    };
    format!(
        "<section id=\"environment\">\n<h2>Environment</h2>\n{}</section>\n\
         <section id=\"made\">\n<h2>How it was made</h2>\n{}</section>\n",
        each(machine),
        each(provenance)
    )
}

fn machine(run: &Run) -> String {
    let environment = &run.manifest.environment;
    if !environment.is_known() {
        return "<p>Imported, measured on a machine that is not described.</p>\n".to_owned();
    }
    let mut rows = vec![
        ("Host", environment.host.clone()),
        ("CPU", cpu(environment)),
        ("CPU features", environment.cpu_flags.join(" ")),
        ("Kernel", environment.kernel.clone()),
        ("Memory", bytes(environment.memory_bytes)),
        ("Governor", or_none(environment.governor.as_deref())),
        ("Clock", clock(environment)),
        ("Locked memory", locked(environment)),
        ("Mitigations", environment.mitigations.join("; ")),
        ("Engines", achieved(run, |record| &record.achieved.engine)),
        (
            "Cipher backends",
            achieved(run, |record| {
                record.achieved.cipher_backend.as_deref().unwrap_or("none")
            }),
        ),
    ];
    for storage in &environment.storage {
        let place = storage.mount_point.as_deref().unwrap_or("no mount point");
        rows.push((
            "Storage",
            format!(
                "{}: {} on {place}, {} {}",
                storage.device, storage.filesystem, storage.source, storage.options
            ),
        ));
    }
    let notes: BTreeSet<&str> = run
        .records
        .iter()
        .flat_map(|record| record.achieved.notes.iter().map(String::as_str))
        .collect();
    rows.extend(notes.into_iter().map(|note| ("Remark", note.to_owned())));
    list(&rows)
}

fn provenance(run: &Run) -> String {
    let manifest = &run.manifest;
    let seeds: BTreeSet<String> = manifest
        .plan
        .iter()
        .map(|cell| cell.seed.to_string())
        .collect();
    let state = match manifest.state {
        State::Running => "running, or killed before it ended",
        State::Interrupted => "interrupted; --resume continues it",
        State::Complete => "complete",
    };
    let tool = &manifest.tool;
    let revision = tool.git_revision.as_deref().unwrap_or("unknown revision");
    let rows = [
        ("Results", run.name.clone()),
        ("Command", command(&manifest.command_line)),
        ("Started", manifest.started.clone()),
        ("Finished", or_none(manifest.finished.as_deref())),
        ("State", state.to_owned()),
        (
            "Measurements",
            format!(
                "{} of {} ({} cells, {} repeats)",
                run.records.len(),
                manifest.plan.len() * manifest.repeats as usize,
                manifest.plan.len(),
                manifest.repeats
            ),
        ),
        ("Seed", seeds.into_iter().collect::<Vec<_>>().join(", ")),
        (
            "Program",
            format!(
                "crypt-bench {} ({revision}), {} build",
                tool.version, tool.profile
            ),
        ),
        ("Binary SHA-256", tool.binary_sha256.clone()),
        ("Plan hash", manifest.plan_hash.clone()),
    ];
    format!(
        "{}<p>The definition, for <code>crypt-bench matrix --matrix FILE</code>:</p>\n\
         <pre tabindex=\"0\"><code>{}</code></pre>\n",
        list(&rows),
        escape(&manifest.definition_toml)
    )
}

/// A command line as a shell takes it.
fn command(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn list(rows: &[(&str, String)]) -> String {
    let rows: String = rows
        .iter()
        .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value)))
        .collect();
    format!("<dl>\n{rows}</dl>\n")
}

/// The distinct values of something over all records.
fn achieved<'a>(run: &'a Run, of: impl Fn(&'a crate::result::ResultRecord) -> &'a str) -> String {
    let values: BTreeSet<&str> = run.records.iter().map(of).collect();
    values.into_iter().collect::<Vec<_>>().join(", ")
}

fn cpu(environment: &Environment) -> String {
    let guest = if environment.virtual_machine {
        ", in a virtual machine"
    } else {
        ""
    };
    format!(
        "{} · {} CPUs usable{guest}",
        environment.cpu_model, environment.cpus
    )
}

fn clock(environment: &Environment) -> String {
    match environment.tsc_ticks_per_ns {
        Some(ticks) => format!(
            "{}, {ticks:.3} ticks per ns (not CPU cycles)",
            environment.clock
        ),
        None => environment.clock.clone(),
    }
}

fn locked(environment: &Environment) -> String {
    environment
        .memlock_limit_bytes
        .map_or("unlimited".to_owned(), bytes)
}

fn bytes(bytes: u64) -> String {
    let in_units_of = |shift: u32| bytes as f64 / (1_u64 << shift) as f64;
    match bytes.checked_ilog2().unwrap_or(0) {
        30.. => format!("{:.1} GiB", in_units_of(30)),
        20.. => format!("{:.1} MiB", in_units_of(20)),
        10.. => format!("{:.1} KiB", in_units_of(10)),
        _ => format!("{bytes} bytes"),
    }
}

fn or_none(text: Option<&str>) -> String {
    text.unwrap_or("none").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted_into_a_shell() {
        let words = ["crypt-bench", "--device", "file:a b'c", ""].map(str::to_owned);
        assert_eq!(command(&words), "crypt-bench --device 'file:a b'\\''c' ''");
    }
}

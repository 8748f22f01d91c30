//! The verdict of a gate as JUnit XML: a test case for each cell, and one for the gate as a whole.
//!
//! A regression is a failure, what leaves nothing to judge an error, and what is inconclusive is skipped - or a
//! failure where the gate is told to fail on it.

#![forbid(unsafe_code)]

use super::artefact::{Artefact, CellVerdict, Verdict};
use super::text;
use crate::report::escape::escape;

/// How a test case ended.
enum End {
    Passed,
    Failure,
    Error,
    Skipped,
}

/// The whole document.
#[must_use]
pub fn document(artefact: &Artefact, strict: bool) -> String {
    let end = |verdict| end(verdict, strict);
    // The gate as a whole is judged by what is not said of a cell.
    let whole = artefact
        .reasons
        .iter()
        .map(|reason| reason.verdict)
        .max()
        .unwrap_or(Verdict::Pass);
    let verdicts = artefact
        .cells
        .iter()
        .map(|cell| cell.verdict)
        .chain([whole]);
    let count = |wanted: fn(&End) -> bool| {
        verdicts
            .clone()
            .filter(|verdict| wanted(&end(*verdict)))
            .count()
    };
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        verdicts.clone().count(),
        count(|end| matches!(end, End::Failure)),
        count(|end| matches!(end, End::Error)),
        count(|end| matches!(end, End::Skipped)),
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"crypt-bench gate\" {counts}>\n  \
         <testsuite name=\"crypt-bench gate\" {counts}>\n"
    );
    let remarks = text::remarks(artefact).join("\n");
    xml += &case("crypt-bench gate", "gate", (whole, end(whole)), &remarks);
    for cell in &artefact.cells {
        let class = format!("{} {}", cell.cell.device, cell.cell.rw.name());
        xml += &case(
            &class,
            &cell.name,
            (cell.verdict, end(cell.verdict)),
            &figures(cell),
        );
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

const fn end(verdict: Verdict, strict: bool) -> End {
    match verdict {
        Verdict::Pass | Verdict::Improved => End::Passed,
        Verdict::Inconclusive if strict => End::Failure,
        Verdict::Inconclusive => End::Skipped,
        Verdict::Regressed => End::Failure,
        _ => End::Error,
    }
}

fn case(class: &str, name: &str, (verdict, end): (Verdict, End), body: &str) -> String {
    let open = format!(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
        escape(class),
        escape(name)
    );
    let message = format!("message=\"{}\"", verdict.name());
    let body = escape(body);
    match end {
        End::Passed => format!("{open}>\n      <system-out>{body}</system-out>\n    </testcase>\n"),
        End::Failure => format!(
            "{open}>\n      <failure {message} type=\"{}\">{body}</failure>\n    </testcase>\n",
            verdict.name()
        ),
        End::Error => format!(
            "{open}>\n      <error {message} type=\"{}\">{body}</error>\n    </testcase>\n",
            verdict.name()
        ),
        End::Skipped => format!("{open}>\n      <skipped {message}/>\n    </testcase>\n"),
    }
}

/// What is known of a cell, a line for each reason and metric.
fn figures(cell: &CellVerdict) -> String {
    let reasons = cell
        .reasons
        .iter()
        .map(|reason| format!("{}: {}", reason.verdict.name(), reason.text));
    let changes = cell.changes.iter().map(|judged| {
        let [metric, baseline, candidate, change] = judged.change.columns();
        format!(
            "{}: {metric}: {baseline} -> {candidate}, {change}",
            judged.verdict.name()
        )
    });
    reasons.chain(changes).collect::<Vec<_>>().join("\n")
}

//! The verdict of a gate as workflow commands of GitHub Actions, which become annotations.

#![forbid(unsafe_code)]

use super::artefact::{Artefact, Verdict};
use super::text;

/// Most annotations of one kind that GitHub shows for a step.
const MOST: usize = 9;

/// One command per line: the verdict, then what is not a pass, the gravest first.
#[must_use]
pub fn commands(artefact: &Artefact, strict: bool) -> String {
    let mut lines = vec![command(artefact.verdict, strict, &text::headline(artefact))];
    let said = artefact
        .reasons
        .iter()
        .map(|reason| (reason.verdict, reason.text.clone()));
    let cells = text::by_gravity(artefact).into_iter().flat_map(|cell| {
        let reasons = cell
            .reasons
            .iter()
            .map(|reason| (reason.verdict, reason.text.clone()));
        let changes = cell.changes.iter().map(|judged| {
            let [metric, baseline, candidate, change] = judged.change.columns();
            (
                judged.verdict,
                format!("{metric} {change} ({baseline} -> {candidate})"),
            )
        });
        let all: Vec<_> = reasons.chain(changes).collect();
        all.into_iter()
            .map(move |(verdict, text)| (verdict, format!("{}: {text}", cell.name)))
    });
    let grave: Vec<(Verdict, String)> = said
        .chain(cells)
        .filter(|(verdict, _)| *verdict > Verdict::Improved)
        .collect();
    lines.extend(
        grave
            .iter()
            .take(MOST)
            .map(|(verdict, text)| command(*verdict, strict, text)),
    );
    if grave.len() > MOST {
        let rest = format!(
            "{} more, in the other outputs of the gate",
            grave.len() - MOST
        );
        lines.push(format!("::notice title=crypt-bench gate::{}", data(&rest)));
    }
    lines.concat()
}

fn command(verdict: Verdict, strict: bool, text: &str) -> String {
    let level = match verdict {
        Verdict::Pass | Verdict::Improved => "notice",
        Verdict::Inconclusive if !strict => "warning",
        _ => "error",
    };
    format!(
        "::{level} title=crypt-bench gate%3A {}::{}\n",
        verdict.name(),
        data(text)
    )
}

/// A text on one line of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

//! Findings for people: what disturbs first, each with what to do.

#![forbid(unsafe_code)]

use super::{Finding, State};
use crate::report::escape::plain;

/// Every finding.
#[must_use]
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for state in [State::Disturbs, State::Note, State::Unknown, State::Good] {
        for finding in findings.iter().filter(|finding| finding.state == state) {
            text += &format!(
                "{:9}  {:20}  {}\n",
                word(state),
                finding.check,
                plain(&finding.found)
            );
            if let Some(advice) = finding.advice {
                text += &format!("{:9}  {:20}  -> {advice}\n", "", "");
            }
        }
    }
    let disturbing = findings
        .iter()
        .filter(|finding| finding.state == State::Disturbs)
        .count();
    text + &match disturbing {
        0 => "\nnothing is seen to disturb measurements\n".to_owned(),
        1 => "\n1 thing disturbs measurements\n".to_owned(),
        some => format!("\n{some} things disturb measurements\n"),
    }
}

const fn word(state: State) -> &'static str {
    match state {
        State::Disturbs => "disturbs",
        State::Note => "note",
        State::Unknown => "unknown",
        State::Good => "good",
    }
}

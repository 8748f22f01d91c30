//! The list of options, for `explain --options`. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write;

use crate::jobfile::catalog::OPTIONS;
use crate::jobfile::value::Kind;

/// One line per option.
pub(super) fn text() -> String {
    let mut text = String::new();
    for info in OPTIONS {
        let name = [&[info.name], info.aliases].concat().join(", ");
        let _ = writeln!(text, "{name:<28} {}", form(info.kind));
    }
    text
}

fn form(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Paths => "path".to_owned(),
        Kind::Prefix => "how names of files begin; nothing: with the name of the job".to_owned(),
        Kind::Flag => "nothing, 0 or 1".to_owned(),
        Kind::Bool => "0 or 1".to_owned(),
        Kind::Count { min, max } if max >= u64::from(u32::MAX) => format!("number from {min}"),
        Kind::Count { min, max } => format!("number, {min} to {max}"),
        Kind::Size => "size: 4k".to_owned(),
        Kind::SizeRange => "size or range: 4k, 4k-64k".to_owned(),
        Kind::Share => "size or percentage: 4k, 10%".to_owned(),
        Kind::Time { bare_seconds: true } => "time: 10s, 500ms; 10 is seconds".to_owned(),
        Kind::Time { .. } => "time: 10s, 500ms; 10 is microseconds".to_owned(),
        Kind::TimeRange => "time or range: 5s, 1s-5s; 5 is seconds".to_owned(),
        Kind::Sizes => "sizes: read,write,trim".to_owned(),
        Kind::Counts { .. } => "numbers: read,write,trim".to_owned(),
        Kind::Ranges => "ranges: 4k-64k, read,write,trim".to_owned(),
        Kind::Splits => "weighted sizes: 4k/60:64k/40, read,write,trim".to_owned(),
        Kind::Pattern => "read, write, randread, randwrite, rw, randrw, with :N".to_owned(),
        Kind::Cpus => "CPUs: 0,2,4-7".to_owned(),
        Kind::Percentiles => "percentiles: 50:99:99.9".to_owned(),
        Kind::Spread => {
            "random, zipf:N, pareto:N, normal:N, zoned:SHARE/PERCENT:..., zoned_abs:SHARE/SIZE:..."
                .to_owned()
        }
        Kind::Bytes { offsets } => {
            let offset = if offsets { ", %o is the offset" } else { "" };
            format!("bytes: 0xff, \"text\", 'file', 12{offset}")
        }
        Kind::Choice(words) => words.join(", "),
    }
}

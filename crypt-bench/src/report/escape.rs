//! Makes any text safe to put between HTML or SVG tags, or between the quotes of an attribute.
//!
//! Device names, paths and host names come from outside; every string that reaches a report passes
//! through here exactly once.

#![forbid(unsafe_code)]

use std::borrow::Cow;

/// `text` with markup made harmless. Control characters, which XML forbids, become U+FFFD, and so
/// do those that reverse the direction of writing, which could make a name read as another one.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if needs_escape(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// `text` on one line, without characters that a terminal or a reader could be misled by.
#[must_use]
pub fn plain(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' | '\t' => ' ',
        c if is_unprintable(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(visible).collect()
}

fn needs_escape(c: char) -> bool {
    matches!(c, '&' | '<' | '>' | '"' | '\'') || is_unprintable(c)
}

fn is_unprintable(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text_afterwards() {
        assert_eq!(
            escape("<img src=x onerror='alert(\"1\")'>&"),
            "&lt;img src=x onerror=&#39;alert(&quot;1&quot;)&#39;&gt;&amp;"
        );
    }

    #[test]
    fn terminal_sequences_and_reversed_writing_are_defused() {
        assert_eq!(
            escape("a\u{1b}[31m\0\u{202e}b"),
            "a\u{fffd}[31m\u{fffd}\u{fffd}b"
        );
        assert_eq!(plain("\u{1b}[2J\n<b>"), "\u{fffd}[2J <b>");
    }

    #[test]
    fn harmless_text_is_not_copied() {
        assert!(matches!(escape("model:nvme — 4 KiB"), Cow::Borrowed(_)));
    }
}

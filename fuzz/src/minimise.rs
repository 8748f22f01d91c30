//! Makes an input shorter that breaks something, as long as it still does. Pure.

#![forbid(unsafe_code)]

/// The shortest input found that `breaks` in the same way, by leaving out pieces: halves first, single bytes last.
///
/// Ends when no piece can be left out, or when `goes_on` says so; `input` itself is taken to break.
pub fn minimise(
    input: &[u8],
    mut breaks: impl FnMut(&[u8]) -> bool,
    goes_on: impl Fn() -> bool,
) -> Vec<u8> {
    let mut shortest = input.to_vec();
    let mut piece = shortest.len().div_ceil(2);
    while piece > 0 && goes_on() {
        let before = shortest.len();
        let mut at = 0;
        while at < shortest.len() && goes_on() {
            let end = (at + piece).min(shortest.len());
            let without = [&shortest[..at], &shortest[end..]].concat();
            if breaks(&without) {
                shortest = without;
            } else {
                at = end;
            }
        }
        // Single bytes until nothing changes: one may have held another in its place.
        if piece > 1 || shortest.len() == before {
            piece /= 2;
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays() {
        let breaks = |input: &[u8]| {
            let mut rest = input.iter();
            b"abc".iter().all(|byte| rest.any(|other| other == byte))
        };
        let input = [b"xaxx".repeat(9), b"bbyy".repeat(7), b"zcz".repeat(5)].concat();
        assert_eq!(minimise(&input, breaks, || true), b"abc");
        assert_eq!(minimise(&input, breaks, || false), input);
        assert_eq!(minimise(&input, |_| true, || true), b"");
        assert_eq!(minimise(b"", |_| true, || true), b"");
    }
}

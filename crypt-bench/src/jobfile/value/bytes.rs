//! Patterns of bytes: `buffer_pattern` and `verify_pattern`.
//!
//! Pieces without anything between them, as fio has them: `0x` and hexadecimal digits, a decimal number (its
//! bytes from the lowest one up to the last that is not zero), `"text"`, `'file'`, and `%o` for the offset of
//! the request in eight bytes, the lowest first.

#![forbid(unsafe_code)]

/// Longest pattern in bytes, as in fio.
pub const MOST_BYTES: usize = 512;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What this file holds, as far as the pattern has room.
    File(String),
    /// The offset of the request, in eight bytes.
    Offset,
}

/// Reads a pattern; `offsets` says whether `%o` has a meaning.
///
/// # Errors
/// What is wrong and what to write, in words.
pub(super) fn pieces(text: &str, offsets: bool) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, left) = next(rest, offsets)?;
        pieces.push(piece);
        rest = left;
    }
    let len: usize = pieces.iter().map(Piece::len_bytes).sum();
    if len > MOST_BYTES {
        return Err(format!("more than {MOST_BYTES} bytes"));
    }
    Ok(pieces)
}

impl Piece {
    /// Bytes that are known without looking at files.
    fn len_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(_) => 0,
            Self::Offset => 8,
        }
    }
}

fn next(text: &str, offsets: bool) -> Result<(Piece, &str), String> {
    if let Some(rest) = text.strip_prefix('"') {
        let (inside, rest) = quoted(rest, '"')?;
        return Ok((Piece::Bytes(inside.as_bytes().to_vec()), rest));
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let (inside, rest) = quoted(rest, '\'')?;
        return Ok((Piece::File(inside.to_owned()), rest));
    }
    if let Some(rest) = text.strip_prefix("%o") {
        if offsets {
            return Ok((Piece::Offset, rest));
        }
        return Err("`%o` is possible in verify_pattern only; write bytes".to_owned());
    }
    if let Some(rest) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hexadecimal(rest);
    }
    decimal(text)
}

fn quoted(text: &str, end: char) -> Result<(&str, &str), String> {
    match text.split_once(end) {
        Some(("", _)) => Err(format!("{end}{end} is empty; write something between")),
        Some(found) => Ok(found),
        None => Err(format!("a {end} without its end")),
    }
}

/// Pairs of digits from the left; a single digit at the end is a byte of its own.
fn hexadecimal(text: &str) -> Result<(Piece, &str), String> {
    let digits_of = |text: &str| {
        text.find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(text.len())
    };
    let mut len = digits_of(text);
    // A `0` that an `x` follows begins the next piece.
    if text[len..].starts_with(['x', 'X']) && text[..len].ends_with('0') {
        len -= 1;
    }
    if len == 0 {
        return Err("0x without digits".to_owned());
    }
    let (digits, rest) = text.split_at(len);
    let bytes = digits.as_bytes().chunks(2).map(|pair| {
        pair.iter().fold(0, |byte, digit| {
            byte << 4 | char::from(*digit).to_digit(16).unwrap_or(0) as u8
        })
    });
    Ok((Piece::Bytes(bytes.collect()), rest))
}

/// A number of 32 bits with a sign, in as many bytes as it needs.
fn decimal(text: &str) -> Result<(Piece, &str), String> {
    let signs = usize::from(text.starts_with(['-', '+']));
    let digits = &text[signs..];
    let mut len = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    if digits[len..].starts_with(['x', 'X']) && digits[..len].ends_with('0') {
        len -= 1;
    }
    let (number, rest) = text.split_at(signs + len);
    let value: i32 = number.parse().map_err(|_| {
        format!(
            "`{text}`: write 0x and digits, a number from {} to {}, \"text\" or 'file'",
            i32::MIN,
            i32::MAX
        )
    })?;
    let bytes = value.to_le_bytes();
    let len = 4 - value.cast_unsigned().leading_zeros() as usize / 8;
    Ok((Piece::Bytes(bytes[..len.max(1)].to_vec()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let pieces = pieces(text, true).unwrap();
        let parts = pieces.into_iter().flat_map(|piece| match piece {
            Piece::Bytes(bytes) => bytes,
            Piece::Offset => vec![0; 8],
            Piece::File(name) => name.into_bytes(),
        });
        parts.collect()
    }

    #[test]
    fn pieces_are_the_bytes_that_fio_makes_of_them() {
        // What fio 3.33 writes with buffer_pattern.
        for (text, expected) in [
            ("\"abcd\"", b"abcd".to_vec()),
            ("-1024", vec![0x00, 0xfc, 0xff, 0xff]),
            ("66", vec![0x42]),
            ("0", vec![0]),
            ("0xFF0X1", vec![0xff, 0x01]),
            ("\"123\"0xFFeeCC", vec![0x31, 0x32, 0x33, 0xff, 0xee, 0xcc]),
            ("-100xab", vec![0xf6, 0xff, 0xff, 0xff, 0xab]),
            ("0xabc", vec![0xab, 0x0c]),
            ("0xdeadface", vec![0xde, 0xad, 0xfa, 0xce]),
            ("'f'12", vec![b'f', 12]),
            ("%o7", vec![0, 0, 0, 0, 0, 0, 0, 0, 7]),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "abc",
            "0x",
            "\"",
            "'x",
            "''",
            "-",
            "99999999999",
            "%p",
            "1 2",
            "é",
            "\"é",
        ] {
            assert!(pieces(text, true).is_err(), "{text}");
        }
        assert!(pieces("%o", false).unwrap_err().contains("verify_pattern"));
        assert!(pieces(&format!("0x{}", "ab".repeat(513)), true).is_err());
    }
}

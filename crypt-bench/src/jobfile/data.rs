//! What a job writes: options about the content of buffers, checked together.

#![forbid(unsafe_code)]

use super::Refusal;
use super::settings::Settings;
use super::value::{Piece, Value};

/// fio's chunk of random and compressible bytes.
const DEFAULT_CHUNK_BYTES: u64 = 512;

/// The content of buffers, before files of patterns are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// `buffer_pattern`, in pieces.
    pub pattern: Option<Vec<Piece>>,
    /// `zero_buffers`.
    pub zeros: bool,
    /// `buffer_compress_percentage`.
    pub compress_percent: u8,
    /// `buffer_compress_chunk`; 0 for one per request.
    pub compress_chunk_bytes: u64,
    /// `dedupe_percentage`.
    pub dedupe_percent: u8,
    /// `refill_buffers`.
    pub refill: bool,
    /// `scramble_buffers`.
    pub scramble: bool,
}

impl Buffers {
    /// From the values in force.
    ///
    /// # Errors
    /// Options of which one would have no effect, at its line.
    pub fn new(settings: &Settings) -> Result<Self, Refusal> {
        let percent = |name: &str| settings.number(name).unwrap_or(0) as u8;
        let buffers = Self {
            pattern: pattern(settings, "buffer_pattern"),
            zeros: settings.flag("zero_buffers"),
            compress_percent: percent("buffer_compress_percentage"),
            compress_chunk_bytes: settings
                .number("buffer_compress_chunk")
                .unwrap_or(DEFAULT_CHUNK_BYTES),
            dedupe_percent: percent("dedupe_percentage"),
            refill: settings.flag("refill_buffers"),
            scramble: settings.flag("scramble_buffers"),
        };
        if buffers.zeros {
            for name in [
                "buffer_pattern",
                "buffer_compress_percentage",
                "dedupe_percentage",
            ] {
                check_zeros(settings, name)?;
            }
        }
        Ok(buffers)
    }

    /// Whether it is what is written without any option: random bytes, made once.
    #[must_use]
    pub fn are_plain(&self) -> bool {
        let mixed = self.compress_percent > 0 || self.dedupe_percent > 0;
        self.pattern.is_none() && !(self.zeros || mixed || self.refill || self.scramble)
    }
}

/// A pattern that is set.
pub(super) fn pattern(settings: &Settings, name: &str) -> Option<Vec<Piece>> {
    match &settings.find(name)?.value {
        Value::Bytes(pieces) => Some(pieces.clone()),
        _ => None,
    }
}

/// fio takes either over zeros, wherever it stands.
fn check_zeros(settings: &Settings, name: &str) -> Result<(), Refusal> {
    let (Some(zeros), Some(other)) = (settings.find("zero_buffers"), settings.find(name)) else {
        return Ok(());
    };
    if settings.number(name) == Some(0) {
        return Ok(());
    }
    let message = format!(
        "zero_buffers: {name} at {} would win over it; remove one of the two",
        other.position
    );
    Err(Refusal::at(&zeros.position, message))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn buffers(options: &str) -> Result<Buffers, Refusal> {
        let fake = Fake::default().file("a.fio", &format!("[a]\n{options}\n"));
        let jobs = super::super::load(&["a.fio".to_owned()], &[], &fake)?;
        Ok(jobs[0].buffers.clone())
    }

    #[test]
    fn options_about_buffers_are_typed() {
        assert!(buffers("").unwrap().are_plain());
        assert!(
            buffers("scramble_buffers=0\nbuffer_compress_percentage=0")
                .unwrap()
                .are_plain()
        );
        let mixed =
            buffers("buffer_compress_percentage=50\nbuffer_pattern=0xff\ndedupe_percentage=10");
        let mixed = mixed.unwrap();
        assert_eq!(
            (mixed.compress_percent, mixed.compress_chunk_bytes),
            (50, 512)
        );
        assert_eq!(mixed.pattern, Some(vec![Piece::Bytes(vec![255])]));
        assert_eq!(mixed.dedupe_percent, 10);
        assert_eq!(
            buffers("buffer_compress_chunk=4k")
                .unwrap()
                .compress_chunk_bytes,
            4096
        );
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        for (options, reason) in [
            (
                "zero_buffers\nbuffer_pattern=1",
                "a.fio:2: zero_buffers: buffer_pattern at a.fio:3",
            ),
            (
                "buffer_compress_percentage=5\nzero_buffers=1",
                "a.fio:3: zero_buffers",
            ),
            ("buffer_pattern=%o", "verify_pattern only"),
            ("buffer_pattern=abc", "a.fio:2: buffer_pattern: `abc`"),
            ("buffer_pattern=\"a;b\"", "a.fio:2: buffer_pattern: a `;`"),
            ("dedupe_percentage=101", "out of range"),
        ] {
            let refusal = buffers(options).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{refusal}");
        }
    }
}

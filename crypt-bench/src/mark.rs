//! Marks of stored documents: whether a document is still as it was written, and of a version that this program reads.

#![forbid(unsafe_code)]

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::host::hex;

/// A document that has the version of its format and a mark.
pub(crate) trait Marked: Clone + Serialize {
    /// The version of the format that this program reads and writes.
    const VERSION: u32;

    /// The version that the document says.
    fn version(&self) -> u32;

    /// The mark that it has.
    fn mark(&mut self) -> &mut String;

    /// The document with the mark that fits it: SHA-256 over its JSON with an empty mark and without white space, in
    /// hex.
    fn marked(&self) -> Self {
        let mut document = self.clone();
        document.mark().clear();
        let text = serde_json::to_string(&document)
            .unwrap_or_else(|error| unreachable!("plain data: {error}"));
        *document.mark() = hex(&Sha256::digest(text.as_bytes()));
        document
    }

    /// The document, if it can be believed.
    ///
    /// # Errors
    /// Another version, or a mark that does not fit; in words.
    fn believed(mut self) -> Result<Self, String> {
        let (version, reads) = (self.version(), Self::VERSION);
        if version != reads {
            return Err(format!(
                "version {version} of the format, and this program reads version {reads}"
            ));
        }
        let mut fitting = self.marked();
        if self.mark() == fitting.mark() {
            Ok(self)
        } else {
            Err("changed after it was written: its mark does not fit".to_owned())
        }
    }
}

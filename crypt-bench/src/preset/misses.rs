//! Why a simulation does not show what was published: one explanation for each published change that is missed.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

const TEXT: &str = include_str!("../../../benches/published/misses.toml");

/// Explanations by the name of the published change.
///
/// # Errors
/// Only where this build's own file is broken.
pub fn explanations() -> Result<BTreeMap<String, String>, String> {
    toml::from_str(TEXT).map_err(|error| format!("benches/published/misses.toml: {error}"))
}

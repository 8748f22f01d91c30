//! Which implementation of a cipher runs: the registry, what this CPU has, and the choice.
//!
//! This is the only file that asks the CPU. The choice is made once per cipher, at construction:
//! what the caller names, else what the environment variable [`BACKEND_VARIABLE`] names, else the
//! fastest one available.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// Environment variable that forces a backend by name, for tests and measurements.
pub const BACKEND_VARIABLE: &str = "CRYPT_CORE_BACKEND";

/// The first of these CPU features that is missing.
#[cfg(target_arch = "x86_64")]
macro_rules! first_missing {
    ($($feature:tt),*) => {{
        let features = [$(($feature, std::arch::is_x86_feature_detected!($feature))),*];
        features.into_iter().find(|(_, found)| !found).map(|(name, _)| name)
    }};
}

/// An implementation of the ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// RustCrypto's `aes` and `xts-mode`, one block at a time: the oracle for all others.
    Portable,
    /// Safe code over the multi-block interface of RustCrypto's `aes`, which uses AES instructions
    /// where the CPU has them.
    Batched,
    /// AES-NI and PCLMULQDQ, one block in a register.
    #[cfg(target_arch = "x86_64")]
    AesNi,
    /// VAES and VPCLMULQDQ with AVX2, two blocks in a register.
    #[cfg(target_arch = "x86_64")]
    Vaes256,
    /// VAES and VPCLMULQDQ with AVX-512, four blocks in a register.
    #[cfg(target_arch = "x86_64")]
    Vaes512,
}

impl Backend {
    /// Every backend of this build, fastest first, whether or not this CPU has it.
    pub const ALL: &'static [Self] = &[
        #[cfg(target_arch = "x86_64")]
        Self::Vaes512,
        #[cfg(target_arch = "x86_64")]
        Self::Vaes256,
        #[cfg(target_arch = "x86_64")]
        Self::AesNi,
        Self::Batched,
        Self::Portable,
    ];

    /// Name, as in results, options and the environment variable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Batched => "batched",
            #[cfg(target_arch = "x86_64")]
            Self::AesNi => "aesni",
            #[cfg(target_arch = "x86_64")]
            Self::Vaes256 => "vaes256",
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512 => "vaes512",
        }
    }

    /// What this CPU lacks for the backend, or `None` where it can run.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Self::Portable | Self::Batched => None,
            #[cfg(target_arch = "x86_64")]
            Self::AesNi => first_missing!("aes", "pclmulqdq"),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes256 => first_missing!("aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq"),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512 => first_missing!(
                "aes",
                "pclmulqdq",
                "avx512f",
                "avx512bw",
                "avx512vl",
                "vaes",
                "vpclmulqdq"
            ),
        }
    }

    /// The backends that this CPU can run, fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(|backend| backend.missing().is_none())
    }

    /// The backend to use where the caller wants `wanted`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where this CPU lacks it; [`ErrorKind::InvalidInput`] where
    /// [`BACKEND_VARIABLE`] holds an unknown name.
    pub fn choose(wanted: Option<Self>) -> Result<Self> {
        match wanted {
            Some(backend) => backend.require(),
            None => Self::from_environment(),
        }
    }

    fn from_environment() -> Result<Self> {
        match std::env::var_os(BACKEND_VARIABLE) {
            None => Ok(Self::fastest()),
            Some(name) if name.is_empty() => Ok(Self::fastest()),
            Some(name) => name
                .to_string_lossy()
                .parse::<Self>()
                .and_then(Self::require)
                .map_err(|error| Error::new(error.kind(), format!("{BACKEND_VARIABLE}: {error}"))),
        }
    }

    fn fastest() -> Self {
        Self::available().next().unwrap_or(Self::Portable)
    }

    fn require(self) -> Result<Self> {
        match self.missing() {
            None => Ok(self),
            Some(_) => Err(self.unavailable()),
        }
    }

    /// The error for a backend that this CPU can't run.
    pub(super) fn unavailable(self) -> Error {
        Error::new(
            ErrorKind::Unsupported,
            format!(
                "cipher backend `{self}` needs {}, which this CPU lacks; available: {}",
                self.missing().unwrap_or("nothing"),
                list(Self::available())
            ),
        )
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|backend| backend.name() == name)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "unknown cipher backend `{name}`; available: {}",
                        list(Self::available())
                    ),
                )
            })
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn list(backends: impl Iterator<Item = Backend>) -> String {
    let names: Vec<&str> = backends.map(Backend::name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_list_the_choices() {
        for &backend in Backend::ALL {
            assert_eq!(backend.name().parse::<Backend>().unwrap(), backend);
        }
        let message = "sse9".parse::<Backend>().unwrap_err().to_string();
        assert!(
            message.contains("`sse9`") && message.contains("portable"),
            "{message}"
        );
    }

    #[test]
    fn a_named_backend_is_used_or_refused_never_replaced() {
        for &backend in Backend::ALL {
            match backend.missing() {
                None => assert_eq!(Backend::choose(Some(backend)).unwrap(), backend),
                Some(missing) => {
                    let message = Backend::choose(Some(backend)).unwrap_err().to_string();
                    assert!(message.contains(missing), "{message}");
                }
            }
        }
    }
}

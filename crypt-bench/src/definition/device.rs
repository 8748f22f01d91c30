//! Devices as named on the command line: `null`, `memory`, `scratch[:DIR]`, `file:PATH`, `model:NAME`.

#![forbid(unsafe_code)]

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::quantity::as_text;

/// What to measure on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSpec {
    /// Completes at once.
    Null,
    /// RAM.
    Memory,
    /// A file that is made for the run, in this folder or in the temporary one, and removed after it.
    Scratch(Option<PathBuf>),
    /// An existing regular file or block device, or one to be created on request.
    File(PathBuf),
    /// A service-time model.
    Model(String),
}

impl DeviceSpec {
    /// Whether data passes through a file, so that direct I/O means something.
    #[must_use]
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(_) | Self::Scratch(_))
    }
}

impl FromStr for DeviceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "null" => Ok(Self::Null),
            None if text == "memory" => Ok(Self::Memory),
            None if text == "scratch" => Ok(Self::Scratch(None)),
            Some(("scratch", dir)) if !dir.is_empty() => Ok(Self::Scratch(Some(dir.into()))),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("model", name)) if !name.is_empty() => Ok(Self::Model(name.to_owned())),
            _ if text.starts_with('/') => Err(format!("`{text}`: write file:{text}")),
            _ => Err(format!(
                "`{text}` is not a device: use null, memory, scratch, scratch:DIR, file:PATH or \
                 model:NAME"
            )),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Memory => f.write_str("memory"),
            Self::Scratch(None) => f.write_str("scratch"),
            Self::Scratch(Some(dir)) => write!(f, "scratch:{}", dir.display()),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Model(name) => write!(f, "model:{name}"),
        }
    }
}

/// How files are read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// io_uring, or plain system calls where the system refuses it.
    #[default]
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// Plain system calls, one request at a time.
    Sync,
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "io_uring" => Ok(Self::IoUring),
            "sync" => Ok(Self::Sync),
            _ => Err(format!(
                "`{text}` is not an engine: use auto, io_uring or sync"
            )),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::IoUring => "io_uring",
            Self::Sync => "sync",
        })
    }
}

as_text!(DeviceSpec, Engine);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_prints_as_it_was_written() {
        for text in [
            "null",
            "memory",
            "scratch",
            "scratch:/mnt",
            "file:a:b",
            "model:nvme",
        ] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_bare_path_is_told_how_to_be_written() {
        let message = "/dev/sda".parse::<DeviceSpec>().unwrap_err();
        assert!(message.contains("file:/dev/sda"), "{message}");
        for text in ["", "file:", "model:", "ram", "nul"] {
            assert!(text.parse::<DeviceSpec>().is_err(), "{text}");
        }
    }
}

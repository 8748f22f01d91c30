//! The one error type of the library: a kind, what it happened to, and its source.
//!
//! Control-plane calls (open, parse, build) return [`Error`], whose message says what went wrong,
//! where, and what to do about it. The data path never allocates, so a request that fails carries
//! an [`Errno`] in its ordinary completion instead.

#![forbid(unsafe_code)]

use std::error::Error as StdError;
use std::fmt;
use std::num::NonZeroI32;

/// Result of a control-plane call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure an [`Error`] is; decides its [`Error::errno`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, option or file content that can't be right (`EINVAL`).
    InvalidInput,
    /// Well-formed, but not something this build can do (`EOPNOTSUPP`).
    Unsupported,
    /// A position or length beyond the end of a device, or not on its block boundary (`EINVAL`).
    OutOfRange,
    /// Refused to protect data: mounted device, signature found, read-only (`EPERM`).
    Refused,
    /// A configured limit would be exceeded: memory, queue depth, key-derivation cost (`ENOMEM`).
    LimitExceeded,
    /// The key or passphrase does not fit (`EACCES`).
    Key,
    /// The operating system said no; the source has its error number.
    Io,
}

/// An error with its context. `Display` prints `context: source`.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    context: Box<str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind`; `context` says what, where and what to do.
    #[must_use]
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self {
            kind,
            context: context.into().into_boxed_str(),
            source: None,
        }
    }

    /// An operating-system error met while doing what `context` says.
    #[must_use]
    pub fn io(context: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        let source: std::io::Error = source.into();
        Self {
            kind: ErrorKind::Io,
            context: context.into().into_boxed_str(),
            source: Some(Box::new(source)),
        }
    }

    /// The same error with its cause attached.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error number that a kernel interface would give for it.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self.kind {
            ErrorKind::InvalidInput | ErrorKind::OutOfRange => Errno::EINVAL,
            ErrorKind::Unsupported => Errno::EOPNOTSUPP,
            ErrorKind::Refused => Errno::EPERM,
            ErrorKind::LimitExceeded => Errno::ENOMEM,
            ErrorKind::Key => Errno::EACCES,
            ErrorKind::Io => self.io_errno().unwrap_or(Errno::EIO),
        }
    }

    fn io_errno(&self) -> Option<Errno> {
        let io = self.source.as_deref()?.downcast_ref::<std::io::Error>()?;
        io.raw_os_error().map(Errno::from_raw)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

/// `EIO` on every Linux architecture.
const IO_ERROR: NonZeroI32 = NonZeroI32::new(5).expect("5 is not zero");

/// A Linux error number, the error of one request on the data path. Positive, never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(NonZeroI32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Self = Self::of(rustix::io::Errno::PERM);
    /// Input/output error.
    pub const EIO: Self = Self::of(rustix::io::Errno::IO);
    /// Try again.
    pub const EAGAIN: Self = Self::of(rustix::io::Errno::AGAIN);
    /// Out of memory.
    pub const ENOMEM: Self = Self::of(rustix::io::Errno::NOMEM);
    /// Permission denied.
    pub const EACCES: Self = Self::of(rustix::io::Errno::ACCESS);
    /// Invalid argument.
    pub const EINVAL: Self = Self::of(rustix::io::Errno::INVAL);
    /// No space left on device.
    pub const ENOSPC: Self = Self::of(rustix::io::Errno::NOSPC);
    /// Read-only file system or device.
    pub const EROFS: Self = Self::of(rustix::io::Errno::ROFS);
    /// Operation not supported.
    pub const EOPNOTSUPP: Self = Self::of(rustix::io::Errno::OPNOTSUPP);
    /// Operation canceled.
    pub const ECANCELED: Self = Self::of(rustix::io::Errno::CANCELED);
    /// Interrupted; retried like `EAGAIN`.
    pub const EINTR: Self = Self::of(rustix::io::Errno::INTR);
    /// Illegal byte sequence; block devices say so of data that fails its checksum.
    pub const EILSEQ: Self = Self::of(rustix::io::Errno::ILSEQ);
    /// Connection timed out; here: a request took too long.
    pub const ETIMEDOUT: Self = Self::of(rustix::io::Errno::TIMEDOUT);

    const fn of(errno: rustix::io::Errno) -> Self {
        Self::from_raw(errno.raw_os_error())
    }

    /// The error with this number; a number that is not positive becomes `EIO`.
    #[must_use]
    pub const fn from_raw(raw: i32) -> Self {
        match NonZeroI32::new(raw) {
            Some(number) if raw > 0 => Self(number),
            _ => Self(IO_ERROR),
        }
    }

    /// The number, positive.
    #[must_use]
    pub const fn raw(self) -> i32 {
        self.0.get()
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::of(errno)
    }
}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.raw())
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({self})")
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.raw()).fmt(f)
    }
}

impl StdError for Errno {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_keeps_its_number() {
        let error = Error::io("open disk.img", Errno::ENOSPC);
        assert_eq!(error.errno(), Errno::ENOSPC);
        assert!(error.to_string().starts_with("open disk.img: "), "{error}");
    }

    #[test]
    fn a_negative_or_zero_number_is_an_io_error() {
        assert_eq!(Errno::from_raw(0), Errno::EIO);
        assert_eq!(Errno::from_raw(-22), Errno::EIO);
    }
}

//! The machine's own facilities that the standard library and rustix don't wrap safely: the time
//! stamp counter, and an ioctl. Everything here is a thin, safe function.

use std::os::fd::BorrowedFd;

use crate::error::Errno;

/// Current value of the time stamp counter; 0 where there is none.
#[inline]
pub(crate) fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: RDTSC exists on every x86-64 CPU and reads a register only.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        0
    }
}

/// Whether the counter runs at a constant rate in all power states (CPUID 8000_0007h, EDX bit 8).
pub(crate) fn has_invariant_tsc() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Tells a block device that a range of bytes is no longer needed (the ioctl `BLKDISCARD`).
///
/// # Errors
/// The system's; `EOPNOTSUPP` for a device that can't, `EINVAL` for a misaligned range.
pub(crate) fn discard_blocks(
    device: BorrowedFd<'_>,
    offset_bytes: u64,
    len_bytes: u64,
) -> Result<(), Errno> {
    /// `_IO(0x12, 119)` of the kernel's `include/uapi/linux/fs.h`.
    const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);
    let range = [offset_bytes, len_bytes];
    // SAFETY: BLKDISCARD reads two 64-bit numbers, which the setter owns during the call.
    let request = unsafe { rustix::ioctl::Setter::<BLKDISCARD, [u64; 2]>::new(range) };
    // SAFETY: as above; the request changes the device only.
    unsafe { rustix::ioctl::ioctl(device, request) }.map_err(Errno::from)
}

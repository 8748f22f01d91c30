//! The machine's own facilities that the standard library and rustix don't wrap safely: the time
//! stamp counter. Everything here is a thin, safe function.

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

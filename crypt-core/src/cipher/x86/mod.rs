//! Kernels for x86-64: each mode written once over [`vector::Vector`], and one thin file per
//! instruction set that implements it.
//!
//! # Contract
//! An [`InstructionSet`] value is the proof that this CPU has the instructions: it comes only from
//! its `new`. A vector comes only from such a value or from another vector, so arithmetic on vectors
//! is safe; loads and stores through pointers are not. Every algorithm is inlined into the entry
//! points of the instruction sets, which enable the instructions for the compiler.
//!
//! Round keys live in a [`crate::secret::Secret`]: aligned, wiped on drop, shared without a lock.

#![allow(
    unsafe_code,
    reason = "kernels are made of intrinsics and raw loads and stores"
)]

mod aes;
mod aesni;
mod cbc;
mod ivs;
mod schedule;
mod vaes256;
mod vaes512;
mod vector;
mod xts;

use ::aes::cipher::inout::InOutBuf;

use super::Backend;
use super::blocks::Blocks;
use super::engine::Engine;
use crate::error::Result;
use crate::iv::Ivs;
use crate::secret::Secret;

use aes::{Decrypt, Encrypt, Way};
use schedule::{RoundKeys, Schedule};

pub(super) use aesni::AesNi;
pub(super) use vaes256::Vaes256;
pub(super) use vaes512::Vaes512;

/// Rounds of AES-128.
pub(super) const AES_128: usize = 10;

/// Rounds of AES-256.
pub(super) const AES_256: usize = 14;

/// A set of instructions that this CPU has, and the kernels compiled for it. `data` is described in
/// the modules of the algorithms.
pub(super) trait InstructionSet: Copy + Send + Sync + 'static {
    /// Its name among the backends.
    const BACKEND: Backend;

    /// The proof, or `None` where the CPU lacks an instruction.
    fn new() -> Option<Self>;

    /// XTS over one unit of `unit_len` bytes, at least 16, per IV.
    fn xts<W: Way, const ROUNDS: usize>(
        self,
        keys: XtsKeys<'_>,
        ivs: Ivs<'_>,
        unit_len: usize,
        data: InOutBuf<'_, '_, u8>,
    );

    /// CBC encryption of one unit of `unit_len` bytes, a multiple of 16, per IV.
    fn cbc_encrypt<const ROUNDS: usize>(
        self,
        keys: &RoundKeys,
        ivs: Ivs<'_>,
        unit_len: usize,
        data: InOutBuf<'_, '_, u8>,
    );

    /// CBC decryption of one unit of `unit_len` bytes, a multiple of 16, per IV.
    fn cbc_decrypt<const ROUNDS: usize>(
        self,
        keys: &RoundKeys,
        ivs: Ivs<'_>,
        unit_len: usize,
        data: InOutBuf<'_, '_, u8>,
    );

    /// Blocks one by one, without a mode. The length is a multiple of 16.
    fn ecb<W: Way, const ROUNDS: usize>(self, keys: &RoundKeys, data: InOutBuf<'_, '_, u8>);
}

/// Implements [`InstructionSet`] for a proof and its vector: entry points that enable the instructions
/// and have the algorithms inlined into them.
macro_rules! kernels {
    ($isa:ident, $vector:ident, $features:literal) => {
        impl $crate::cipher::x86::InstructionSet for $isa {
            const BACKEND: $crate::cipher::Backend = $crate::cipher::Backend::$isa;

            fn new() -> Option<Self> {
                Self::BACKEND.missing().is_none().then_some(Self(()))
            }

            $crate::cipher::x86::entry_point! {
                xts, [W: Way, const ROUNDS: usize], [W, ROUNDS],
                $isa, $features, xts::xts::<$vector, W, ROUNDS>,
                keys: XtsKeys<'_>, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>
            }
            $crate::cipher::x86::entry_point! {
                cbc_encrypt, [const ROUNDS: usize], [ROUNDS],
                $isa, $features, cbc::encrypt::<$vector, ROUNDS>,
                keys: &RoundKeys, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>
            }
            $crate::cipher::x86::entry_point! {
                cbc_decrypt, [const ROUNDS: usize], [ROUNDS],
                $isa, $features, cbc::decrypt::<$vector, ROUNDS>,
                keys: &RoundKeys, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>
            }
            $crate::cipher::x86::entry_point! {
                ecb, [W: Way, const ROUNDS: usize], [W, ROUNDS],
                $isa, $features, aes::ecb::<$vector, W, ROUNDS>,
                keys: &RoundKeys, data: InOutBuf<'_, '_, u8>
            }
        }
    };
}
use kernels;

/// One method of [`InstructionSet`]: calls `$algorithm` with the instructions enabled.
macro_rules! entry_point {
    (
        $name:ident, [$($generics:tt)*], [$($arguments:ident),*],
        $isa:ident, $features:literal, $algorithm:expr,
        $($parameter:ident: $type:ty),*
    ) => {
        #[inline]
        fn $name<$($generics)*>(self, $($parameter: $type),*) {
            #[target_feature(enable = $features)]
            fn entry<$($generics)*>(isa: $isa, $($parameter: $type),*) {
                $algorithm(isa, $($parameter),*);
            }
            // SAFETY: `self` proves that the CPU has the instructions.
            unsafe { entry::<$($arguments),*>(self, $($parameter),*) }
        }
    };
}
use entry_point;

/// XTS on one instruction set with AES of `ROUNDS` rounds.
pub(super) struct XtsKernel<I, const ROUNDS: usize> {
    isa: I,
    keys: Secret<XtsSchedule>,
}

struct XtsSchedule {
    data: Schedule,
    tweak: Schedule,
}

/// The round keys of one direction of XTS.
#[derive(Clone, Copy)]
pub(super) struct XtsKeys<'a> {
    data: &'a RoundKeys,
    /// Tweaks are encrypted in both directions.
    tweak: &'a RoundKeys,
}

impl XtsSchedule {
    fn encrypt(&self) -> XtsKeys<'_> {
        XtsKeys {
            data: &self.data.encrypt,
            tweak: &self.tweak.encrypt,
        }
    }

    fn decrypt(&self) -> XtsKeys<'_> {
        XtsKeys {
            data: &self.data.decrypt,
            tweak: &self.tweak.encrypt,
        }
    }
}

impl<I: InstructionSet, const ROUNDS: usize> XtsKernel<I, ROUNDS> {
    /// Expands the keys in secret memory. Both are as long as `ROUNDS` rounds take.
    pub(super) fn new(isa: I, data_key: &[u8], tweak_key: &[u8]) -> Result<Self> {
        let mut keys = Secret::new(XtsSchedule {
            data: Schedule::ZERO,
            tweak: Schedule::ZERO,
        })?;
        keys.data.expand::<I, ROUNDS>(isa, data_key);
        keys.tweak.expand::<I, ROUNDS>(isa, tweak_key);
        Ok(Self { isa, keys })
    }
}

impl<I: InstructionSet, const ROUNDS: usize> Engine for XtsKernel<I, ROUNDS> {
    const BACKEND: Backend = I::BACKEND;

    #[inline]
    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let keys = self.keys.encrypt();
        self.isa.xts::<Encrypt, ROUNDS>(keys, ivs, unit_len, data);
    }

    #[inline]
    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let keys = self.keys.decrypt();
        self.isa.xts::<Decrypt, ROUNDS>(keys, ivs, unit_len, data);
    }
}

/// Blocks without a mode on one instruction set, with AES of `ROUNDS` rounds.
pub(super) struct AesKernel<I, const ROUNDS: usize> {
    isa: I,
    keys: Secret<Schedule>,
}

impl<I: InstructionSet, const ROUNDS: usize> AesKernel<I, ROUNDS> {
    /// Expands a key as long as `ROUNDS` rounds take, in secret memory.
    pub(super) fn new(isa: I, key: &[u8]) -> Result<Self> {
        let mut keys = Secret::new(Schedule::ZERO)?;
        keys.expand::<I, ROUNDS>(isa, key);
        Ok(Self { isa, keys })
    }
}

impl<I: InstructionSet, const ROUNDS: usize> Blocks for AesKernel<I, ROUNDS> {
    fn encrypt(&self, data: InOutBuf<'_, '_, u8>) {
        self.isa.ecb::<Encrypt, ROUNDS>(&self.keys.encrypt, data);
    }

    fn decrypt(&self, data: InOutBuf<'_, '_, u8>) {
        self.isa.ecb::<Decrypt, ROUNDS>(&self.keys.decrypt, data);
    }
}

/// CBC on one instruction set with AES of `ROUNDS` rounds.
pub(super) struct CbcKernel<I, const ROUNDS: usize>(AesKernel<I, ROUNDS>);

impl<I: InstructionSet, const ROUNDS: usize> CbcKernel<I, ROUNDS> {
    /// As [`AesKernel::new`].
    pub(super) fn new(isa: I, key: &[u8]) -> Result<Self> {
        AesKernel::new(isa, key).map(Self)
    }
}

impl<I: InstructionSet, const ROUNDS: usize> Engine for CbcKernel<I, ROUNDS> {
    const BACKEND: Backend = I::BACKEND;

    #[inline]
    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let AesKernel { isa, keys } = &self.0;
        isa.cbc_encrypt::<ROUNDS>(&keys.encrypt, ivs, unit_len, data);
    }

    #[inline]
    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let AesKernel { isa, keys } = &self.0;
        isa.cbc_decrypt::<ROUNDS>(&keys.decrypt, ivs, unit_len, data);
    }
}

//! AES-NI: one block in a vector. Needs no AVX, for the small cores that have none.

use core::arch::x86_64::*;

use super::aes::{self, Way};
use super::schedule::{RoundKey, RoundKeys};
use super::vector::{POLYNOMIAL, Vector};
use super::{InOutBuf, XtsKeys, cbc, kernels, xts};
use crate::iv::{Iv, Ivs};

/// The proof that this CPU has the AES instructions and PCLMULQDQ.
#[derive(Clone, Copy, Debug)]
pub(in crate::cipher) struct AesNi(());

kernels!(AesNi, Xmm, "aes,pclmulqdq,sse2");

/// One block. Exists only where an [`AesNi`] does.
#[derive(Clone, Copy)]
struct Xmm(__m128i);

/// One intrinsic of the instruction set, inside a method of [`Xmm`] or with an [`AesNi`] at hand.
macro_rules! op {
    ($call:expr) => {
        // SAFETY: an `Xmm` or the proof that makes one exists, so the CPU has the instruction.
        Xmm(unsafe { $call })
    };
}

impl Vector for Xmm {
    type Isa = AesNi;

    const BLOCKS: usize = 1;

    #[inline(always)]
    fn splat(_isa: AesNi, block: &Iv) -> Self {
        op!(_mm_loadu_si128(block.as_ptr().cast()))
    }

    #[inline(always)]
    fn round_key(_isa: AesNi, key: &RoundKey) -> Self {
        let key: *const RoundKey = key;
        // SAFETY: a round key is as long as the largest vector and as aligned.
        op!(key.cast::<__m128i>().read_volatile())
    }

    #[inline(always)]
    fn from_halves(_isa: AesNi, lane: impl Fn(usize) -> [u64; 2]) -> Self {
        let [a0, a1] = lane(0);
        op!(_mm_set_epi64x(a1 as i64, a0 as i64))
    }

    #[inline(always)]
    fn first_block(self) -> Iv {
        // SAFETY: any vector of integers is 16 bytes.
        unsafe { core::mem::transmute(self.0) }
    }

    #[inline(always)]
    unsafe fn load(_isa: AesNi, src: *const u8) -> Self {
        op!(_mm_loadu_si128(src.cast()))
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: the caller vouches for 16 writable bytes.
        unsafe { _mm_storeu_si128(dst.cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn load_partial(_isa: AesNi, _src: *const u8, _blocks: usize) -> Self {
        unreachable!("no number of blocks lies between zero and one")
    }

    #[inline(always)]
    unsafe fn store_partial(self, _dst: *mut u8, _blocks: usize) {
        unreachable!("no number of blocks lies between zero and one")
    }

    #[inline(always)]
    unsafe fn gather(isa: AesNi, lane: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: the caller vouches for a block.
        unsafe { Self::load(isa, lane(0)) }
    }

    #[inline(always)]
    unsafe fn scatter(self, lane: impl Fn(usize) -> *mut u8) {
        // SAFETY: the caller vouches for a block.
        unsafe { self.store(lane(0)) };
    }

    #[inline(always)]
    fn behind(self, before: Self) -> Self {
        before
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        op!(_mm_xor_si128(self.0, other.0))
    }

    #[inline(always)]
    fn xor3(self, second: Self, third: Self) -> Self {
        self.xor(second.xor(third))
    }

    #[inline(always)]
    fn encrypt_round(self, key: Self) -> Self {
        op!(_mm_aesenc_si128(self.0, key.0))
    }

    #[inline(always)]
    fn encrypt_last(self, key: Self) -> Self {
        op!(_mm_aesenclast_si128(self.0, key.0))
    }

    #[inline(always)]
    fn decrypt_round(self, key: Self) -> Self {
        op!(_mm_aesdec_si128(self.0, key.0))
    }

    #[inline(always)]
    fn decrypt_last(self, key: Self) -> Self {
        op!(_mm_aesdeclast_si128(self.0, key.0))
    }

    #[inline(always)]
    fn mul_power(self, powers: Self) -> Self {
        let low = op!(_mm_clmulepi64_si128::<0x00>(self.0, powers.0));
        let high = op!(_mm_clmulepi64_si128::<0x01>(self.0, powers.0));
        let overflow = op!(_mm_clmulepi64_si128::<0x11>(high.0, powers.0));
        low.xor3(op!(_mm_slli_si128::<8>(high.0)), overflow)
    }

    #[inline(always)]
    fn mul_x8(self) -> Self {
        let overflow = op!(_mm_srli_si128::<15>(self.0));
        let shifted = op!(_mm_slli_si128::<1>(self.0));
        shifted.xor(overflow.reduce())
    }

    #[inline(always)]
    fn mul_x8_per_block(self) -> Self {
        self.mul_x8()
    }
}

impl Xmm {
    /// The product of the low half and the reduction polynomial.
    #[inline(always)]
    fn reduce(self) -> Self {
        let polynomial = op!(_mm_set1_epi64x(POLYNOMIAL));
        op!(_mm_clmulepi64_si128::<0x00>(self.0, polynomial.0))
    }
}

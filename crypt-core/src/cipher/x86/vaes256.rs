//! VAES with AVX2: two blocks in a vector.

use core::arch::x86_64::*;

use super::aes::{self, Way};
use super::schedule::{RoundKey, RoundKeys};
use super::vector::{POLYNOMIAL, Vector};
use super::{InOutBuf, XtsKeys, cbc, kernels, xts};
use crate::iv::{Iv, Ivs};

/// The proof that this CPU has AVX2, VAES and VPCLMULQDQ.
#[derive(Clone, Copy, Debug)]
pub(in crate::cipher) struct Vaes256(());

kernels!(Vaes256, Ymm, "avx2,aes,vaes,pclmulqdq,vpclmulqdq");

/// Two blocks. Exists only where a [`Vaes256`] does.
#[derive(Clone, Copy)]
struct Ymm(__m256i);

/// One intrinsic of the instruction set, inside a method of [`Ymm`] or with a [`Vaes256`] at hand.
macro_rules! op {
    ($call:expr) => {
        // SAFETY: a `Ymm` or the proof that makes one exists, so the CPU has the instruction.
        Ymm(unsafe { $call })
    };
}

impl Vector for Ymm {
    type Isa = Vaes256;

    const BLOCKS: usize = 2;

    #[inline(always)]
    fn splat(_isa: Vaes256, block: &Iv) -> Self {
        // SAFETY: any 16 bytes are a vector of integers.
        let block: __m128i = unsafe { core::mem::transmute(*block) };
        op!(_mm256_broadcastsi128_si256(block))
    }

    #[inline(always)]
    fn round_key(_isa: Vaes256, key: &RoundKey) -> Self {
        let key: *const RoundKey = key;
        // SAFETY: a round key is as long as the largest vector and as aligned.
        op!(key.cast::<__m256i>().read_volatile())
    }

    #[inline(always)]
    fn from_halves(_isa: Vaes256, lane: impl Fn(usize) -> [u64; 2]) -> Self {
        let [[a0, a1], [b0, b1]] = [lane(0), lane(1)];
        op!(_mm256_set_epi64x(
            b1 as i64, b0 as i64, a1 as i64, a0 as i64
        ))
    }

    #[inline(always)]
    fn first_block(self) -> Iv {
        // SAFETY: `self` proves that the CPU has AVX2.
        let block = unsafe { _mm256_castsi256_si128(self.0) };
        // SAFETY: any vector of integers is 16 bytes.
        unsafe { core::mem::transmute(block) }
    }

    #[inline(always)]
    unsafe fn load(_isa: Vaes256, src: *const u8) -> Self {
        op!(_mm256_loadu_si256(src.cast()))
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: the caller vouches for 32 writable bytes.
        unsafe { _mm256_storeu_si256(dst.cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn load_partial(_isa: Vaes256, src: *const u8, _blocks: usize) -> Self {
        // SAFETY: the caller vouches for one block, the only number below two.
        let block = unsafe { _mm_loadu_si128(src.cast()) };
        op!(_mm256_zextsi128_si256(block))
    }

    #[inline(always)]
    unsafe fn store_partial(self, dst: *mut u8, _blocks: usize) {
        // SAFETY: `self` proves that the CPU has AVX2.
        let block = unsafe { _mm256_castsi256_si128(self.0) };
        // SAFETY: the caller vouches for one block, the only number below two.
        unsafe { _mm_storeu_si128(dst.cast(), block) };
    }

    #[inline(always)]
    unsafe fn gather(_isa: Vaes256, lane: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: the caller vouches for a block at each address.
        let low = unsafe { _mm_loadu_si128(lane(0).cast()) };
        // SAFETY: as above.
        let high = unsafe { _mm_loadu_si128(lane(1).cast()) };
        op!(_mm256_set_m128i(high, low))
    }

    #[inline(always)]
    unsafe fn scatter(self, lane: impl Fn(usize) -> *mut u8) {
        // SAFETY: `self` proves that the CPU has AVX2.
        let low = unsafe { _mm256_castsi256_si128(self.0) };
        // SAFETY: as above.
        let high = unsafe { _mm256_extracti128_si256::<1>(self.0) };
        // SAFETY: the caller vouches for a block at each address.
        unsafe { _mm_storeu_si128(lane(0).cast(), low) };
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(lane(1).cast(), high) };
    }

    #[inline(always)]
    fn behind(self, before: Self) -> Self {
        op!(_mm256_permute2x128_si256::<0x21>(before.0, self.0))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        op!(_mm256_xor_si256(self.0, other.0))
    }

    #[inline(always)]
    fn xor3(self, second: Self, third: Self) -> Self {
        self.xor(second.xor(third))
    }

    #[inline(always)]
    fn encrypt_round(self, key: Self) -> Self {
        op!(_mm256_aesenc_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn encrypt_last(self, key: Self) -> Self {
        op!(_mm256_aesenclast_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn decrypt_round(self, key: Self) -> Self {
        op!(_mm256_aesdec_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn decrypt_last(self, key: Self) -> Self {
        op!(_mm256_aesdeclast_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn mul_power(self, powers: Self) -> Self {
        let low = op!(_mm256_clmulepi64_epi128::<0x00>(self.0, powers.0));
        let high = op!(_mm256_clmulepi64_epi128::<0x01>(self.0, powers.0));
        let overflow = op!(_mm256_clmulepi64_epi128::<0x11>(high.0, powers.0));
        low.xor3(op!(_mm256_bslli_epi128::<8>(high.0)), overflow)
    }

    #[inline(always)]
    fn mul_x8(self) -> Self {
        let overflow = op!(_mm256_bsrli_epi128::<15>(self.0));
        let shifted = op!(_mm256_bslli_epi128::<1>(self.0));
        shifted.xor(overflow.reduce())
    }

    #[inline(always)]
    fn mul_x8_per_block(self) -> Self {
        let overflow = op!(_mm256_bsrli_epi128::<14>(self.0));
        let shifted = op!(_mm256_bslli_epi128::<2>(self.0));
        shifted.xor(overflow.reduce())
    }
}

impl Ymm {
    /// The product of each lane's low half and the reduction polynomial.
    #[inline(always)]
    fn reduce(self) -> Self {
        let polynomial = op!(_mm256_set1_epi64x(POLYNOMIAL));
        op!(_mm256_clmulepi64_epi128::<0x00>(self.0, polynomial.0))
    }
}

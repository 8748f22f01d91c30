//! VAES with AVX-512: four blocks in a vector.

use core::arch::x86_64::*;

use super::aes::{self, Way};
use super::schedule::{RoundKey, RoundKeys};
use super::vector::{POLYNOMIAL, Vector};
use super::{InOutBuf, XtsKeys, cbc, kernels, xts};
use crate::iv::{Iv, Ivs};

/// The proof that this CPU has AVX-512 F, BW and VL, VAES and VPCLMULQDQ.
#[derive(Clone, Copy, Debug)]
pub(in crate::cipher) struct Vaes512(());

kernels!(
    Vaes512,
    Zmm,
    "avx512f,avx512bw,avx512vl,aes,vaes,pclmulqdq,vpclmulqdq"
);

/// Four blocks. Exists only where a [`Vaes512`] does.
#[derive(Clone, Copy)]
struct Zmm(__m512i);

/// One intrinsic of the instruction set, inside a method of [`Zmm`] or with a [`Vaes512`] at hand.
macro_rules! op {
    ($call:expr) => {
        // SAFETY: a `Zmm` or the proof that makes one exists, so the CPU has the instruction.
        Zmm(unsafe { $call })
    };
}

impl Vector for Zmm {
    type Isa = Vaes512;

    const BLOCKS: usize = 4;

    #[inline(always)]
    fn splat(_isa: Vaes512, block: &Iv) -> Self {
        // SAFETY: any 16 bytes are a vector of integers.
        let block: __m128i = unsafe { core::mem::transmute(*block) };
        op!(_mm512_broadcast_i32x4(block))
    }

    #[inline(always)]
    fn round_key(_isa: Vaes512, key: &RoundKey) -> Self {
        let key: *const RoundKey = key;
        // SAFETY: a round key is as long as the largest vector and as aligned.
        op!(key.cast::<__m512i>().read_volatile())
    }

    #[inline(always)]
    fn from_halves(_isa: Vaes512, lane: impl Fn(usize) -> [u64; 2]) -> Self {
        let [[a0, a1], [b0, b1], [c0, c1], [d0, d1]] = [lane(0), lane(1), lane(2), lane(3)];
        op!(_mm512_set_epi64(
            d1 as i64, d0 as i64, c1 as i64, c0 as i64, b1 as i64, b0 as i64, a1 as i64, a0 as i64
        ))
    }

    #[inline(always)]
    fn first_block(self) -> Iv {
        // SAFETY: `self` proves that the CPU has AVX-512.
        let block = unsafe { _mm512_castsi512_si128(self.0) };
        // SAFETY: any vector of integers is 16 bytes.
        unsafe { core::mem::transmute(block) }
    }

    #[inline(always)]
    unsafe fn load(_isa: Vaes512, src: *const u8) -> Self {
        op!(_mm512_loadu_si512(src.cast()))
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: the caller vouches for 64 writable bytes.
        unsafe { _mm512_storeu_si512(dst.cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn load_partial(_isa: Vaes512, src: *const u8, blocks: usize) -> Self {
        op!(_mm512_maskz_loadu_epi64(mask(blocks), src.cast()))
    }

    #[inline(always)]
    unsafe fn store_partial(self, dst: *mut u8, blocks: usize) {
        // SAFETY: the caller vouches for `blocks` blocks, and masked lanes are not touched.
        unsafe { _mm512_mask_storeu_epi64(dst.cast(), mask(blocks), self.0) };
    }

    #[inline(always)]
    unsafe fn gather(isa: Vaes512, lane: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: the caller vouches for a block at each address.
        let block = |index| unsafe { lane(index).cast::<Iv>().read_unaligned() };
        let first = Self::splat(isa, &block(0));
        let second = Self::splat(isa, &block(1));
        let third = Self::splat(isa, &block(2));
        let fourth = Self::splat(isa, &block(3));
        let low = op!(_mm512_mask_blend_epi64(0b0000_1100, first.0, second.0));
        let high = op!(_mm512_mask_blend_epi64(0b1100_0000, third.0, fourth.0));
        op!(_mm512_mask_blend_epi64(0b1111_0000, low.0, high.0))
    }

    #[inline(always)]
    unsafe fn scatter(self, lane: impl Fn(usize) -> *mut u8) {
        let store = |index, block: __m128i| {
            // SAFETY: the caller vouches for a block at each address.
            unsafe { _mm_storeu_si128(lane(index).cast(), block) };
        };
        // SAFETY: `self` proves that the CPU has AVX-512; so in the following.
        store(0, unsafe { _mm512_extracti32x4_epi32::<0>(self.0) });
        // SAFETY: as above.
        store(1, unsafe { _mm512_extracti32x4_epi32::<1>(self.0) });
        // SAFETY: as above.
        store(2, unsafe { _mm512_extracti32x4_epi32::<2>(self.0) });
        // SAFETY: as above.
        store(3, unsafe { _mm512_extracti32x4_epi32::<3>(self.0) });
    }

    #[inline(always)]
    fn behind(self, before: Self) -> Self {
        op!(_mm512_alignr_epi64::<6>(self.0, before.0))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        op!(_mm512_xor_si512(self.0, other.0))
    }

    #[inline(always)]
    fn xor3(self, second: Self, third: Self) -> Self {
        op!(_mm512_ternarylogic_epi64::<0x96>(self.0, second.0, third.0))
    }

    #[inline(always)]
    fn encrypt_round(self, key: Self) -> Self {
        op!(_mm512_aesenc_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn encrypt_last(self, key: Self) -> Self {
        op!(_mm512_aesenclast_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn decrypt_round(self, key: Self) -> Self {
        op!(_mm512_aesdec_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn decrypt_last(self, key: Self) -> Self {
        op!(_mm512_aesdeclast_epi128(self.0, key.0))
    }

    #[inline(always)]
    fn mul_power(self, powers: Self) -> Self {
        let low = op!(_mm512_clmulepi64_epi128::<0x00>(self.0, powers.0));
        let high = op!(_mm512_clmulepi64_epi128::<0x01>(self.0, powers.0));
        let overflow = op!(_mm512_clmulepi64_epi128::<0x11>(high.0, powers.0));
        low.xor3(op!(_mm512_bslli_epi128::<8>(high.0)), overflow)
    }

    #[inline(always)]
    fn mul_x8(self) -> Self {
        let overflow = op!(_mm512_bsrli_epi128::<15>(self.0));
        let shifted = op!(_mm512_bslli_epi128::<1>(self.0));
        shifted.xor(overflow.reduce())
    }

    #[inline(always)]
    fn mul_x8_per_block(self) -> Self {
        let overflow = op!(_mm512_bsrli_epi128::<12>(self.0));
        let shifted = op!(_mm512_bslli_epi128::<4>(self.0));
        shifted.xor(overflow.reduce())
    }
}

impl Zmm {
    /// The product of each lane's low half and the reduction polynomial.
    #[inline(always)]
    fn reduce(self) -> Self {
        let polynomial = op!(_mm512_set1_epi64(POLYNOMIAL));
        op!(_mm512_clmulepi64_epi128::<0x00>(self.0, polynomial.0))
    }
}

/// Two 64-bit lanes for each of the first `blocks` blocks.
#[inline(always)]
fn mask(blocks: usize) -> __mmask8 {
    ((1_u32 << (2 * blocks)) - 1) as __mmask8
}

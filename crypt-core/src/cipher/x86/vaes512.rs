//! VAES with AVX-512: four blocks in a vector.

use core::arch::x86_64::*;

use super::aes::{self, Way};
use super::schedule::{RoundKey, RoundKeys};
use super::vector::{POLYNOMIAL, Vector};
use super::{InOutBuf, InstructionSet, XtsKeys, xts};
use crate::cipher::Backend;
use crate::iv::{Iv, Ivs};

/// The proof that this CPU has AVX-512 F, BW and VL, VAES and VPCLMULQDQ.
#[derive(Clone, Copy, Debug)]
pub(in crate::cipher) struct Vaes512(());

impl InstructionSet for Vaes512 {
    const BACKEND: Backend = Backend::Vaes512;

    fn new() -> Option<Self> {
        Self::BACKEND.missing().is_none().then_some(Self(()))
    }

    #[inline]
    fn xts<W: Way, const ROUNDS: usize>(
        self,
        keys: XtsKeys<'_>,
        ivs: Ivs<'_>,
        unit_len: usize,
        data: InOutBuf<'_, '_, u8>,
    ) {
        // SAFETY: `self` proves that the CPU has the instructions.
        unsafe { xts_entry::<W, ROUNDS>(self, keys, ivs, unit_len, data) }
    }

    #[inline]
    fn ecb<W: Way, const ROUNDS: usize>(self, keys: &RoundKeys, data: InOutBuf<'_, '_, u8>) {
        // SAFETY: `self` proves that the CPU has the instructions.
        unsafe { ecb_entry::<W, ROUNDS>(self, keys, data) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,aes,vaes,pclmulqdq,vpclmulqdq")]
fn xts_entry<W: Way, const ROUNDS: usize>(
    isa: Vaes512,
    keys: XtsKeys<'_>,
    ivs: Ivs<'_>,
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
) {
    xts::xts::<Zmm, W, ROUNDS>(isa, keys, ivs, unit_len, data);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,aes,vaes,pclmulqdq,vpclmulqdq")]
fn ecb_entry<W: Way, const ROUNDS: usize>(
    isa: Vaes512,
    keys: &RoundKeys,
    data: InOutBuf<'_, '_, u8>,
) {
    aes::ecb::<Zmm, W, ROUNDS>(isa, keys, data);
}

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

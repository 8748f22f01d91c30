//! What the algorithms need of an instruction set: a vector of AES blocks.
//!
//! A value of a [`Vector`] proves that the CPU has its instructions, because the only ways to make
//! one take the proof. So everything but memory access is safe to call. All methods are inlined into
//! functions that enable the instructions; calling them elsewhere works, but slowly.

use super::schedule::RoundKey;
use crate::iv::Iv;

/// One or more AES blocks in a register.
pub(in crate::cipher) trait Vector: Copy {
    /// The proof that this CPU has the instructions.
    type Isa: Copy;

    /// Blocks in one vector: 1, 2 or 4.
    const BLOCKS: usize;

    /// Bytes in one vector.
    const BYTES: usize = 16 * Self::BLOCKS;

    /// The same block in every lane.
    fn splat(isa: Self::Isa, block: &Iv) -> Self;

    /// A round key, by a volatile load.
    fn round_key(isa: Self::Isa, key: &RoundKey) -> Self;

    /// The blocks whose halves `lane(0)`, `lane(1)`, ... gives, as little-endian numbers.
    fn from_halves(isa: Self::Isa, lane: impl Fn(usize) -> [u64; 2]) -> Self;

    /// The block in the first lane.
    fn first_block(self) -> Iv;

    /// Reads `BYTES` bytes from any address.
    ///
    /// # Safety
    /// `src` is valid for reads of `BYTES` bytes.
    unsafe fn load(isa: Self::Isa, src: *const u8) -> Self;

    /// Writes `BYTES` bytes to any address.
    ///
    /// # Safety
    /// `dst` is valid for writes of `BYTES` bytes.
    unsafe fn store(self, dst: *mut u8);

    /// Reads the first `blocks` lanes, fewer than `BLOCKS`, and touches no byte behind them. The
    /// other lanes are zero.
    ///
    /// # Safety
    /// `src` is valid for reads of `16 * blocks` bytes.
    unsafe fn load_partial(isa: Self::Isa, src: *const u8, blocks: usize) -> Self;

    /// Writes the first `blocks` lanes, fewer than `BLOCKS`, and touches no byte behind them.
    ///
    /// # Safety
    /// `dst` is valid for writes of `16 * blocks` bytes.
    unsafe fn store_partial(self, dst: *mut u8, blocks: usize);

    /// Reads each lane from an address of its own.
    ///
    /// # Safety
    /// Every address is valid for reads of 16 bytes.
    unsafe fn gather(isa: Self::Isa, lane: impl Fn(usize) -> *const u8) -> Self;

    /// Writes each lane to an address of its own.
    ///
    /// # Safety
    /// Every address is valid for writes of 16 bytes.
    unsafe fn scatter(self, lane: impl Fn(usize) -> *mut u8);

    /// Every lane moved up by one, with the last lane of `before` in front.
    fn behind(self, before: Self) -> Self;

    /// `self ^ other`.
    fn xor(self, other: Self) -> Self;

    /// `self ^ second ^ third`.
    fn xor3(self, second: Self, third: Self) -> Self;

    /// One AES round.
    fn encrypt_round(self, key: Self) -> Self;

    /// The last AES round.
    fn encrypt_last(self, key: Self) -> Self;

    /// One round of the equivalent inverse cipher (FIPS 197, 5.3.5).
    fn decrypt_round(self, key: Self) -> Self;

    /// The last round of the inverse cipher.
    fn decrypt_last(self, key: Self) -> Self;

    /// In each lane, the product of `self` and `powers` in XTS's field. Each lane of `powers` is an
    /// entry of [`POWERS`].
    fn mul_power(self, powers: Self) -> Self;

    /// In each lane, `self * x^8` in XTS's field.
    fn mul_x8(self) -> Self;

    /// In each lane, `self * x^(8 * BLOCKS)` in XTS's field: one batch of eight vectors further on.
    fn mul_x8_per_block(self) -> Self;
}

/// The reduction polynomial without its highest term: x^7 + x^2 + x + 1.
pub(super) const POLYNOMIAL: i64 = 0x87;

/// For each block of the first eight of a run: its power of x in the low half, [`POLYNOMIAL`] in the
/// high half, so that a product and its reduction take their constants from one vector.
pub(super) static POWERS: Powers = Powers([
    [1, 0x87],
    [1 << 1, 0x87],
    [1 << 2, 0x87],
    [1 << 3, 0x87],
    [1 << 4, 0x87],
    [1 << 5, 0x87],
    [1 << 6, 0x87],
    [1 << 7, 0x87],
]);

/// See [`POWERS`].
#[repr(C, align(64))]
pub(super) struct Powers([[u64; 2]; 8]);

impl Powers {
    /// The powers of vector `index`'s lanes, where the vectors of a run follow each other.
    #[inline(always)]
    pub(super) fn of<V: Vector>(&self, isa: V::Isa, index: usize) -> V {
        let lanes = &self.0[V::BLOCKS * index..V::BLOCKS * (index + 1)];
        // SAFETY: the slice has as many 16-byte entries as the vector has lanes.
        unsafe { V::load(isa, lanes.as_ptr().cast()) }
    }
}

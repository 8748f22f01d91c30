//! AWS-LC's EVP through its raw bindings, keyed once, with only the IV set per sector.

use aws_lc_sys::{
    EVP_CIPHER_CTX, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new, EVP_Cipher, EVP_CipherInit_ex,
    EVP_aes_256_xts,
};
use std::ptr::{NonNull, null, null_mut};

use super::{Direction, Subject, iv};

/// Owns one context for each direction.
pub(super) struct AwsLc {
    encrypt: Context,
    decrypt: Context,
    sector_bytes: usize,
}

impl AwsLc {
    pub(super) fn new(key: &[u8; 64], sector_bytes: usize) -> Self {
        Self {
            encrypt: Context::new(key, Direction::Encrypt),
            decrypt: Context::new(key, Direction::Decrypt),
            sector_bytes,
        }
    }
}

impl Subject for AwsLc {
    fn name(&self) -> &'static str {
        "aws-lc"
    }

    fn run(&mut self, direction: Direction, first: u64, buf: &mut [u8]) {
        let context = match direction {
            Direction::Encrypt => &mut self.encrypt,
            Direction::Decrypt => &mut self.decrypt,
        };
        for (index, sector) in buf.chunks_exact_mut(self.sector_bytes).enumerate() {
            context.run(&iv(first, index, self.sector_bytes), sector);
        }
    }
}

struct Context(NonNull<EVP_CIPHER_CTX>);

impl Context {
    fn new(key: &[u8; 64], direction: Direction) -> Self {
        // SAFETY: allocates; the result is checked.
        let context = NonNull::new(unsafe { EVP_CIPHER_CTX_new() }).expect("AWS-LC has memory");
        let encrypt = i32::from(direction == Direction::Encrypt);
        // SAFETY: returns a static description.
        let cipher = unsafe { EVP_aes_256_xts() };
        // SAFETY: the context is ours, and the key has the 64 bytes that the cipher reads.
        let done = unsafe {
            EVP_CipherInit_ex(
                context.as_ptr(),
                cipher,
                null_mut(),
                key.as_ptr(),
                null(),
                encrypt,
            )
        };
        assert_eq!(done, 1, "AWS-LC has AES-256-XTS");
        Self(context)
    }

    fn run(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        // SAFETY: the context is ours and keyed; -1 keeps its direction; the IV has 16 bytes.
        let done = unsafe {
            EVP_CipherInit_ex(self.0.as_ptr(), null(), null_mut(), null(), iv.as_ptr(), -1)
        };
        assert_eq!(done, 1, "an IV fits");
        let data = sector.as_mut_ptr();
        // SAFETY: AWS-LC works in place where both pointers are the same, on `len` bytes.
        let done = unsafe { EVP_Cipher(self.0.as_ptr(), data, data, sector.len()) };
        assert_eq!(done, 1, "AWS-LC stopped early");
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` and freed only here.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) };
    }
}

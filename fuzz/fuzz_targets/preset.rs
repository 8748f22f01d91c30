//! libFuzzer's way into [`crypt_fuzz::targets::preset`].

#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    crypt_fuzz::targets::preset::check(input);
});

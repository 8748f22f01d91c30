#!/bin/sh
# Has the kernel's dm-crypt encrypt 64 KiB under every specification, key size, sector size and numbering of
# sectors that crypt-core supports, and prints the SHA-256 of each ciphertext:
#
#   scripts/dm-crypt-vectors.sh >crypt-core/tests/data/dm_crypt.txt
#
# Needs root, dmsetup, losetup and the modules dm-crypt and loop: use a virtual machine. The plaintext is
# `seq 100000 199999 | head -c 65536`, key byte i is i. The second IV offset lets the numbers of 512-byte sectors
# pass 2^32 within the data.

set -eu
work=$(mktemp -d)
trap 'losetup -d "$loop" 2>/dev/null || true; rm -rf "$work"' EXIT
modprobe -a dm-crypt loop

seq 100000 199999 | head -c 65536 >"$work/plaintext"
truncate -s 65536 "$work/image"
loop=$(losetup -f)
losetup "$loop" "$work/image"

# encrypt SPEC KEY_BYTES SECTOR_SIZE LARGE_SECTORS
encrypt() {
    key=$(printf '%02x' $(seq 0 $(($2 - 1))))
    options="1 sector_size:$3"
    if [ "$4" = large ]; then options="2 sector_size:$3 iv_large_sectors"; fi
    for offset in 0 4294967280; do
        dmsetup create vector --table "0 128 crypt $1 $key $offset $loop 0 $options"
        dd if="$work/plaintext" of=/dev/mapper/vector bs=65536 conv=fsync status=none
        dmsetup remove vector
        echo "$1 $2 $3 $4 $offset $(sha256sum <"$work/image" | cut -d' ' -f1)"
    done
}

# every_size SPEC KEY_BYTES
every_size() {
    encrypt "$1" "$2" 512 each
    for size in 1024 2048 4096; do
        encrypt "$1" "$2" "$size" each
        encrypt "$1" "$2" "$size" large
    done
}

echo "# Linux $(uname -r), $(dmsetup targets | tr -s ' ' | grep '^crypt'): specification, bytes of the key, sector size,"
echo "# numbers of 512-byte sectors (each) or of crypto sectors (large), IV offset, SHA-256 of the ciphertext"
for iv in plain64 plain plain64be benbi null essiv:sha256 eboiv; do
    every_size "aes-xts-$iv" 32
    every_size "aes-xts-$iv" 64
    every_size "aes-cbc-$iv" 16
    every_size "aes-cbc-$iv" 32
done
for iv in plain64 plain null; do
    every_size "xchacha12,aes-adiantum-$iv" 32
done

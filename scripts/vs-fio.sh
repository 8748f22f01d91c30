#!/usr/bin/env bash
# Compares crypt-bench with fio: the same file, block size and depth, one job each, in turns.
# Prints the medians of both and the median of the ratios of neighbouring runs. --help says more.

set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: scripts/vs-fio.sh [OPTION]...

  --file PATH     read this existing file or block device, which is not changed
                  (default: a file in TMPDIR that is made for the run; written to as well)
  --loop          use a loop device over a file in /dev/shm instead (needs root)
  --size MIB      size of the file that is made (default 1024)
  --runtime S     seconds of each run (default 3)
  --repeats N     runs of each program (default 5)
  --check         exit with status 1 where a ratio is below its bar
  --help          this text

Rows: the null engine (crypt-bench on its null device with cipher_null), then 4 KiB random reads and
writes at depth 32 through io_uring with direct I/O, with no cipher stage and with cipher_null.
Latency is the whole one, from submission to completion (fio: lat, not clat).

fio is installed with apt-get where it is missing.
END
}

# shellcheck source=scripts/fio-pairs.sh
source "$(dirname "$0")/fio-pairs.sh"

file='' use_loop=no size_mib=1024 runtime_s=3 repeats=5 check=no
while (($# > 0)); do
    case $1 in
        --file) file=${2:?--file needs a path} && shift ;;
        --loop) use_loop=yes ;;
        --size) size_mib=${2:?--size needs a number of MiB} && shift ;;
        --runtime) runtime_s=${2:?--runtime needs a number of seconds} && shift ;;
        --repeats) repeats=${2:?--repeats needs a number} && shift ;;
        --check) check=yes ;;
        --help) usage && exit 0 ;;
        *) usage >&2 && fail "unknown option $1" ;;
    esac
    shift
done
[[ $size_mib =~ ^[1-9][0-9]*$ ]] || fail "--size $size_mib: give a number of MiB"
[[ $runtime_s =~ ^[1-9][0-9]*$ ]] || fail "--runtime $runtime_s: give whole seconds"
[[ $repeats =~ ^[1-9][0-9]*$ ]] || fail "--repeats $repeats: give a number"
[[ -z $file || -r $file ]] || fail "$file can't be read"
[[ -z $file || $use_loop = no ]] || fail "--file and --loop exclude each other"

need_fio

cd "$(dirname "$0")/.."
cargo build --release --quiet -p crypt-bench
bench=${CARGO_TARGET_DIR:-target}/release/crypt-bench

scratch=$(mktemp -d)
made='' loop=''
cleanup() {
    [[ -z $loop ]] || losetup --detach "$loop"
    rm -rf "$scratch" ${made:+"$made"}
}
trap cleanup EXIT

# Makes a file with content: blocks that were never written don't reach the disk when read.
make_file() {
    made=$(mktemp "$1/vs-fio.XXXXXX")
    head -c "${size_mib}M" /dev/urandom >"$made"
    sync "$made"
}

rows=(null)
destroy=()
if [[ $use_loop = yes ]]; then
    make_file /dev/shm
    loop=$(losetup --find --show "$made") || fail 'no loop device; run as root'
    file=$loop destroy=(--destroy-data-on "loop:$made")
elif [[ -z $file ]]; then
    make_file "${TMPDIR:-/tmp}"
    file=$made destroy=(--destroy-data-on "$made")
fi
rows+=(randread:none randread:cipher_null-ecb)
[[ ${#destroy[@]} -eq 0 ]] || rows+=(randwrite:none randwrite:cipher_null-ecb)

# Both print "IOPS P99_NS".
run_fio() {
    local row=$1 arguments=(--rw=randread --ioengine=null --size=1g) direction=read
    if [[ $row != null ]]; then
        arguments=(--rw="${row%%:*}" --ioengine=io_uring --direct=1 --filename="$file")
        [[ $row = randread:* ]] && arguments+=(--readonly)
        [[ $row = randwrite:* ]] && direction='write'
    fi
    fio --name=vs --bs=4k --iodepth=32 --thread --time_based --runtime="$runtime_s" \
        --ramp_time=500ms --norandommap --randrepeat=0 --clat_percentiles=0 --lat_percentiles=1 \
        --output-format=json "${arguments[@]}" 2>"$scratch/fio.log" |
        awk -v section="\"$direction\" : {" '
            index($0, section) { inside = 1 }
            inside && $1 == "\"iops\"" && iops == "" { iops = $3 + 0 }
            inside && $1 == "\"99.000000\"" && p99 == "" { p99 = $3 + 0 }
            END { if (iops + 0 == 0 || p99 == "") exit 1; print iops, p99 }' ||
        fail "fio gave no result: $(cat "$scratch/fio.log")"
}

run_ours() {
    local row=$1 arguments=(--device null --rw randread --cipher cipher_null-ecb)
    if [[ $row != null ]]; then
        arguments=(--device "file:$file" --rw "${row%%:*}" --cipher "${row#*:}" --direct
            --engine io_uring)
        [[ $row = randwrite:* ]] && arguments+=("${destroy[@]}")
    fi
    rm -rf "$scratch/out"
    "$bench" matrix --policy inline --only --bs 4k --depth 32 --jobs 1 --repeats 1 \
        --sector-size 4k --runtime "${runtime_s}s" --ramp 500ms --out "$scratch/out" --json \
        "${arguments[@]}" 2>"$scratch/ours.log" |
        awk '$1 == "\"iops\":" { iops = $2 + 0 }
            $1 == "\"lat_ns_p99\":" { p99 = $2 + 0 }
            END { if (iops + 0 == 0 || p99 == "") exit 1; print iops, p99 }' ||
        fail "crypt-bench gave no result: $(cat "$scratch/ours.log")"
}

# The bars of the project, as ratios of IOPS.
bar_of() {
    if [[ $1 = null ]]; then echo 2; else echo 0.95; fi
}

# Median over the pairs of one column by another, or of one divided by a number.
ratio_of() { awk -v a="$1" -v b="$2" '{ print $a / $b }' "$scratch/pairs" | median; }
microseconds() { awk -v a="$1" '{ print $a / 1000 }' "$scratch/pairs" | median; }

echo "$(fio --version), $("$bench" --version); $repeats runs of $runtime_s s each, in turns; $file"
printf '%-26s %12s %12s %8s %6s %12s %12s %8s\n' \
    '4 KiB, depth 32' 'fio IOPS' 'our IOPS' 'ratio' 'bar' 'fio p99 us' 'our p99 us' 'ratio'
missed=0
for row in "${rows[@]}"; do
    : >"$scratch/pairs"
    for ((n = 0; n < repeats; n++)); do
        # Who goes first changes, so that a drift of the machine favours nobody.
        if ((n % 2 == 0)); then
            theirs=$(run_fio "$row")
            ours=$(run_ours "$row")
        else
            ours=$(run_ours "$row")
            theirs=$(run_fio "$row")
        fi
        echo "$theirs $ours" >>"$scratch/pairs"
    done
    ratio=$(ratio_of 3 1) bar=$(bar_of "$row")
    # fio's null engine ends each request in the call that starts it, so its depth is one in truth
    # and its latency says nothing about a queue of 32.
    latency=(- - -)
    [[ $row = null ]] || latency=("$(microseconds 2)" "$(microseconds 4)" "$(ratio_of 4 2)")
    printf '%-26s %12.0f %12.0f %8.3f %6s %12.7s %12.7s %8.5s\n' "$row" \
        "$(column 1)" "$(column 3)" "$ratio" "$bar" "${latency[@]}"
    is_below "$ratio" "$bar" && missed=$((missed + 1))
done
if [[ $check = yes ]] && ((missed > 0)); then
    echo "vs-fio: $missed of ${#rows[@]} rows are below their bar" >&2
    exit 1
fi

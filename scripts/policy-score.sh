#!/usr/bin/env bash
# Holds the adaptive policy against the better fixed one of every workload: measures benches/policy.toml, simulates
# what is slow or not at hand, and prints the score as one table. --help says more.

set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: scripts/policy-score.sh [OPTION]...

  --part NAME     only this part; may be given several times (default: all)
                    real      memory, a loop device over a file in memory, modelled NVMe and Optane drives
                    virtual   a modelled SATA SSD and a disk, on this machine as a model
                    machines  64 cores with 24 drives, 256 cores, two cores with a cipher of 0.2 GB/s
  --no-loop       a file in TMPDIR in place of the loop device
  --sample N      only N cells of each run, drawn evenly over its matrix (default: all cells)
  --repeats N     measured repeats (default 10; 6 in simulations)
  --seed N        of the sample and of the requests (default 1)
  --out DIR       where results go, and stay (default reports/policy-score)
  --resume        go on with what an interrupted run left in --out
  --all           name the cells too of which nothing can be said
  --check         exit with status 10 where a bar is missed
  --bench PATH    the program (default: target/release/crypt-bench, which is built)
  --help          this text

The real part takes 592 cells x 3 policies x 10 repeats, which run in turns; how long that is going to take is printed
before it starts, and is under 90 minutes on two cores. Its loop device needs root; without, it is a file in TMPDIR. The
others take some minutes each. The bars and how they are judged: crypt-bench score --help, and the documentation of
its module `score`.
END
}

fail() {
    echo "policy-score: $*" >&2
    exit 2
}

number() { [[ $2 =~ ^[1-9][0-9]*$ ]] || fail "$1 $2: give a number from 1"; }

parts=() sample=() score=() repeats=10 seed=1 use_loop=yes out=reports/policy-score resume=no bench=''
while (($# > 0)); do
    case $1 in
        --part) parts+=("${2:?--part needs a name}") && shift ;;
        --no-loop) use_loop=no ;;
        --sample) number --sample "${2:?--sample needs a number}" && sample=(--sample "$2") && shift ;;
        --repeats) repeats=${2:?--repeats needs a number} && shift ;;
        --seed) seed=${2:?--seed needs a number} && shift ;;
        --out) out=${2:?--out needs a folder} && shift ;;
        --resume) resume=yes ;;
        --all) score+=(--all) ;;
        --check) score+=(--check) ;;
        --bench) bench=${2:?--bench needs a path} && shift ;;
        --help) usage && exit 0 ;;
        *) usage >&2 && fail "unknown option $1" ;;
    esac
    shift
done
number --repeats "$repeats"
number --seed "$seed"
((${#parts[@]} > 0)) || parts=(real virtual machines)
for part in "${parts[@]}"; do
    [[ $part =~ ^(real|virtual|machines)$ ]] || fail "--part $part: one of real, virtual, machines"
done

out=$(realpath -m "$out")
[[ -z $bench ]] || bench=$(realpath "$bench")
cd "$(dirname "$0")/.."
if [[ -z $bench ]]; then
    cargo build --release -q -p crypt-bench
    bench=${CARGO_TARGET_DIR:-target}/release/crypt-bench
fi
[[ $resume = yes || ! -e $out ]] || fail "$out is there already: add --resume, or give another --out"
mkdir -p "$out"

loop='' memory=''
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
    [[ -z $loop ]] || losetup --detach "$loop"
    [[ -z $memory ]] || rm -f "$memory" "$out/loop"
}
trap cleanup EXIT

# Whether a run has all its results.
is_complete() { grep -qs '"state": "complete"' "$out/$1/manifest.json"; }

# The file device: a loop device by a name that a later --resume can give it again.
file_device() {
    device=scratch allow=()
    if [[ $use_loop = no ]]; then return; fi
    if ((EUID != 0)); then
        echo 'skipped: no loop device, run as root; a file in the temporary folder instead' >&2
        return
    fi
    memory=$(mktemp /dev/shm/policy-score.XXXXXX)
    head -c 512M /dev/urandom >"$memory"
    loop=$(losetup --find --show "$memory") || fail 'no loop device; --no-loop does without'
    ln -sfn "$loop" "$out/loop"
    device=file:$out/loop allow=(--destroy-data-on "loop:$memory")
}

# real: everything in real time.
real() {
    if is_complete real; then return; fi
    local device='' allow=() again=()
    file_device
    [[ ! -e $out/real ]] || again=(--resume)
    "$bench" matrix --matrix policy --device "memory,$device,model:nvme,model:optane" "${allow[@]}" "${sample[@]}" \
        --repeats "$repeats" --seed "$seed" --out "$out/real" "${again[@]}" >"$out/real.txt"
}

# simulated NAME MACHINE OPTION...: a run in virtual time, from its beginning.
simulated() {
    local name=$1 machine=$2
    shift 2
    if is_complete "$name"; then return; fi
    rm -rf "${out:?}/$name"
    echo "simulating $name" >&2
    "$bench" simulate --machine "$machine" --matrix policy "${sample[@]}" --repeats 6 --seed "$seed" "$@" \
        --out "$out/$name" >"$out/$name.txt" 2>"$out/$name.log" || fail "see $out/$name.log"
}

# virtual: devices too slow to wait for.
virtual() {
    [[ -e $out/machine.toml ]] || "$bench" calibrate -o "$out/machine.toml"
    simulated sata-ssd "$out/machine.toml" --device model:sata-ssd --runtime 1s --ramp 100ms
    simulated hdd "$out/machine.toml" --device model:hdd --runtime 10s --ramp 1s
}

# machines: what is not here.
machines() {
    local short=(--device 'memory,model:nvme' --runtime 40ms --ramp 20ms)
    simulated cores-64 server-64 "${short[@]}" --jobs 1,2 --devices 24
    simulated cores-256 server-256 "${short[@]}"
    simulated slow-cipher two-cores "${short[@]}" --cipher-throttle 0.2GB/s
}

for part in "${parts[@]}"; do "$part"; done
runs=()
for name in real sata-ssd hdd cores-64 cores-256 slow-cipher; do
    [[ ! -e $out/$name/manifest.json ]] || runs+=("$out/$name")
done
"$bench" score "${runs[@]}" "${score[@]}"

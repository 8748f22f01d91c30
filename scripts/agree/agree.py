"""Runs the job files beside this program with fio and with crypt-bench in turns, and compares.

Called by scripts/agree-with-fio.sh, which makes the targets. Both programs write json+. Every comparison is
of neighbouring runs; what is printed is the median of their ratios, crypt-bench divided by fio.
"""

import argparse
import ctypes
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

# Largest distance of a ratio from 1.
BARS = {"IOPS": 0.05, "p50": 0.05, "p99": 0.10}
# Standard deviations that a binomial count may be away from its mean: 1 in 16,000 is further.
SIGMAS = 4.0
# Where fio's own runs differ by more than this factor, they are of several modes, whose median is that of the
# more frequent one.
MODES = 2
# Widest bucket of fio's histograms as a share of its values, half of which is its rounding.
BUCKET = 1 / 64


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True, help="the crypt-bench to run")
    parser.add_argument("--target", required=True, help="file or device that is written to")
    parser.add_argument("--identity", required=True, help="its identity for --destroy-data-on")
    parser.add_argument("--label", required=True, help="what the target is called in the table")
    parser.add_argument("--runtime-ms", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--only", default="", help="job files whose name fits this regular expression")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="no comparison of times")
    return parser.parse_args()


def small_pages():
    """No transparent huge pages for this process and what it becomes (prctl(2), PR_SET_THP_DISABLE).

    crypt-bench has its buffers in huge pages, which spares the kernel and the device a segment for each 4 KiB;
    fio's are in small ones. Here both get the same memory, so that what is compared is how they measure.
    """
    ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)


def run(command, environment):
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, preexec_fn=small_pages
    )
    if done.returncode != 0:
        sys.exit(f"agree-with-fio: {' '.join(command)}: {done.stdout}{done.stderr}")


def measure(program, job_file, options, scratch):
    """One run. Gives the document's jobs."""
    output = os.path.join(scratch, "out.json")
    environment = dict(os.environ, AGREE_TARGET=options.target, AGREE_MS=str(options.runtime_ms))
    if program == "fio":
        command = ["fio", "--output-format=json+", f"--output={output}", str(job_file)]
    else:
        command = [options.bench, "run", "--output-format", "json+", "--output", output]
        command += ["--destroy-data-on", options.identity, str(job_file)]
    run(command, environment)
    with open(output, encoding="utf-8") as text:
        return json.load(text)["jobs"]


def total(jobs, direction):
    """A direction of all jobs: requests, bytes, requests per second, counts by bucket, percentiles."""
    bins = {}
    for job in jobs:
        for key, count in job[direction]["lat_ns"].get("bins", {}).items():
            bins[int(key)] = bins.get(int(key), 0) + count
    percentiles = jobs[0][direction]["lat_ns"].get("percentile", {})
    return {
        "ios": sum(job[direction]["total_ios"] for job in jobs),
        "bytes": sum(job[direction]["io_bytes"] for job in jobs),
        "IOPS": sum(job[direction]["iops"] for job in jobs),
        "p50": percentiles.get("50.000000"),
        "p99": percentiles.get("99.000000"),
        "bins": bins,
    }


def rank_value(bins, share):
    """The bucket of the ceil(share n)-th value."""
    rank = math.ceil(round(share * sum(bins.values()), 6))
    seen = 0
    for key in sorted(bins):
        seen += bins[key]
        if seen >= rank:
            return key
    return None


def options_of(job_file):
    """The options of a job file with one section."""
    lines = [line.strip() for line in job_file.read_text(encoding="utf-8").splitlines()]
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#["]
    return {name: value for name, _, value in pairs}


def size_bytes(text):
    return int(text[:-1]) << {"k": 10, "m": 20, "g": 30}[text[-1]]


def interval(values):
    """Bounds that hold the median in 95 of 100 cases (order statistics of a binomial)."""
    ordered = sorted(values)
    n, below, cut = len(ordered), 0.0, 0
    while cut < n // 2:
        below += math.comb(n, cut) / 2**n
        if below > 0.025:
            break
        cut += 1
    cut = max(cut - 1, 0)
    return ordered[cut], ordered[n - 1 - cut]


class Verdicts:
    """Rows and what is wrong with them."""

    def __init__(self):
        self.misses = []
        self.why = []

    def miss(self, row, text):
        self.misses.append(f"{row}: {text}")

    def explain(self, row, text):
        self.why.append(f"{row}: {text}")


def check_exact(name, pairs, options, verdicts):
    """Jobs that end by their size transfer exactly that."""
    wanted = size_bytes(options["size"]) * int(options.get("numjobs", "1")) * int(options.get("loops", "1"))
    exact = True
    for theirs, ours in pairs:
        done = [sum(total(jobs, way)["bytes"] for way in ("read", "write")) for jobs in (theirs, ours)]
        if done[1] != wanted:
            exact = False
            verdicts.miss(name, f"{done[1]} bytes instead of {wanted}")
        if done[0] != wanted:
            verdicts.explain(name, f"fio transferred {done[0]} bytes, {wanted} were asked for")
    return f"{wanted} bytes, exact" if exact else "bytes differ"


def check_mix(name, pairs, options, verdicts):
    """The share of reads is that of a coin with the asked weight."""
    share = int(options.get("rwmixread", "50")) / 100
    furthest = [0.0, 0.0]
    for pair in pairs:
        for index, jobs in enumerate(pair):
            reads, writes = (total(jobs, way)["ios"] for way in ("read", "write"))
            n = reads + writes
            distance = abs(reads - share * n) / math.sqrt(max(n * share * (1 - share), 1e-9))
            furthest[index] = max(furthest[index], distance)
    if furthest[1] > SIGMAS:
        verdicts.miss(name, f"mix {furthest[1]:.1f} standard deviations off")
    return f"reads {share:.0%} within {furthest[1]:.1f} sigma (fio {furthest[0]:.1f})"


def known_difference(name, metric, ratios, pairs, way, options, label):
    """Why a row may differ where we are right; None where there is no reason."""
    theirs, ours = ([total(jobs, way)[metric] for jobs in side] for side in zip(*pairs))
    if max(theirs) > MODES * min(theirs):
        best = max if metric == "IOPS" else min
        ratio = best(ours) / best(theirs)
        if abs(ratio - 1) <= BARS[metric]:
            return (
                f"fio's own runs go from {min(theirs):.0f} to {max(theirs):.0f}, as the kernel places the thread that "
                f"serves the device on the CPU of the job or on one that sleeps; the best runs of both have {ratio:.3f}"
            )
    if metric in ("p50", "p99"):
        share = float(metric[1:]) / 100
        alike = []
        for theirs, ours in pairs:
            values = [rank_value(total(jobs, way)["bins"], share) for jobs in (theirs, ours)]
            alike.append(values[1] / values[0])
        if abs(statistics.median(alike) - 1) <= BARS[metric]:
            return (
                f"in fio's own buckets the ratio is {statistics.median(alike):.3f}: fio shows the middle of a "
                f"bucket up to {BUCKET:.1%} wide, we the value to 3 digits"
            )
    return None


def compare(name, pairs, options, label, verdicts):
    for way in ("read", "write"):
        sides = [(total(theirs, way), total(ours, way)) for theirs, ours in pairs]
        if any(side["ios"] == 0 for pair in sides for side in pair):
            continue
        row = f"{label} {name} {way}"
        cells, marks = [], []
        for metric, bar in BARS.items():
            ratios = [ours[metric] / theirs[metric] for theirs, ours in sides]
            middle = statistics.median(ratios)
            low, high = interval(ratios)
            mark = ""
            if abs(middle - 1) > bar:
                why = known_difference(name, metric, ratios, pairs, way, options, label)
                if low <= 1 + bar and high >= 1 - bar and len(ratios) > 1:
                    mark = "~"
                    verdicts.explain(
                        row, f"{metric} {middle:.3f} is within noise: the median is in {low:.3f} to {high:.3f}"
                    )
                elif why:
                    mark = "*"
                    verdicts.explain(row, f"{metric} {middle:.3f}: {why}")
                else:
                    mark = "!"
                    verdicts.miss(row, f"{metric} {middle:.3f} ({low:.3f} to {high:.3f}), bar {bar:.0%}")
            cells.append(f"{middle:8.3f}{mark:1}")
            marks.append(mark)
        theirs = {metric: statistics.median(pair[0][metric] for pair in sides) for metric in BARS}
        ours = {metric: statistics.median(pair[1][metric] for pair in sides) for metric in BARS}
        print(
            f"{row:36} {theirs['IOPS']:9.0f} {ours['IOPS']:9.0f} {cells[0]} "
            f"{theirs['p50'] / 1e3:9.1f} {ours['p50'] / 1e3:9.1f} {cells[1]} "
            f"{theirs['p99'] / 1e3:9.1f} {ours['p99'] / 1e3:9.1f} {cells[2]}",
            flush=True,
        )


def header():
    print(
        f"{'target, job, direction':36} {'fio IOPS':>9} {'our IOPS':>9} {'ratio':>8}  "
        f"{'fio p50us':>9} {'our p50us':>9} {'ratio':>8}  {'fio p99us':>9} {'our p99us':>9} {'ratio':>8}"
    )


def main():
    options = arguments()
    verdicts = Verdicts()
    folder = pathlib.Path(__file__).parent
    files = [path for path in sorted(folder.glob("*.fio")) if re.search(options.only, path.name)]
    if not files:
        sys.exit(f"agree-with-fio: no job file's name fits `{options.only}`")
    if not options.smoke:
        header()
    notes = []
    with tempfile.TemporaryDirectory() as scratch:
        for job_file in files:
            name, job = job_file.stem, options_of(job_file)
            pairs = []
            for repeat in range(options.repeats):
                # Who goes first changes, so that a drift of the machine favours nobody.
                order = ["fio", "ours"] if repeat % 2 == 0 else ["ours", "fio"]
                found = {program: measure(program, job_file, options, scratch) for program in order}
                pairs.append((found["fio"], found["ours"]))
            if "time_based" not in job:
                notes.append(f"{options.label} {name}: {check_exact(name, pairs, job, verdicts)}")
            if job["rw"] in ("rw", "randrw"):
                notes.append(f"{options.label} {name}: {check_mix(name, pairs, job, verdicts)}")
            if not options.smoke:
                compare(name, pairs, job, options.label, verdicts)
    report(notes, verdicts)
    if options.check and verdicts.misses:
        sys.exit(1)


def report(notes, verdicts):
    for title, lines in (("", notes), ("why", verdicts.why), ("UNEXPLAINED", verdicts.misses)):
        for line in lines:
            print(f"{title + ': ' if title else ''}{line}")


if __name__ == "__main__":
    main()

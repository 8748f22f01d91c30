"""Compares the results of a matrix with those of its simulation: see validate-simulator.sh."""

import json
import math
import statistics
import sys
from itertools import combinations
from pathlib import Path

# How far a prediction may be off in the mean, and how often the better policy must be named.
ERROR_BAR = 0.15
RIGHT_BAR = 0.90


def throughputs(folder):
    """Cell without policy -> policy -> throughputs of its valid repeats, in order."""
    cells = {}
    for line in (Path(folder) / "results.jsonl").read_text().splitlines():
        record = json.loads(line)
        cell = dict(record["cell"])
        policy = cell.pop("policy")
        key = tuple(
            (name, str(cell[name]))
            for name in ("device", "rw", "block_size_bytes", "depth", "jobs", "devices", "cipher")
        )
        total = sum(stats["bw_bytes_per_s"] for stats in (record["read"], record["write"]) if stats)
        cells.setdefault(key, {}).setdefault(policy, []).append(total)
    return cells


def show(key):
    cell = dict(key)
    return f"{cell['device']} {cell['rw']} {int(cell['block_size_bytes']) // 1024}k depth {cell['depth']}"


def differ(left, right):
    """Whether every repeat of one is above every repeat of the other."""
    return min(left) > max(right) or min(right) > max(left)


def main():
    measured, simulated = throughputs(sys.argv[1]), throughputs(sys.argv[2])
    errors, pairs, wrong = [], 0, []
    for key, policies in measured.items():
        predicted = simulated.get(key, {})
        for policy, values in policies.items():
            if policy in predicted and min(values) > 0:
                ratio = statistics.median(predicted[policy]) / statistics.median(values)
                errors.append((ratio, show(key), policy, statistics.median(values) / 1e6))
        for left, right in combinations(sorted(policies), 2):
            if left not in predicted or right not in predicted or not differ(policies[left], policies[right]):
                continue
            pairs += 1
            real = statistics.median(policies[left]) / statistics.median(policies[right])
            model = statistics.median(predicted[left]) / statistics.median(predicted[right])
            if (real > 1) != (model > 1):
                wrong.append(f"{show(key)}: {left} / {right} is {real:.2f} measured, {model:.2f} simulated")
    if not errors:
        sys.exit("no cell is in both")
    logs = [abs(math.log(ratio)) for ratio, *_ in errors]
    mean = math.expm1(statistics.fmean(logs))
    within = sum(log <= math.log1p(ERROR_BAR) for log in logs)
    print(f"{len(errors)} runs: predicted throughput is off by {100 * mean:.1f} % in the geometric mean, "
          f"median {100 * math.expm1(statistics.median(logs)):.1f} %; {within} within {100 * ERROR_BAR:.0f} %")
    right = 1 - len(wrong) / pairs if pairs else math.nan
    print(f"{pairs} pairs of policies differ beyond noise; the better one is named in {100 * right:.1f} %")
    for line in wrong:
        print(f"  wrong: {line}")
    print("furthest off (simulated / measured):")
    for ratio, cell, policy, rate in sorted(errors, key=lambda entry: -abs(math.log(entry[0])))[:15]:
        print(f"  {ratio:5.2f}  {cell} {policy} ({rate:.0f} MB/s)")
    if sys.argv[3] == "yes" and not (mean <= ERROR_BAR and right >= RIGHT_BAR):
        sys.exit(1)


main()

"""python -m tests.corpus [words…]: runs the corpus, or the cases with one of the words, and says how it stands."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.corpus.environment import Ground
from tests.corpus.reader import Case, all_cases
from tests.corpus.verdict import REFUSED, REWORDED, RIGHT, VERDICTS, WRONG, WRONGLY_REFUSED, Verdict, judge

BESIDES = {"traps", "mistakes", "around"}
"""Categories that are no analysis: they do not count for the share that is answered."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.corpus", description="Run the corpus, and say how it stands.")
    parser.add_argument("words", nargs="*", metavar="WORDS", help="only the cases with one of these in file or title")
    words = parser.parse_args(arguments).words
    chosen = [c for c in all_cases() if not words or any(w in f"{c.file} {c.title}" for w in words)]
    if not chosen:
        parser.error(f"no case has {' or '.join(words)} in its file or title")
    judged = run(chosen)
    for line in failures(judged):
        print(line)
    for line in summary(judged):
        print(line)
    return any(not verdict.good for _, verdict in judged)


def run(cases: list[Case]) -> list[tuple[Case, Verdict]]:
    grounds = {schema: Ground(schema) for schema in {case.schema for case in cases}}
    judged = [(case, judge(case, grounds[case.schema])) for case in cases]
    for ground in grounds.values():
        ground.close()
    return judged


def failures(judged: list[tuple[Case, Verdict]]) -> list[str]:
    """Grouped by what went wrong: the first line of an error without the names in it."""
    lines: list[str] = []
    for word in (WRONG, WRONGLY_REFUSED, REWORDED):
        groups: dict[str, list[tuple[Case, Verdict]]] = {}
        for case, verdict in judged:
            if verdict.word == word:
                groups.setdefault(_cause(verdict), []).append((case, verdict))
        for cause, found in sorted(groups.items(), key=lambda item: -len(item[1])):
            lines += [f"## {word}: {cause}  ({len(found)})", ""]
            for case, verdict in found:
                lines += [f"- {case.file}: {case.title}", *(f"      {line}" for line in verdict.why.split("\n"))]
            lines.append("")
    return lines


def _cause(verdict: Verdict) -> str:
    first = verdict.why.split("\n")[0]
    return '"…"'.join(first.split('"')[::2])[:110] if verdict.word != WRONG or ": " in first[:40] else "another answer"


def summary(judged: list[tuple[Case, Verdict]]) -> list[str]:
    rows = {category: Counter[str]() for category in sorted({case.category for case, _ in judged})}
    for case, verdict in judged:
        rows[case.category][verdict.word] += 1
    total = sum(rows.values(), Counter[str]())
    lines = [f"{'category':<14}" + "".join(f"{word:>24}" for word in VERDICTS)]
    for name, counts in [*rows.items(), ("all", total)]:
        lines.append(f"{name:<14}" + "".join(f"{counts[word]:>24}" for word in VERDICTS))
    real = [(case, verdict) for case, verdict in judged if case.category not in BESIDES]
    asked = [verdict for case, verdict in real if not case.refused or case.directive("xfail")]
    right = sum(verdict.word == RIGHT for verdict in asked)
    refused = sum(verdict.word in (REFUSED, REWORDED) for _, verdict in real)
    share = 100 * right / max(1, len(real))
    answered = f"of {len(real)} realistic statements {right} are answered and right ({share:.1f} %)"
    return [*lines, f"{answered}, {refused} refused as they should be"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

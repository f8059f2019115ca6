"""python -m muster doctor: looks at what a job would find here, and says what to mend."""

from __future__ import annotations

import argparse
import sys

from . import _doctor


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m muster")
    verbs = parser.add_subparsers(dest="verb", required=True)
    doctor = verbs.add_parser(
        "doctor",
        help="what a job would find here, one line each",
        description="Looks at library, programs, broker, identity, signals, DataLoader shield, "
        "directory and frameworks. Exit code 0: all is well; 1: something is to be mended.",
    )
    doctor.add_argument("--broker", metavar="ADDR", help="instead of MUSTER_BROKER")
    doctor.add_argument("--directory", metavar="DIR", help="instead of MUSTER_CHECKPOINT_DIR")
    given = parser.parse_args()
    findings = _doctor.examine(given.broker, given.directory)
    print(*findings, sep="\n")
    return int(any(finding.mend is not None for finding in findings))


if __name__ == "__main__":
    sys.exit(main())

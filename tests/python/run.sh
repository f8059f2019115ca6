#!/bin/bash
# run.sh FILE - the tests of a file, with the Python that `./tools/dev` made. A file that needs a framework says so in a line
# `# needs: NAME`; without it: exit code 77, with the reason on stdout.
set -euo pipefail
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}" "${PYTHON:?run by ctest of a tree with MUSTER_PYTHON}"
musterd=$MUSTERD muster=$MUSTER
unset "${!MUSTER_@}" # a job's identity comes from the tests, not from around us
export PYTHONPATH="$BUILD_DIR/client/python" PYTHONDONTWRITEBYTECODE=1 MUSTERD=$musterd MUSTER=$muster
export KERAS_BACKEND=jax # its default is TensorFlow, which nobody installs here
for framework in $(sed -n 's/^# needs: //p' "$1"); do
    # Not by importing it: what is there and cannot be imported fails its tests.
    if ! "$PYTHON" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$framework') is None)"; then
        echo "skipped: $framework is not installed in build/python; \`./tools/dev python --slow\` installs it"
        exit 77
    fi
done
cd "$SOURCE_DIR/tests/python"
exec "$PYTHON" -m pytest -q -rs -p no:cacheprovider --durations=3 "$1"

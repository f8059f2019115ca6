"""Writes the C source of muster._native out of muster's public headers.

    build_native.py COMPILER OUTPUT.c INCLUDE_DIRECTORY...

Owns: the way from headers to declarations. Never: a declaration of its own of what a header
declares; the callbacks in CALLBACKS are functions that the headers give a type.
"""

import pathlib
import re
import subprocess
import sys

from cffi import FFI

HEADERS = ("muster/muster.h", "muster/client.h")

# Called on the thread that is inside a call of muster's, never on one of muster's own.
CALLBACKS = """
extern "Python" int muster_py_save(const struct muster_save_context *context);
extern "Python" int muster_py_restore(const struct muster_restore_context *context);
extern "Python" bool muster_py_interrupted(void *arg);
extern "Python" int muster_py_state_check(void *arg);
extern "Python" int muster_py_task(muster_task_t *task, void *arg);
"""
OWN = pathlib.Path(__file__).with_name("turn.c")
OWN_CALLS = """
struct muster_py_turn {
    muster_node_t *node; muster_manager_t *manager; struct muster_error *error; bool raised; ...;
};
#define MUSTER_PY_IN_A_CALL ...
#define MUSTER_PY_RAISED ...
#define MUSTER_PY_SAVES ...
bool muster_py_turn_take(struct muster_py_turn *turn); /* false: it is taken */
void muster_py_turn_give(struct muster_py_turn *turn);
int muster_py_step(struct muster_py_turn *turn);
int muster_py_should_save(struct muster_py_turn *turn, int64_t step, bool force);
const char *muster_py_version(void); /* that the module was compiled for */
void free(void *); /* of strings that C gives */
"""


def preprocess(compiler, include_directories):
    """The lines that come from muster's headers, without those of the C library."""
    source = "".join(f"#include <{header}>\n" for header in HEADERS)
    command = [compiler, "-E", "-x", "c", "-std=c11"]
    for directory in include_directories:
        command += ["-I", directory]
    output = subprocess.run(
        command + ["-"], input=source, capture_output=True, text=True, check=True
    ).stdout
    ours, lines, files = False, [], []
    for line in output.splitlines():
        marker = re.match(r'# \d+ "(.*)"', line)
        if marker:
            ours = "/muster/" in marker.group(1)
            if ours and marker.group(1) not in files:
                files.append(marker.group(1))
        elif ours and line.strip():
            lines.append(line)
    return "\n".join(lines), files


def numbers(files):
    """Macros whose value is a plain number: the preprocessor leaves none of them."""
    found = {}
    for file in files:
        with open(file, encoding="utf-8") as text:
            for name, value in re.findall(
                r"^#define (MUSTER_[A-Z0-9_]+) \(?(-?\d+)\)?\s*(?:/\*|$)", text.read(), re.M
            ):
                found[name] = value
    return "".join(f"#define {name} {value}\n" for name, value in sorted(found.items()))


def declarations(compiler, include_directories):
    text, files = preprocess(compiler, include_directories)
    text = re.sub(r'__attribute__\s*\(\(visibility\("default"\)\)\)', "", text)
    text = text.replace("_Static_assert", "//")
    return text + "\n" + numbers(files)


def main():
    compiler, output, *include_directories = sys.argv[1:]
    cdef = declarations(compiler, include_directories)
    ffi = FFI()
    ffi.cdef(cdef)
    ffi.cdef(CALLBACKS)
    ffi.cdef(OWN_CALLS)
    headers = "#include <stdlib.h>\n" + "".join(f"#include <{name}>\n" for name in HEADERS)
    own = "static const char *muster_py_version(void) { return MUSTER_VERSION; }\n"
    own += OWN.read_text(encoding="utf-8")
    ffi.set_source("muster._native", headers + own)
    ffi.emit_c_code(output)
    with open(output.removesuffix(".c") + ".cdef", "w", encoding="utf-8") as file:
        file.write(cdef)


if __name__ == "__main__":
    main()

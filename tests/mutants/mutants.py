#!/usr/bin/env python3
"""mutants - changes one place of the product at a time and tells which of them no test sees.

usage: mutants.py list|run [--max N] [PATTERN]    mutants whose name has PATTERN in it (default: the sample of all but
                                                  tools/)
       mutants.py selftest                        the tool on a tree of its own

A mutant is named FILE:FUNCTION:KIND:N, or patch:NAME for tests/mutants/NAME.patch. The sample is the N names with the
lowest hash (200), so a change of one file changes little of it. Works on a copy in build/mutants/src, with a build tree of
its own. A mutant runs the tests of its file's folder, those of its file's name first, one core-minute at most.
The result is build/mutants/table.txt; exit code 1: a mutant survived that survivors.txt does not explain.
"""
import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CPU_SECONDS = 60  # of one mutant's tests
TEST_SECONDS = 30  # of one test: a loop without an end
WALL_SECONDS = 120  # a test that waits for ever
SAMPLE = 200
ONLY_NAMED = "tools/"  # not in the sample: what its tests see is a page or a screen, and of each only a part
SIM = "sim.seeds"
SIM_ARGS = ["--seeds", "1..150"]

# What is logic, which tests see it, and whether the simulator runs it: the first that fits.
FOLDERS = [
    ("broker/core/", r"^unit\.(core|store_check|loop)", True),
    ("broker/store", r"^unit\.(store|core_(copy|load|tasks))|^faults\.(durable_names|vfs_calls)$", True),
    ("broker/bus", r"^unit\.(bus|loop|outbox)|^proc\.(broker|bundles|keys|handshakes|hostile_peers)$", False),
    ("broker/relay", r"^unit\.relay|^proc\.(relay_preempted|relay_stacked)$", False),
    ("broker/", r"^unit\.(loop|outbox|config|announce|order|words)|^proc\.(broker|metrics)$", False),
    ("node/core/", r"^unit\.member", True),
    ("node/shard/", r"^unit\.(shard|dir|safetensors|checksum|snapshot|state|local)"
     r"|^faults\.(power_cut|node_files|durable_names|broken_lists)$", False),
    ("node/notice/", r"^unit\.(notice|signal|identity)|^proc\.notice_(file|command|child|share|slurm|gce)$", False),
    ("node/", r"^unit\.(agent|local|gate|writer|supervised|boundary|member_hang)"
     r"|^proc\.(link|hold|leave_waits|lost_wakeups)$", False),
    ("client/examples/", None, False),
    ("client/node/", r"^unit\.(agent|node_|local|shard_contents|options_init|manager|training|query|state)"
     r"|^proc\.(hold|callbacks|query_broker|finish_killed)$", True),
    ("client/", r"^unit\.(manager|training|task_parts|coordinator|query|state)"
     r"|^proc\.(coordinator_attach|worker_hears|worker_start|task_link|query_broker|task_arguments)$", True),
    ("tools/bench/", None, False),
    ("tools/setup/", None, False),
    ("tools/run/", r"^unit\.(supervise|job_end)$|^cli\.run_"
     r"|^proc\.run_(killed_rank|preempted|ctrl_c|taken_away)$", False),
    ("tools/web/", r"^proc\.web_(answers|orders|broker)$", False),
    ("tools/live/", r"^cli\.top$", False),
    ("tools/cmd_key", r"^proc\.keys", False),
    ("tools/cmd_forget", r"^proc\.jobs_forgotten$", False),
    ("tools/", r"^unit\.(render|order|paint|progress)$"
     r"|^cli\.(golden|same_answers|latest_\w+|verify_flips|why_moment|unpin_answer)$|^proc\.import_", False),
    ("schema/", r"^unit\.(wire|bundle|manifest|plan|policies|counts|status|arena|paths|core|member|dir)", True),
]


def fail(text):
    sys.exit("mutants: " + text)


# --- what may be changed ------------------------------------------------------------------------------------------

# A call that is dropped is one for its effect; what frees, closes or says something is not looked for.
NOT_DROPPED = re.compile(r"\b(\w*(free|decref|destroy|clear|close|closedir|log|say|print|warn|release|drop)\w*"
                         r"|assert|MUST)\(")
RULES = [  # (kind, what a line must have, what becomes of it)
    ("drop", re.compile(r"^( +)(\w+(->\w+|\.\w+)*\(.*\);)$"), r"\1(void)0;"),
    ("drop", re.compile(r"^( +)(\(void\)\w+\(.*\);)$"), r"\1(void)0;"),
    ("skip", re.compile(r"^( +)(status|code|good|ok) = (\w+\(.*\));$"), r"\1(void)0;"),
    ("negate", re.compile(r"^( +)((?:\} else )?if|while) \((.*)\)( \{)?$"), r"\1\2 (!(\3))\4"),
    ("return", re.compile(r"^( +)return;$"), r"\1;"),
    ("return", re.compile(r"^( +)return true;$"), r"\1return false;"),
    ("return", re.compile(r"^( +)return false;$"), r"\1return true;"),
    ("flag", re.compile(r"^( +\S.*) = true;$"), r"\1 = false;"),
    ("flag", re.compile(r"^( +\S.*) = false;$"), r"\1 = true;"),
    ("bound", re.compile(r"^(.*\w\)?) < (\w.*)$"), r"\1 <= \2"),
    ("bound", re.compile(r"^(.*\w\)?) <= (\w.*)$"), r"\1 < \2"),
    ("bound", re.compile(r"^(.*\w\)?) > (\w.*)$"), r"\1 >= \2"),
    ("bound", re.compile(r"^(.*\w\)?) >= (\w.*)$"), r"\1 > \2"),
    ("and", re.compile(r"^(.*\S) && (\S.*)$"), r"\1 || \2"),
    ("and", re.compile(r"^(.*\S) && ?$"), r"\1 ||"),
    ("or", re.compile(r"^(.*\S) \|\| (\S.*)$"), r"\1 && \2"),
    ("one", re.compile(r"^(.*\w) \+ 1\b(.*)$"), r"\1 + 2\2"),
    ("one", re.compile(r"^(.*\w) - 1\b(.*)$"), r"\1\2"),
    ("bound", re.compile(r"^(#define \w+(?:_MAX|_MIN) )(\d+)$"), None),  # one more
]


def balanced(text):
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0


def change(kind, rule, replacement, line):
    """The line changed by a rule, or None."""
    found = rule.match(line)
    if not found or line.lstrip().startswith(("//", "*", "/*")):
        return None
    if kind in ("drop", "skip") and (NOT_DROPPED.search(line) or not balanced(line)):
        return None
    if kind == "negate" and not balanced(found.group(3)):
        return None
    if replacement is None:
        return "%s%d" % (found.group(1), int(found.group(2)) + 1)
    changed = rule.sub(replacement, line)
    return changed if changed != line else None


def mutants_of(path, text):
    """(name, line number, changed line) of each place."""
    counts = {}
    function = "-"
    before = ""  # the line before that says something
    for number, line in enumerate(text.split("\n")):
        goes_on = not re.search(r"([;{})]|\*/|:)$", before)
        before = line.rstrip() or before
        begin = re.match(r"^(?!#)\w.*?(\w+)\(", line)
        if begin and not line.endswith(";"):
            function = begin.group(1)
        elif line == "}":
            function = "-"
        if '"' in line and re.search(r'"[^"]*( [<>]=? | && | \|\| | [+-] 1\b)[^"]*"', line):
            continue  # in a text
        for kind, rule, replacement in RULES:
            changed = change(kind, rule, replacement, line)
            if changed is None or (kind in ("drop", "skip") and goes_on):
                continue
            key = "%s:%s:%s" % (path, function, kind)
            counts[key] = counts.get(key, 0) + 1
            yield "%s:%d" % (key, counts[key]), number, changed


def folder_of(path):
    for prefix, tests, simulated in FOLDERS:
        if path.startswith(prefix):
            return prefix, tests, simulated
    return None, None, False


def all_mutants(root):
    found = {}
    for top in ("broker", "client", "node", "schema", "tools"):
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), root)
                if not name.endswith(".c") or folder_of(path)[1] is None:
                    continue
                with open(os.path.join(root, path)) as file:
                    text = file.read()
                for mutant, number, changed in mutants_of(path, text):
                    found[mutant] = (path, number, changed)
    return found


def patches(root):
    folder = os.path.join(root, "tests/mutants")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return {"patch:" + name[:-6]: os.path.join(folder, name) for name in names if name.endswith(".patch")}


def chosen(root, pattern, most):
    generated = all_mutants(root)
    names = [name for name in generated if pattern in name and (pattern or not name.startswith(ONLY_NAMED))]
    names.sort(key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    hand_made = {name: path for name, path in patches(root).items() if pattern in name}
    return sorted(names[:most]), generated, hand_made


# --- a copy of the tree ---------------------------------------------------------------------------------------------


def copy_tree(root, to):
    """What differs is written; so an incremental build stays one."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], check=True,
                            capture_output=True, text=True).stdout.split("\n")
    wanted = {path for path in listed if path and os.path.isfile(os.path.join(root, path))}
    for folder, _, files in os.walk(to):
        for name in files:
            path = os.path.relpath(os.path.join(folder, name), to)
            if path not in wanted:
                os.remove(os.path.join(to, path))
    for path in wanted:
        source, target = os.path.join(root, path), os.path.join(to, path)
        with open(source, "rb") as file:
            data = file.read()
        if os.path.exists(target):
            with open(target, "rb") as file:
                if file.read() == data:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)
        shutil.copymode(source, target)


def apply_patch(source, patch):
    """The paths that it changes; raises ValueError when it does not apply."""
    with open(patch) as file:
        text = file.read()
    paths = re.findall(r"^\+\+\+ b/(\S+)", text, re.M)
    done = subprocess.run(["patch", "-p1", "-s", "--fuzz=0", "-d", source], input=text, text=True, capture_output=True)
    if done.returncode != 0 or not paths:
        raise ValueError("%s does not apply; make it again: %s" % (patch, done.stdout.strip()))
    for path in paths:
        if os.path.exists(os.path.join(source, path + ".orig")):
            os.remove(os.path.join(source, path + ".orig"))
    return paths


# --- one mutant -------------------------------------------------------------------------------------------------------


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def started_by(script, seen=()):
    """The programs that a script of `proc` or `cli` names, and those that the scripts name which it sources."""
    with open(script) as file:
        text = file.read()
    found = set(re.findall(r"\bprog_\w+", text))
    home = re.match(r".*/tests/(?:proc|cli)/", script).group()
    for name in set(re.findall(r"\blib\w*\.sh", text)) - {os.path.basename(script), *seen}:
        path = os.path.join(home, name)
        found |= started_by(path, (*seen, os.path.basename(script), name)) if os.path.exists(path) else set()
    return found


def without_limit(command):
    """ctest's tests set a limit of CPU time first: it may be above the mutant's, which cannot be raised."""
    return command[4:] if command[3:4] == ["limited"] else command


class Runner:
    def __init__(self, root):
        self.root = root
        self.home = os.path.join(root, "build/mutants")
        self.source = os.path.join(self.home, "src")
        self.tree = os.path.join(self.home, "tree")
        self.tests = {}
        self.targets = set()

    def prepare(self):
        copy_tree(self.root, self.source)
        if not os.path.exists(os.path.join(self.tree, "build.ninja")):
            subprocess.run(["cmake", "-S", self.source, "-B", self.tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Mutants",
                            "-DCMAKE_C_FLAGS_MUTANTS=-O1", "-DMUSTER_FAIL_POINTS=ON", "-DMUSTER_HARDENING=OFF"],
                           check=True, stdout=subprocess.DEVNULL)
        shown = subprocess.run(["ctest", "--test-dir", self.tree, "--show-only=json-v1"], check=True,
                               capture_output=True, text=True).stdout
        commands = self.commands()  # ctest names none of a program that is not built yet
        for test in json.loads(shown)["tests"]:
            environment = {}
            for entry in test.get("properties", []):
                if entry["name"] == "ENVIRONMENT":
                    environment = dict(line.split("=", 1) for line in entry["value"])
            command = without_limit(commands.get(test["name"], []))
            if any(word.startswith((self.tree + "/", self.source + "/tests/proc/",
                                    self.source + "/tests/cli/")) for word in command):
                self.tests[test["name"]] = (command, environment)
        listed = subprocess.run(["ninja", "-C", self.tree, "-t", "targets", "all"], check=True,
                                capture_output=True, text=True)
        self.targets = set(re.findall(r"^([\w-]+): ", listed.stdout, re.M))
        self.tests[SIM] = ([os.path.join(self.tree, "tests/sim/muster-sim")] + SIM_ARGS, {})

    def commands(self):
        found = {}
        for folder, _, files in os.walk(self.tree):
            if "CTestTestfile.cmake" in files:
                with open(os.path.join(folder, "CTestTestfile.cmake")) as file:
                    for line in file:
                        test = re.match(r'add_test\((?:\[=\[)?([^ \]"]+)(?:\]=\])? (.*)\)$', line.strip())
                        if test:
                            words = re.findall(r'"((?:[^"\\]|\\.)*)"', test.group(2))
                            found[test.group(1)] = [re.sub(r"\\(.)", r"\1", word) for word in words]
        return found

    def tests_for(self, path):
        """Those of the file's name first, the simulator last."""
        stem = os.path.splitext(os.path.basename(path))[0]
        _, pattern, simulated = folder_of(path)
        names = [name for name in self.tests if pattern and re.search(pattern, name)]
        named = [name for name in self.tests if re.match(r"(unit|faults|proc|cli)\.(?!slow_)", name) and
                 self.program(name) is not None and (stem in name.split(".")[1] or name.split(".")[1] in stem)]
        order = named + [name for name in names if name not in named]
        return order + ([SIM] if simulated else [])

    def program(self, test):
        """What is built for it, or None for a script."""
        return next((os.path.basename(word) for word in self.tests[test][0] if word.startswith(self.tree + "/")), None)

    def build(self, tests):
        targets = {self.program(test) for test in tests} - {None}
        for test in tests:
            if test.startswith(("proc.", "cli.")):
                script = next((word for word in self.tests[test][0] if word.endswith(".sh")), None)
                targets |= {"musterd", "muster"} | (started_by(script) if script is not None else set())
        targets = sorted(targets & self.targets)
        if not targets:
            return True, ""
        done = subprocess.run(["ninja", "-C", self.tree] + targets, capture_output=True, text=True)
        return done.returncode == 0, done.stdout

    def run_test(self, test, seconds):
        """None: it passed; else why it did not."""
        command, environment = self.tests[test]

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)  # a run in the background ignores them

        try:
            done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=WALL_SECONDS,
                                  preexec_fn=limit)
        except subprocess.TimeoutExpired:
            return "hangs"
        return None if done.returncode in (0, 77) else "fails"

    def judge(self, tests):
        """(verdict, by what). Most mutants are killed by the first tests: the others are not linked for those."""
        used = 0.0
        for batch in (tests[:2], tests[2:8], tests[8:]):
            good, output = self.build(batch)
            if not good:
                return "not built", output.strip().split("\n")[-1][:80]
            for test in batch:
                if used >= CPU_SECONDS:
                    return "survived", "for want of time before " + test
                begin = children_seconds()
                why = self.run_test(test, min(TEST_SECONDS, int(CPU_SECONDS - used) + 1))
                used += children_seconds() - begin
                if why is not None:
                    return "killed", test + " " + why
        return "survived", "%d tests" % len(tests)

    def check_baseline(self, paths):
        """Each test that may be used passes without a mutant."""
        tests = sorted({test for path in paths for test in self.tests_for(path)})
        good, output = self.build(tests)
        if not good:
            fail("the tree does not build:\n" + output[-2000:])
        for test in tests:
            why = self.run_test(test, CPU_SECONDS)
            if why is not None:
                fail("%s %s without a mutant, so it would kill them all" % (test, why))

    def restore(self, paths):
        for path in paths:
            shutil.copyfile(os.path.join(self.root, path), os.path.join(self.source, path))

    def mutate(self, name, generated, hand_made):
        """The paths that were changed in the copy."""
        if name in hand_made:
            return apply_patch(self.source, hand_made[name])
        path, number, changed = generated[name]
        file = os.path.join(self.source, path)
        with open(file) as opened:
            lines = opened.read().split("\n")
        lines[number] = changed
        with open(file, "w") as opened:
            opened.write("\n".join(lines))
        return [path]

    def one(self, name, generated, hand_made):
        try:
            paths = self.mutate(name, generated, hand_made)
        except ValueError as error:
            fail(str(error))
        try:
            tests = []
            for path in paths:
                tests += [test for test in self.tests_for(path) if test not in tests]
            return self.judge(tests)
        finally:
            self.restore(paths)


def explained(root):
    """name -> explanation, of tests/mutants/survivors.txt."""
    path = os.path.join(root, "tests/mutants/survivors.txt")
    found = {}
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    name, _, why = line.strip().partition("  ")
                    if not why.strip():
                        fail("%s: %s has no explanation" % (path, name))
                    found[name] = why.strip()
    return found


def run(root, pattern, most):
    names, generated, hand_made = chosen(root, pattern, most)
    known = explained(root)
    runner = Runner(root)
    counts, strange = {}, 0
    if not names and not hand_made:
        fail("no mutant has \"%s\" in its name" % pattern)
    runner.prepare()
    runner.check_baseline({generated[name][0] for name in names})
    with open(os.path.join(runner.home, "table.txt"), "w") as table:
        for name in sorted(hand_made) + names:
            verdict, why = runner.one(name, generated, hand_made)
            if verdict == "survived" and name in known:
                verdict = "explained"
            strange += verdict == "survived"
            counts[verdict] = counts.get(verdict, 0) + 1
            line = "%-9s %s (%s)" % (verdict, name, why)
            print(line, flush=True)
            table.write(line + "\n")
            if verdict == "killed" and name in known:
                print("mutants: %s is killed now; take its line out of survivors.txt" % name)
    print("mutants: " + ", ".join("%d %s" % (count, verdict) for verdict, count in sorted(counts.items())))
    return 1 if strange else 0


# --- the tool itself ----------------------------------------------------------------------------------------------------

SELFTEST = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(selftest LANGUAGES C)
enable_testing()
add_executable(test_dir_age tests/test_dir_age.c schema/age.c)
target_include_directories(test_dir_age PRIVATE .)
add_executable(muster-sim tests/nothing.c)
set_target_properties(muster-sim PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests/sim)
add_test(NAME unit.dir_age COMMAND bash -c "ulimit -t 100 && exec \\"$@\\"" limited $<TARGET_FILE:test_dir_age>)
""",
    "schema/age.c": """#include "schema/age.h"
int is_old(int age)
{
    if (age < 18)
        return 0;
    return 1;
}
""",
    "schema/age.h": "int is_old(int age);\n",
    "tests/test_dir_age.c": """#include "schema/age.h"
int main(void)
{
    return is_old(17) || !is_old(30);
}
""",
    "tests/nothing.c": "int main(void) { return 0; }\n",
    "tools/options.c": "int is_one(int n)\n{\n    if (n == 1)\n        return 1;\n    return 0;\n}\n",
    "tests/mutants/good.patch": """--- a/schema/age.c
+++ b/schema/age.c
@@ -5,3 +5,3 @@
         return 0;
-    return 1;
+    return 0;
 }
""",
    "tests/mutants/survivors.txt": "schema/age.c:is_old:bound:1  a test of 18 itself is left out here\n",
}
BAD_PATCH = """--- a/schema/age.c
+++ b/schema/age.c
@@ -1,1 +1,1 @@
-nothing that is there
+another
"""


def selftest():
    missing = [tool for tool in ("git", "cmake", "ninja", "ctest", "patch") if shutil.which(tool) is None]
    if missing:
        print("skipped: no " + ", ".join(missing))
        sys.exit(77)
    with tempfile.TemporaryDirectory() as root:
        for path, text in SELFTEST.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w") as file:
                file.write(text)
        subprocess.run(["git", "init", "-q", root], check=True)
        with open(os.path.join(root, ".gitignore"), "w") as file:
            file.write("build\n")
        assert run(root, "", 200) == 0, "what is explained is no failure"
        named = ["tools/options.c:is_one:negate:1"]
        assert named[0] not in chosen(root, "", 200)[0], "the sample has none of tools/"
        assert chosen(root, "tools/", 200)[0] == named, "a pattern finds those of tools/"
        with open(os.path.join(root, "build/mutants/table.txt")) as file:
            table = file.read()
        assert "killed    patch:good (unit.dir_age fails)" in table, table
        assert "killed    schema/age.c:is_old:negate:1" in table, table
        assert "explained schema/age.c:is_old:bound:1" in table, table
        with open(os.path.join(root, "build/mutants/src/schema/age.c")) as file:
            assert file.read() == SELFTEST["schema/age.c"], "the copy is as it was"
        os.remove(os.path.join(root, "tests/mutants/survivors.txt"))
        assert run(root, "bound", 200) == 1, "a survivor without an explanation is a failure"
        with open(os.path.join(root, "tests/mutants/bad.patch"), "w") as file:
            file.write(BAD_PATCH)
        try:
            run(root, "patch:bad", 200)
        except SystemExit as error:
            assert "does not apply" in str(error), error
        else:
            raise AssertionError("a patch that does not apply is an error")
    print("mutants: the tool does what it says")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("list", "run", "selftest"))
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--max", type=int, default=SAMPLE)
    args = parser.parse_intermixed_args()
    root = os.environ.get("SOURCE_DIR") or os.path.dirname(os.path.dirname(HERE))
    if args.verb == "selftest":
        selftest()
    elif args.verb == "list":
        names, _, hand_made = chosen(root, args.pattern, args.max)
        print("\n".join(sorted(hand_made) + names))
    else:
        sys.exit(run(root, args.pattern, args.max))


main()

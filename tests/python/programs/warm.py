"""Processes that need not import what takes seconds: they are forks of one that has done so.

warm.py --serve SOCKET MODULE...     imports these modules, then forks whatever is asked for
warm.py SOCKET PROGRAM ARGUMENT...   runs PROGRAM as such a fork, with this process's environment,
                                     directory and output, in a process group of its own. Hands it
                                     SIGTERM, takes it along, and ends as it ends
"""

import contextlib
import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import sys


def whole(connection, size):
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise SystemExit("the other end is gone")
        got += more
    return got


def become(arguments, env, directory, files):
    """The program, in a forked process. Returns for the interpreter to end as it always does."""
    os.setpgid(0, 0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(directory)
    sys.argv = arguments
    sys.path[0] = str(pathlib.Path(arguments[0]).parent)
    runpy.run_path(arguments[0], run_name="__main__")


def keep(connection, pid):
    """Tells the process's end; without the one who asked for it, it is killed."""
    connection.sendall(pid.to_bytes(4, "little"))
    end = os.pidfd_open(pid)
    ready, _, _ = select.select([end, connection], [], [])
    if end not in ready:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        connection.sendall(status.to_bytes(4, "little"))


def serve(path, modules):
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # so that no fork's collector touches, and copies, all of it
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
            with contextlib.suppress(ChildProcessError):  # keepers that have ended
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    size, files, _, _ = socket.recv_fds(connection, 4, 3)
    arguments, env, directory = json.loads(whole(connection, int.from_bytes(size, "little")))
    pid = os.fork()
    if pid != 0:
        for file in files:
            os.close(file)
        keep(connection, pid)
        os._exit(0)
    connection.close()
    become(arguments, env, directory, files)


def ask(path, arguments):
    request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(request).to_bytes(4, "little")], [0, 1, 2])
        connection.sendall(request)
        pid = int.from_bytes(whole(connection, 4), "little")
        signal.signal(signal.SIGTERM, lambda signo, frame: os.kill(pid, signo))
        code = os.waitstatus_to_exitcode(int.from_bytes(whole(connection, 4), "little"))
    if code < 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if sys.argv[1] == "--serve":
    serve(sys.argv[2], sys.argv[3:])
else:
    ask(sys.argv[1], sys.argv[2:])

"""Coordinator and Worker: tasks that outlive coordinator, workers and broker. See
muster-tasks(3).
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from ._closing import Closing
from ._errors import Error, check, encoded, integer, milliseconds, new_error, wrong, wrong_type
from ._hooks import text_of
from ._log import log
from ._native import ffi, lib

_SLICE = 0.2  # seconds that a call of C waits, between which Ctrl-C is heard
_HURRY = 0.5  # seconds that a program which Ctrl-C ends gives the broker
_GOES_ON = (lib.MUSTER_E_TIMEOUT, lib.MUSTER_E_BROKER, lib.MUSTER_E_STORAGE)
_FAILED = 1  # the code of a function that raised

Result = TypeVar("Result")


def _apart(
    call: Callable[[], Result],
    ends: Callable[[], object] = lambda: None,
    borrows: Any = None,
    seconds: float | None = None,
) -> Result:
    """A call of C that nothing interrupts, on a thread of its own: Ctrl-C ends the wait for it.

    ends: called once C has returned, which may be after Ctrl-C. borrows: memory that C reads.
    Raises what the call raises, and TimeoutError after `seconds`; None = no limit.
    """
    results: list[Result] = []
    raised: list[BaseException] = []
    ended = threading.Event()

    def run(borrows: Any) -> None:
        try:
            results.append(call())
        except BaseException as error:
            raised.append(error)
        finally:
            ends()
            ended.set()

    thread = threading.Thread(target=run, args=(borrows,), name="muster call", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be had, so C was not called
        ends()
        raise
    if not ended.wait(seconds):
        raise TimeoutError
    if raised:
        raise raised[0]
    return results[0]


def _bytes(name: str, value: Any) -> Any:
    """Memory of bytes, for C that copies it."""
    try:
        return ffi.from_buffer(value)
    except TypeError:
        raise wrong_type(f"{name} is a {type(value).__name__}; give bytes") from None


def _texts(options: Any, **texts: str | None) -> list[Any]:
    memory = []
    for name, value in texts.items():
        memory.append(ffi.NULL if value is None else ffi.new("char[]", encoded(name, value)))
        setattr(options, name, memory[-1])
    return memory


class PerWorker:
    """A value that every worker makes for itself, for Coordinator.schedule(per_worker=[...])."""

    def __init__(self, coordinator: Coordinator, c: Any) -> None:
        self._coordinator = coordinator
        self._c = c


class RemoteValue:
    """The result of one task. Its queue keeps it as long as this object lives."""

    def __init__(self, coordinator: Coordinator, box: Any) -> None:
        self._coordinator = coordinator
        self._box = box
        self._pid = os.getpid()

    @property
    def id(self) -> int:
        """The task's number in its queue, from 1 on."""
        return int(lib.muster_remote_value_id(self._box[0]))

    def fetch(self, timeout: float | None = None) -> bytes:
        """Waits for the task, at most `timeout` seconds (None = as long as the broker is heard),
        and returns its result; b"" = it gave none.

        Raises TaskError of a task that failed, WaitTimeout, BrokerError.
        """
        data, size = ffi.new("const void **"), ffi.new("size_t *")
        self._coordinator._wait(
            timeout,
            lambda ms, error: lib.muster_remote_value_fetch(self._box[0], ms, data, size, error),
        )
        return bytes(ffi.buffer(data[0], size[0])) if size[0] else b""

    def cancel(self) -> None:
        """Cancels the task: at once if it is queued. Else its function sees Task.cancelled."""
        error = new_error()
        check(lib.muster_remote_value_cancel(self._box[0], error), error)

    def __del__(self) -> None:
        if getattr(self, "_pid", None) == os.getpid():
            lib.muster_remote_value_free(self._box)


class Coordinator(Closing):
    """Schedules tasks on whatever worker is free. A task runs at least once, and its queue outlives
    coordinator, workers and broker.

    Any thread may call its methods, except close. Opening takes over the queue `name`, with
    what a former coordinator left in it. If that one still lives, the broker refuses it from then
    on.

    broker, job: None = MUSTER_BROKER, MUSTER_JOB.
    fresh: forget what is in the queue.
    max_queued: schedule waits while this many tasks have not ended; None = 262,144.
    max_attempts: how many workers may be lost with a task before it fails; None = 3, at most 255.
    connect_timeout, broker_timeout: seconds without an answer of a broker, at the start and later.

    The first task that fails stops the queue: queued tasks are cancelled, and the next schedule,
    join or done raises its TaskError, whose `task` is its number. Then everything goes on.
    Raises BrokerError when no broker is heard: nothing is lost, call again.
    """

    def __init__(
        self,
        name: str = "main",
        *,
        broker: str | None = None,
        job: str | None = None,
        fresh: bool = False,
        max_queued: int | None = None,
        max_attempts: int | None = None,
        connect_timeout: float | None = None,
        broker_timeout: float = 60.0,
    ) -> None:
        options = ffi.new("struct muster_coordinator_options *")
        lib.muster_coordinator_options_init(options, ffi.sizeof(options[0]))
        texts = _texts(options, name=name, broker=broker, job=job)
        options.fresh = fresh
        options.max_queued = integer("max_queued", max_queued, bits=62)
        options.max_attempts = integer("max_attempts", max_attempts)
        options.connect_timeout_ms = milliseconds("connect_timeout", connect_timeout)
        options.broker_timeout_ms = milliseconds("broker_timeout", broker_timeout)
        self._broker_timeout = broker_timeout
        self._lock = threading.RLock()  # of the two below; a signal handler may come to it again
        self._calls = 0
        self._box: Any = None
        self._pid = os.getpid()
        error, box = new_error(), ffi.new("muster_coordinator_t **")
        status = _apart(lambda: lib.muster_coordinator_open(options, box, error), borrows=texts)
        check(status, error)
        self._box = box

    def per_worker(self, function: str, args: bytes = b"") -> PerWorker:
        """A value that every worker makes by its `values[function]`, before it gets tasks of this
        queue, and again when it comes back as a new process.

        After a restart of the coordinator the same calls in the same order find the values again.
        """
        name, data = encoded("function", function), _bytes("args", args)
        c, error, box = self._c(), new_error(), ffi.new("muster_per_worker_t **")
        self._take()
        status = _apart(
            lambda: lib.muster_coordinator_create_per_worker(c, name, data, len(data), box, error),
            self._give,
        )
        check(status, error)
        return PerWorker(self, box[0])

    def schedule(
        self,
        function: str,
        args: bytes = b"",
        *,
        per_worker: Sequence[PerWorker] = (),
        task_timeout: float | None = None,
        timeout: float | None = None,
    ) -> RemoteValue:
        """Schedules one task: a worker's `functions[function]` gets args, at most 49,152 bytes.

        task_timeout: seconds of silence after which the task goes to another worker; None = as long
        as its worker lives.
        timeout: seconds to wait while the queue is full; None = as long as the broker is heard.
        """
        call = ffi.new("struct muster_call *")
        lib.muster_call_init(call, ffi.sizeof(call[0]))
        name, data = ffi.new("char[]", encoded("function", function)), _bytes("args", args)
        values = ffi.new("muster_per_worker_t *[]", [value._c for value in per_worker])
        call.function, call.args, call.args_size = name, data, len(data)
        call.per_worker, call.per_worker_count = values, len(values)
        call.timeout_ms = milliseconds("task_timeout", task_timeout)
        box, c = ffi.new("muster_remote_value_t **"), self._c()
        self._wait(
            timeout, lambda ms, error: lib.muster_coordinator_schedule(c, call, ms, box, error)
        )
        return RemoteValue(self, box)

    def join(self, timeout: float | None = None) -> None:
        """Waits until every task has ended. Raises WaitTimeout after `timeout` seconds."""
        c = self._c()
        self._wait(timeout, lambda ms, error: lib.muster_coordinator_join(c, ms, error))

    def done(self) -> bool:
        """Have all tasks ended?"""
        error, done = new_error(), ffi.new("bool *")
        check(lib.muster_coordinator_done(self._c(), done, error), error)
        return bool(done[0])

    def flush(self, timeout: float | None = None) -> None:
        """Waits until the broker has all scheduled tasks on record. Then they will run, whatever
        process ends. Raises WaitTimeout after `timeout` seconds.
        """
        c = self._c()
        self._wait(timeout, lambda ms, error: lib.muster_coordinator_flush(c, ms, error))

    @property
    def scheduled(self) -> int:
        """The highest number that a task of this queue ever had."""
        return int(lib.muster_coordinator_scheduled(self._c()))

    def value(self, id: int) -> RemoteValue:
        """The value of a task by its number, also of a former coordinator's. Raises NotFoundError
        for a number that this queue never had, or whose value was dropped.
        """
        error, box = new_error(), ffi.new("muster_remote_value_t **")
        number = integer("id", id, bits=62)
        check(lib.muster_coordinator_value(self._c(), max(number, 0), box, error), error)
        return RemoteValue(self, box)

    def release(self) -> None:
        """Drops what former coordinators left, but for the values that this process holds."""
        lib.muster_coordinator_release(self._c())

    def close(self) -> None:
        """Hands over what the broker has not taken yet; scheduled tasks go on. May be called again.

        Raises what kept tasks from being taken: WaitTimeout, BrokerError and others. If
        Ctrl-C ends a `with` block, the broker has half a second to take the remaining tasks.
        """
        if self._pid != os.getpid():
            self._box = None
            return
        with self._lock:
            if self._calls > 0:
                raise wrong(
                    "this muster.Coordinator is in another call: another thread makes it, or this "
                    "signal handler interrupted it; close it when that call has returned"
                )
            box, self._box = self._box, None
        if box is not None:
            error = new_error()
            check(_apart(lambda: lib.muster_coordinator_close(box, error)), error)

    def _c(self) -> Any:
        if self._box is None:
            raise wrong("this muster.Coordinator is closed; open another")
        return self._box[0]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(value, KeyboardInterrupt):
            return self.close()
        try:
            self.flush(_HURRY)
            self.close()
        except Error as error:  # the program is to end now. C's threads keep what they hold
            log.warning("the broker may not have taken all tasks: %s", error)

    def _take(self) -> None:
        """A call of C begins: close would take the memory from under it."""
        if self._pid != os.getpid():  # C refuses; a thread that is not here may hold the lock
            return
        with self._lock:
            self._c()  # closed since: refused
            self._calls += 1

    def _give(self) -> None:
        if self._pid == os.getpid():
            with self._lock:
                self._calls -= 1

    @contextmanager
    def _held(self) -> Iterator[None]:
        self._take()
        try:
            yield
        finally:
            self._give()

    def _wait(self, timeout: float | None, call: Callable[[int, Any], int]) -> None:
        """Calls again while the call's own wait is over and this one is not."""
        milliseconds("timeout", timeout)
        with self._held():
            self._wait_held(timeout, call)

    def _wait_held(self, timeout: float | None, call: Callable[[int, Any], int]) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        unheard: float | None = None
        while True:
            now = time.monotonic()
            left = _SLICE if until is None else min(_SLICE, max(0.0, until - now))
            error = new_error()
            status = call(milliseconds("timeout", left), error)
            now = time.monotonic()
            if status not in _GOES_ON or (until is not None and now >= until):
                break
            unheard = None if status == lib.MUSTER_E_TIMEOUT else unheard or now
            if unheard is not None and now - unheard >= self._broker_timeout:
                break
        check(status, error)


class Task:
    """One attempt at a task, for the function that runs it. Only that call may use it."""

    def __init__(self, task: Any) -> None:
        self._c = task
        self._size = ffi.new("size_t *")

    @property
    def id(self) -> int:
        """The task's number in its queue."""
        return int(lib.muster_task_id(self._c))

    @property
    def attempt(self) -> int:
        """1, 2, ...: a task may come again, to this worker or another."""
        return int(lib.muster_task_attempt(self._c))

    @property
    def worker(self) -> int:
        """The index of the worker that runs it."""
        return int(lib.muster_task_worker_index(self._c))

    @property
    def args(self) -> bytes:
        """The bytes that schedule, or per_worker, was given."""
        data = lib.muster_task_args(self._c, self._size)
        return bytes(ffi.buffer(data, self._size[0])) if self._size[0] else b""

    def value(self, number: int = 0) -> Any:
        """This worker's part of a value of schedule(per_worker=[...]); None if there is none."""
        handle = lib.muster_task_value(self._c, integer("number", number))
        return None if handle == ffi.NULL else ffi.from_handle(handle)[0]

    @property
    def cancelled(self) -> bool:
        """Is this attempt no longer wanted? There was an error or a cancel, or another worker has
        the task. Raise any exception then: it counts as cancelled.
        """
        return bool(lib.muster_task_cancelled(self._c))

    def renew(self) -> None:
        """Says that the task makes progress: its task_timeout starts again."""
        lib.muster_task_renew(self._c)


class Worker(Closing):
    """Runs the tasks of coordinators, one at a time, on a thread of its own.

    functions: by name, what a task calls with its Task. It returns bytes, its result, or None. An
      exception fails the task with its text.
    values: by name, what Coordinator.per_worker calls with a Task. It returns what
      Task.value gives to this worker's tasks.
    broker, job, index: None = MUSTER_BROKER, MUSTER_JOB, MUSTER_RANK. index is unique in the job.
    prefetch: tasks that are fetched ahead.
    connect_timeout: seconds without an answer of a broker, at the start.

    A program that is to end cleanly on SIGTERM calls stop() in a handler of its own.
    Raises ArgumentError if one of `functions` or `values` cannot be called. See serve() for others.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[[Task], bytes | None]],
        *,
        values: Mapping[str, Callable[[Task], object]] | None = None,
        broker: str | None = None,
        job: str | None = None,
        index: int | None = None,
        prefetch: int = 0,
        connect_timeout: float | None = None,
    ) -> None:
        options = ffi.new("struct muster_worker_options *")
        lib.muster_worker_options_init(options, ffi.sizeof(options[0]))
        texts = _texts(options, broker=broker, job=job)
        options.index = integer("index", index, -1)
        options.prefetch = integer("prefetch", prefetch)
        options.connect_timeout_ms = milliseconds("connect_timeout", connect_timeout)
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self._made: list[Any] = []  # what C points to: the functions and their values
        error, box = new_error(), ffi.new("muster_worker_t **")
        check(lib.muster_worker_open(options, box, error), error)
        self._box: Any = box
        del texts
        try:
            self._register_all("functions", functions, None)
            self._register_all("values", values or {}, self._made)
        except BaseException:
            self.close()
            raise
        self._at_exit = _closes_at_exit(self)

    def serve(self) -> None:
        """Runs tasks until stop(). While the broker is away, the worker waits for it.

        Raises BrokerError when nobody answered at the start, or when the broker took no results at
        the end; Error MUSTER_E_RANK_TAKEN when another process has its index. Ctrl-C raises
        KeyboardInterrupt and stops it; close() then waits for the function that runs.
        """
        if self._box is None:
            raise wrong("this muster.Worker is closed; open another")
        if self._thread is not None and self._thread.is_alive():
            raise wrong("this muster.Worker serves already")
        error, results, ended = new_error(), [lib.MUSTER_E_FAULT], threading.Event()

        def run() -> None:  # keeps this object, whose functions C calls
            try:
                results[0] = lib.muster_worker_serve(self._box[0], error)
            finally:
                ended.set()

        self._thread = threading.Thread(target=run, name="muster worker", daemon=True)
        self._thread.start()
        try:
            ended.wait()
        except BaseException:
            self.stop()
            raise
        check(results[0], error)

    def stop(self) -> None:
        """Takes no new tasks: serve() returns when the one that runs has ended. Any thread, and
        any signal handler.
        """
        box = self._box
        if box is not None:
            lib.muster_worker_stop(box[0])

    def close(self) -> None:
        """Stops, waits for the function that runs, and leaves. May be called again.

        Raises BrokerError when the broker took no result for 5 s.
        """
        box = getattr(self, "_box", None)
        if box is None:
            return
        if self._pid == os.getpid():
            self.stop()
            if self._thread is not None:
                self._thread.join()
        self._box = None
        if self._pid != os.getpid():
            return
        if hasattr(self, "_at_exit"):
            atexit.unregister(self._at_exit)
        error = new_error()
        check(_apart(lambda: lib.muster_worker_close(box, error)), error)

    def _register_all(
        self, of: str, given: Mapping[str, Callable[[Task], Any]], made: list[Any] | None
    ) -> None:
        if not isinstance(given, Mapping):
            raise wrong_type(f"{of} is {given!r}; give a dict of callables by name")
        for name, call in given.items():
            self._register(name, _Function(name, call, made))

    def _register(self, name: str, function: _Function) -> None:
        if not callable(function.call):
            raise wrong_type(
                f"function {name!r} is a {type(function.call).__name__}; give a callable"
            )
        handle, error = ffi.new_handle(function), new_error()
        self._made.append(handle)
        status = lib.muster_worker_register(
            self._box[0], encoded("the name of a function", name), lib.muster_py_task, handle, error
        )
        check(status, error)


class _Function:
    """A registered function. made: keeps the values that it makes; None = it gives results."""

    def __init__(self, name: str, call: Callable[[Task], Any], made: list[Any] | None) -> None:
        self.name = name
        self.call = call
        self.made = made

    def run(self, task: Any) -> None:
        result = self.call(Task(task))
        if self.made is not None:
            box = [result]
            handle = ffi.new_handle(box)
            self.made += [box, handle]  # until close: C may still name it
            lib.muster_task_set_value(task, handle, ffi.NULL)
        elif result is not None:
            data = _bytes(f"the result of {self.name!r}", result)
            lib.muster_task_set_result(task, data, len(data))  # if this fails, the task fails


@ffi.def_extern(name="muster_py_task", error=1)
def _run_task(task: Any, arg: Any) -> int:
    function = ffi.from_handle(arg)
    try:
        function.run(task)
    except BaseException as raised:
        log.warning("task %d failed", lib.muster_task_id(task), exc_info=raised)
        return int(lib.muster_task_fail(task, _FAILED, text_of(raised)))
    return 0


def _closes_at_exit(worker: Worker) -> Callable[[], None]:
    """Python stops its threads at its exit. Closed before, no worker is in a function then."""
    place = weakref.ref(worker)

    def close() -> None:
        worker = place()
        if worker is not None:
            worker.close()

    atexit.register(close)
    return close

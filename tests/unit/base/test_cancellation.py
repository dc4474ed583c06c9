"""One thread ends what takes too long, and nothing else."""

from __future__ import annotations

import os
import threading
import time

import pytest

from dpsql.base.cancellation import DeadlineWatcher


def test_what_takes_too_long_is_stopped_once() -> None:
    stopped: list[int] = []
    ended = threading.Event()
    with DeadlineWatcher().enforce_deadline(0.02, lambda: (stopped.append(1), ended.set())):
        assert ended.wait(10)
        time.sleep(0.05)
    assert stopped == [1]


def test_what_has_ended_is_not() -> None:
    watch, stopped = DeadlineWatcher(), []
    for _ in range(50):
        with watch.enforce_deadline(0.01, lambda: stopped.append(1)):
            pass
    time.sleep(0.05)
    assert stopped == []


def test_a_short_limit_is_seen_while_a_long_one_is_waited_for() -> None:
    watch, ended = DeadlineWatcher(), threading.Event()
    with watch.enforce_deadline(60, lambda: None), watch.enforce_deadline(0.02, ended.set):
        assert ended.wait(10)


def test_many_at_once_have_one_thread() -> None:
    watch, before = DeadlineWatcher(), threading.active_count()
    ended = [threading.Event() for _ in range(20)]

    def run(event: threading.Event) -> None:
        with watch.enforce_deadline(0.05, event.set):
            assert event.wait(10)

    threads = [threading.Thread(target=run, args=(event,)) for event in ended]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(event.is_set() for event in ended) and threading.active_count() <= before + 1


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
def test_a_forked_process_has_a_thread_of_its_own() -> None:
    watch = DeadlineWatcher()
    with watch.enforce_deadline(60, lambda: None):
        pass
    child = os.fork()
    if child == 0:
        ended = threading.Event()
        with watch.enforce_deadline(0.02, ended.set):
            os._exit(0 if ended.wait(10) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

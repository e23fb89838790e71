"""Tickets as futures: callbacks, await, many threads."""

import asyncio
import threading

import leeway
import numpy as np
import pytest


@pytest.fixture(scope="module")
def table(w):
    return w.table("futures", shape=1000, consistency="asp")


def test_a_ticket_is_awaited(w, table):
    async def train():
        await table.push(np.ones(1000, np.float32))
        first, second = await asyncio.gather(pull(), pull())
        assert (first == second).all()
        return first

    async def pull():
        return await table.pull_async()

    assert (asyncio.run(train()) >= 1).all()


def test_a_failed_ticket_raises_where_it_is_awaited(table):
    async def fail():
        await table.pull_async(timeout=0)

    with pytest.raises(leeway.DeadlineExceeded):
        asyncio.run(fail())
    assert isinstance(table.pull_async(timeout=0).exception(), leeway.DeadlineExceeded)
    ticket = table.pull_async()
    assert ticket.exception() is None and ticket.done() and ticket.result() is ticket.wait()


def test_callbacks_are_called_once(table):
    told = threading.Semaphore(0)
    tickets = []
    for _ in range(100):
        ticket = table.push(np.zeros(1000, np.float32))
        ticket.add_done_callback(lambda one: (tickets.append(one), told.release()))
    for _ in range(100):
        assert told.acquire(timeout=30)
    assert len(set(tickets)) == 100
    tickets[0].add_done_callback(lambda one: told.release())
    assert told.acquire(timeout=0)


def test_an_exception_in_a_callback_is_reported(table, monkeypatch):
    reported = []
    told = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: (reported.append(args.exc_value), told.set()))

    def fail(ticket):
        raise ZeroDivisionError("in a callback")

    table.push(np.zeros(1000, np.float32)).add_done_callback(fail)
    assert told.wait(30) and str(reported[0]) == "in a callback"


def test_a_callback_that_waits_is_refused(table):
    outcome = []
    told = threading.Event()

    def wait(ticket):
        try:
            table.pull()
        except leeway.FailedPrecondition as error:
            outcome.append(str(error))
        told.set()

    ticket = table.pull_async()
    if ticket.done():
        pytest.skip("it was over before it could be asked")
    ticket.add_done_callback(wait)
    ticket.wait()
    assert told.wait(30)
    assert not outcome or "must not wait" in outcome[0]


def test_many_threads_use_a_worker(w):
    table = w.table("threads", dim=4, consistency="asp")

    def work(first):
        for _ in range(50):
            keys = np.arange(first, first + 10)
            table.push(keys, np.ones((10, 4), np.float32))
            table.pull(keys)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leeway.wait([table.push([1], np.zeros((1, 4), np.float32)) for _ in range(3)])
    assert table.pull([5])[0, 0] == 200


def test_wait_reports_the_first_failure_after_all_are_over(table):
    tickets = [
        table.push(np.zeros(1000, np.float32)),
        table.pull_async(timeout=0),
        table.pull_async(),
    ]
    with pytest.raises(leeway.DeadlineExceeded):
        leeway.wait(tickets)
    assert all(ticket.done() for ticket in tickets)


def test_threads_that_wait_for_one_ragged_pull_all_get_it(w):
    table = w.table("ragged futures", ragged=True, updater="assign", consistency="asp")
    table.push([1], [np.float32([1, 2])]).wait()
    ticket = table.pull_async([1])
    finish = ticket._finish  # of a thread that comes here as another one has done with the ticket
    ticket.wait()
    assert ticket._kept is None and finish(ticket)[0].tolist() == [1, 2]

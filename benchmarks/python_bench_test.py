"""Tests of `--only python` without its peers: the loop, the watching of workers, ratios and the table."""
import sys
import time
import types
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE / "peers"), str(HERE / "python")]

import mlp
from driver import python, work
from driver.rounds import Samples
from keeping import keep
from report import python as report
from report.result import medians, ratios

STEP_S = 0.001


def steps(rank: int, place, trainer) -> None:
    while True:
        time.sleep(STEP_S)
        trainer.count()


def until_one_is_dead(end):
    """Workers that notice when worker 3 no longer makes steps, and then end or hang."""

    def train(rank: int, place, trainer) -> None:
        while True:
            before = trainer.steps()[mlp.SLOW]
            for _ in range(100):
                steps_made = trainer.steps()[mlp.SLOW]
                if steps_made != before or rank == mlp.SLOW:
                    break
                time.sleep(STEP_S)
            else:
                end()
            time.sleep(STEP_S)
            trainer.count()

    return train


def fail() -> None:
    raise RuntimeError("a neighbour is gone")


class Counting:
    def __init__(self, rank: int, counters: mlp.Counters, slow: bool):
        self.count = lambda: counters.add(rank)
        self.steps = counters.of


class MlpTest(unittest.TestCase):
    def run_it(self, train, case: str) -> dict:
        module = types.SimpleNamespace(serve=lambda place: time.sleep(60), train=train)
        with (
            mock.patch.object(mlp.importlib, "import_module", lambda name: module),
            mock.patch.object(mlp, "Trainer", Counting),
            mock.patch.multiple(mlp, KILLED_S=1.0, WATCHED_S=0.1),
        ):
            return mlp.measure("fake", f"mlp:{case}", 0, 1, 0.1)

    def test_steps_of_all_workers_are_counted(self):
        self.assertGreater(self.run_it(steps, "even")["operations"], mlp.WORKERS)

    def test_others_that_go_on_after_a_kill_are_told_from_those_that_end_and_those_that_hang(self):
        self.assertIn("go on", self.run_it(steps, "killed")["note"])
        ended = self.run_it(until_one_is_dead(fail), "killed")["note"]
        self.assertIn("others end: RuntimeError: a neighbour is gone", ended)
        self.assertIn("hang", self.run_it(until_one_is_dead(lambda: time.sleep(60)), "killed")["note"])

    def test_a_worker_that_ends_at_once_is_an_error_with_its_last_line(self):
        with self.assertRaisesRegex(RuntimeError, "a neighbour is gone"):
            self.run_it(lambda *_: fail(), "even")


class KeepTest(unittest.TestCase):
    def test_each_operation_is_waited_for_before_its_tensor_is_used_again(self):
        busy: set[int] = set()

        def start(operation: int, slot: int):
            self.assertNotIn(slot, busy)
            busy.add(slot)
            return lambda: busy.remove(slot)

        for in_flight in (1, 8):
            result = keep(start, 4, in_flight, 0.01)
            self.assertEqual(busy, set())
            self.assertEqual(result["bytes"], 4 * result["operations"])
            self.assertEqual("p50_us" in result, in_flight == 1)


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.samples = Samples(rounds=1)
        subjects = {subject.name: subject for subject in python.subjects(Path("none"), {})}
        self.titles = {name: subject.title for name, subject in subjects.items()}
        for name, subject in subjects.items():
            ours = name.startswith(("leeway", "mlp.leeway"))
            for w in subject.works:
                seconds = 1 if ours else 10
                sample = {"operations": 10, "bytes": 0 if w in python.MLP else 1000, "seconds": seconds, "cpu_seconds": 1}
                if w in (work.RTT, work.REDUCE_64):
                    sample["p50_us"] = seconds
                self.samples.by_name.setdefault(name, {})[w.name] = [sample]

    def test_all_ratios_are_of_measured_works(self):
        entries = ratios(self.samples, report.RATIOS, report.why_missing)
        self.assertEqual([name for name, entry in entries.items() if entry["value"] is None], [])
        peers = [entry for name, entry in entries.items() if "_vs_" in name and "_cpp" not in name]
        self.assertTrue(all(abs(entry["value"] - 10) < 1e-9 for entry in peers))
        medians(self.samples)  # steps have no bytes

    def test_a_missing_peer_says_why(self):
        del self.samples.by_name["ray"]
        self.samples.missing["ray"] = "pip cannot install it"
        self.samples.by_name["mlp.gloo"]["mlp:killed"][0]["operations"] = 0
        entries = ratios(self.samples, report.RATIOS, report.why_missing)
        self.assertEqual(entries["rtt_64_leeway_vs_ray"]["why"], "pip cannot install it")
        self.assertIn("no step", entries["mlp:killed_mlp.leeway_bsp_vs_mlp.gloo"]["why"])

    def test_the_table_has_the_best_first_and_what_happened(self):
        self.samples.by_name["mlp.gloo"]["mlp:killed"][0]["note"] = "2 of 3 others end"
        self.samples.missing["torchstore"] = "it needs a GPU"
        result = {
            "machine": {"cpu": "a processor", "cores": 2, "kernel": "6", "commit": "abc", "packages": {"ray": "2"}},
            "options": {"rounds": 1},
            "notes": report.notes(self.samples),
        }
        text = report.table(result, self.samples, self.titles)
        row = next(line for line in text.splitlines() if line.startswith("| rtt_64 "))
        self.assertLess(row.index("Leeway"), row.index("Ray"))
        row = next(line for line in text.splitlines() if line.startswith("| push_100mb "))
        self.assertLess(row.index("Leeway (allocated"), row.index("Ray"))
        self.assertIn("mlp.gloo, a worker killed: 2 of 3 others end", text)
        self.assertIn("TorchStore is missing: it needs a GPU", text)

    def test_each_peer_is_named_by_its_first_package(self):
        self.assertEqual(list(python.requirements()), ["numpy", "torch", "ray", "pyarrow", "torchft", "torchstore"])


if __name__ == "__main__":
    unittest.main()

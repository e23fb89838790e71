"""cd benchmarks && python3 -m report.scale_test"""
import unittest

from report import scale


class ScaleTest(unittest.TestCase):
    def test_what_was_not_run_is_not_there(self):
        found = scale.entries({"10x2": {"step_vs_ideal": 1.1}}, "left out")
        self.assertEqual([entry["value"] for entry in found.values()], [None, None])
        self.assertEqual({entry["why"] for entry in found.values()}, {"left out"})

    def test_the_largest_is_what_counts(self):
        run = {"step_vs_ideal": 1.19, "scheduler_messages_per_node_s": 5.01}
        found = scale.entries({"1000x100": run, "10x2": {}}, "")
        self.assertTrue(found["sim_1000x100_step_vs_ideal"]["met"])
        self.assertFalse(found["sim_1000x100_scheduler_messages_per_node_s"]["met"])


if __name__ == "__main__":
    unittest.main()

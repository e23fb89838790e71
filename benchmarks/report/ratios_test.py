"""cd benchmarks && python3 -m report.ratios_test"""
import unittest

from driver import work
from report import figures
from report.ratios import RATIOS


def sample(gigabytes: float = 1, seconds: float = 1, operations: int = 1, cpu: float = 1) -> dict:
    return {
        "bytes": gigabytes * 1e9,
        "seconds": seconds,
        "operations": operations,
        "cpu_seconds": cpu,
        "p50_us": 1e6 * seconds / operations,
    }


BY_NAME = {ratio.name: ratio for ratio in RATIOS}


class FiguresTest(unittest.TestCase):
    def test_what_failed_in_one_round_is_left_out_of_both_sides(self):
        found = figures.ratio([1, None, 4], [2, 5, 4])
        self.assertEqual((found.median, found.low, found.high, found.rounds), (0.75, 0.5, 1, 2))

    def test_rounds_are_compared_one_by_one(self):
        # The machine was half as fast in the second round, which does not change the ratio.
        found = figures.ratio([3, 1.5], [6, 3])
        self.assertEqual((found.low, found.high), (0.5, 0.5))

    def test_the_best_has_the_highest_median_not_the_highest_sample(self):
        rounds = {"zmq": {"a": [sample(9), sample(1), sample(1)], "b": [sample(2)] * 3}}
        self.assertEqual(figures.best(rounds, "zmq", ["a", "b", "c"]), "b")


class RatiosTest(unittest.TestCase):
    def test_without_samples_there_is_no_ratio(self):
        self.assertTrue(all(ratio.of({}) is None for ratio in RATIOS))

    def test_names_are_unique(self):
        self.assertEqual(len(BY_NAME), len(RATIOS))

    def test_push_against_libzmq_at_its_best_size(self):
        small, large = work.streams()[0].name, work.streams()[-1].name
        rounds = {
            "leeway.tcp": {work.PUSH_4M.name: [sample(3)]},
            "zmq.tcp": {small: [sample(5)], large: [sample(4)]},
        }
        ratio = BY_NAME["dense_4m_push_tcp_vs_raw_zmq"]
        self.assertAlmostEqual(ratio.of(rounds).median, 0.6)
        self.assertFalse(ratio.meets(ratio.of(rounds)))

    def test_round_trips_are_to_be_short(self):
        rounds = {
            "leeway.tcp": {work.RTT.name: [sample(operations=10)]},
            "zmq.tcp": {work.RTT.name: [sample(operations=11)]},
        }
        ratio = BY_NAME["rtt_64b_tcp_vs_raw_zmq"]
        self.assertAlmostEqual(ratio.of(rounds).median, 1.1)
        self.assertTrue(ratio.meets(ratio.of(rounds)))

    def test_a_copy_reads_and_writes(self):
        rounds = {
            "leeway.tcp": {work.SUM.name: [sample(16)]},
            "memory": {work.COPY.name: [sample(10)]},
        }
        self.assertAlmostEqual(BY_NAME["n_way_sum_8_vs_memcpy_streams"].of(rounds).median, 0.8)

    def test_codecs_are_compared_with_what_their_own_program_does(self):
        rounds = {
            "codec.topk": {
                work.CODEC_COPY.name: [sample(10)],
                work.CODEC_ADD.name: [sample(8)],
                work.CODEC_ENCODE.name: [sample(2)],
                work.CODEC_DECODE_ADD.name: [sample(24)],
            },
            "codec.fp16": {work.CODEC_COPY.name: [sample(5)], work.CODEC_DECODE.name: [sample(4)]},
        }
        self.assertAlmostEqual(BY_NAME["codec_topk_encode_vs_memcpy"].of(rounds).median, 0.2)
        self.assertAlmostEqual(BY_NAME["codec_topk_decode_add_vs_dense_add"].of(rounds).median, 3)
        self.assertAlmostEqual(BY_NAME["codec_fp16_decode_vs_memcpy"].of(rounds).median, 0.8)
        self.assertIsNone(BY_NAME["codec_fp16_encode_vs_memcpy"].of(rounds))

    def test_steps_with_priorities_are_to_be_shorter(self):
        rounds = {
            "leeway.shaped": {
                work.STEP_FIFO.name: [sample(seconds=4, operations=4), sample(seconds=8, operations=4)],
                work.STEP_PRIORITY.name: [sample(seconds=4, operations=5)] * 2,
            },
        }
        ratio = BY_NAME["priority_step_vs_without"]
        self.assertAlmostEqual(ratio.of(rounds).median, 0.6)
        self.assertTrue(ratio.meets(ratio.of(rounds)))

    def test_codecs_are_to_make_more_steps_over_a_slow_link(self):
        steps = {
            work.TRAIN["none"].name: [sample(seconds=4, operations=2), sample(seconds=2, operations=2)],
            work.TRAIN["topk_1pct"].name: [sample(seconds=1, operations=10)] * 2,
        }
        ratio = BY_NAME["shaped_step_topk_1pct_vs_none"]
        found = ratio.of({"leeway.shaped_100m": steps})
        self.assertEqual((found.low, found.high), (10, 20))
        self.assertTrue(ratio.meets(found))

    def test_codecs_are_to_cost_little_where_the_wire_is_fast(self):
        rounds = {
            "leeway.shm": {
                work.PUSH_100M.name: [sample(seconds=1, operations=4)],
                work.PUSH_100M_ONEBIT.name: [sample(seconds=1, operations=2)],
            },
        }
        ratio = BY_NAME["push_100m_shm_onebit_vs_none"]
        self.assertAlmostEqual(ratio.of(rounds).median, 2)
        self.assertFalse(ratio.meets(ratio.of(rounds)))

    def test_cpu_is_compared_with_libzmq_and_one_pass(self):
        rounds = {
            "leeway.tcp": {work.PUSH_4M.name: [sample(2, cpu=1)]},
            "zmq.tcp": {work.streams()[0].name: [sample(1, cpu=0.4)]},
            "memory": {work.COPY.name: [sample(1, cpu=0.1)]},
        }
        ratio = BY_NAME["cpu_per_gb_push_tcp_vs_raw_zmq_plus_pass"]
        self.assertAlmostEqual(ratio.of(rounds).median, 1.0)


if __name__ == "__main__":
    unittest.main()

"""The sparse work: batches of 10,000 unique random rows of 64 floats, out of a million."""
BATCHES, KEYS, KEY_SPACE, DIM = 8, 10_000, 1_000_000, 64
ROW_BYTES = 8 + 4 * DIM  # a key and its row


def batches(np) -> list:
    random = np.random.default_rng(1)
    return [random.choice(KEY_SPACE, KEYS, replace=False).astype(np.int64) for _ in range(BATCHES)]

"""Arrow Flight: a server that keeps arrays (DoPut) and returns them (DoGet); small messages by DoAction.

usage: flight.py unix | tcp
"""
import os
import sys
import tempfile

import peer
from keeping import keep

try:
    import numpy as np
    import pyarrow as pa
    from pyarrow import flight
except ImportError as why:
    peer.not_there(f"pyarrow is not there: {why}")


class Server(flight.FlightServerBase):
    def __init__(self, location: str):
        super().__init__(location)
        self.arrays: dict = {}
        self.small = b""

    def do_put(self, context, descriptor, reader, writer) -> None:
        self.arrays[descriptor.command] = reader.read_all()

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self.arrays[ticket.ticket])

    def do_action(self, context, action):
        if action.type == "push":
            self.small = action.body.to_pybytes()
            return []
        return [self.small]


class Client:
    def __init__(self, location: str, server: int):
        self.client = flight.FlightClient(location)
        self.client.wait_for_available(30)
        self.server = server

    def push(self, name: bytes, values) -> None:
        batch = pa.record_batch([pa.array(values)], names=["values"])
        writer, _ = self.client.do_put(flight.FlightDescriptor.for_command(name), batch.schema)
        with writer:
            writer.write_batch(batch)

    def pull(self, name: bytes):
        return self.client.do_get(flight.Ticket(name)).read_all().column(0).chunk(0).to_numpy()

    def measure(self, op: str, size: int, in_flight: int, seconds: float) -> dict:
        dtype = np.float32
        if op.startswith("transfer"):
            _, name, edge = op.split(":")
            dtype = np.dtype(name)
            size = int(edge) ** 2 * dtype.itemsize
        values = np.full(size // np.dtype(dtype).itemsize, 1e-3, dtype)
        self.push(op.encode(), values)
        return keep(self.starter(op, values), 2 * size if op.startswith("transfer") else size, in_flight, seconds, self.server)

    def starter(self, op: str, values):
        name, done, small = op.encode(), lambda: None, values.tobytes() if op == "rtt" else b""

        def start(operation: int, slot: int):
            if op == "rtt":
                list(self.client.do_action(("push", small) if operation % 2 == 0 else ("pull", b"")))
                return done
            if op != "pull":
                self.push(name, values)
            if op != "push":
                self.pull(name)
            return done

        return start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        location = f"grpc+unix://{folder}/flight" if sys.argv[1] == "unix" else f"grpc://127.0.0.1:{peer.free_port()}"
        server = os.fork()
        if server == 0:
            peer.die_with_parent()
            os.dup2(2, 1)
            Server(location).serve()
            return
        peer.serve(Client(location, server).measure)
    os._exit(0)


if __name__ == "__main__":
    main()

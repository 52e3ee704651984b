"""A service of BentoML that answers a graph of one column per input, in BentoML's batches."""

import os

import bentoml
import numpy as np
import onnxruntime


@bentoml.service(traffic={"max_concurrency": 1024}, logging={"access": {"enabled": False}})
class Runtime:
    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # as the service runs it
        self.session = onnxruntime.InferenceSession(os.environ["GRAPH"], options)
        self.names = [i.name for i in self.session.get_inputs()]

    @bentoml.api(batchable=True, max_batch_size=64, max_latency_ms=1000)
    def predict(self, rows: np.ndarray) -> np.ndarray:
        rows = rows.astype("float32")
        inputs = {n: rows[:, i : i + 1] for i, n in enumerate(self.names)}
        (answer,) = self.session.run(None, inputs)
        return answer

"""A runtime of MLServer that answers a graph of one column per input."""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Onnx(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # as the service runs it
        self.session = onnxruntime.InferenceSession(self.settings.parameters.uri, options)
        self.names = [i.name for i in self.session.get_inputs()]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        rows = NumpyCodec.decode_input(payload.inputs[0]).astype("float32")
        inputs = {n: rows[:, i : i + 1] for i, n in enumerate(self.names)}
        (answer,) = self.session.run(None, inputs)
        out = NumpyCodec.encode_output("prediction", answer)
        return InferenceResponse(model_name=self.name, outputs=[out])

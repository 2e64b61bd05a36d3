"""A writer of TensorFlow's checkpoints, made from the published descriptions of the format and from nothing in bertkit.

https://github.com/google/leveldb/blob/main/doc/table_format.md, https://protobuf.dev/programming-guides/encoding and
tensorflow/core/protobuf/tensor_bundle.proto.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

RESTART_INTERVAL = 16
DTYPES = {
    torch.float32: 1,
    torch.float64: 2,
    torch.int32: 3,
    torch.int64: 9,
    torch.bool: 10,
    torch.bfloat16: 14,
    torch.float16: 19,
}
TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def slow_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def mask(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | bytes) -> bytes:
    """A field of a message; one that is 0 is left out, as version 3 of the language does."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value) if value else b""


def make_entry(dtype: int, shape: Iterable[int], *, shard: int, offset: int, size: int, checksum: int) -> bytes:
    """A ``BundleEntryProto``."""
    dimensions = b"".join(field(2, field(1, length)) for length in shape)
    places = field(3, shard) + field(4, offset) + field(5, size)
    return field(1, dtype) + field(2, dimensions) + places + varint(6 << 3 | 5) + struct.pack("<I", checksum)


def make_block(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The entries of a block, each key without what it shares with the one before, and the restart points."""
    content, restarts, before = bytearray(), [], b""
    for number, (key, value) in enumerate(entries):
        shared = 0
        if number % RESTART_INTERVAL == 0:
            restarts.append(len(content))
        else:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    restarts = restarts or [0]
    return bytes(content) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def make_table(entries: Mapping[bytes, bytes], *, per_block: int = 23) -> bytes:
    """A whole table: data blocks, an empty metaindex block, the index block, the footer."""
    out = bytearray()

    def add(block: bytes) -> bytes:
        handle = varint(len(out)) + varint(len(block))
        out.extend(block + b"\0" + struct.pack("<I", mask(slow_crc32c(block + b"\0"))))
        return handle

    ordered = sorted(entries.items())
    parts = [ordered[start : start + per_block] for start in range(0, len(ordered), per_block)]
    index = [(part[-1][0], add(make_block(part))) for part in parts]
    footer = add(make_block([])) + add(make_block(index))
    return bytes(out) + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def write_checkpoint(
    folder: Path,
    tensors: Mapping[str, Tensor],
    *,
    name: str = "bert_model.ckpt",
    num_shards: int = 1,
    checksum: Callable[[bytes], int] = slow_crc32c,
) -> None:
    """Write the index and the data files; tensor number i goes into shard i modulo ``num_shards``."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = [bytearray() for _ in range(num_shards)]
    version = field(1, 1)
    entries = {b"": field(1, num_shards) + field(3, version)}
    for number, (key, tensor) in enumerate(sorted(tensors.items())):
        shard = number % num_shards
        data = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        place = {"shard": shard, "offset": len(shards[shard]), "size": len(data)}
        entries[key.encode()] = make_entry(DTYPES[tensor.dtype], tensor.shape, **place, checksum=mask(checksum(data)))
        shards[shard] += data
    (folder / f"{name}.index").write_bytes(make_table(entries))
    for shard, content in enumerate(shards):
        (folder / f"{name}.data-{shard:05}-of-{num_shards:05}").write_bytes(content)


def to_google(name: str, tensor: Tensor) -> tuple[str, Tensor]:
    """The name and the tensor of google-research/bert for those of a Hugging Face BERT, part by part."""
    fixed = {
        "cls.predictions.bias": "cls/predictions/output_bias",
        "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
        "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
        "qa_outputs.weight": "cls/squad/output_weights",
        "qa_outputs.bias": "cls/squad/output_bias",
        "classifier.weight": "output_weights",
        "classifier.bias": "output_bias",
    }
    if name in fixed:
        return fixed[name], tensor
    if not name.startswith("cls."):
        name = "bert." + name.removeprefix("bert.")
    *parts, last = name.split(".")
    if parts[-1].endswith("_embeddings"):
        return "/".join(parts), tensor
    if parts[-1] == "LayerNorm":
        last = {"weight": "gamma", "bias": "beta"}[last]
    elif last == "weight":
        last, tensor = "kernel", tensor.T.contiguous()
    return "/".join([*parts, last]).replace("/layer/", "/layer_"), tensor


CONFIG_KEYS = (
    *("attention_probs_dropout_prob", "hidden_act", "hidden_dropout_prob", "hidden_size", "initializer_range"),
    *("intermediate_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers"),
    *("type_vocab_size", "vocab_size"),
)
NOT_STORED = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "position_ids", "token_type_ids")


def write_google_folder(
    folder: Path,
    state: Mapping[str, Tensor],
    config: Mapping[str, object],
    vocabulary: Iterable[str],
    *,
    checksum: Callable[[bytes], int] = slow_crc32c,
    moments: bool = False,
) -> None:
    """A folder as google-research/bert has it, from the state and the configuration of a model of transformers."""
    tensors = dict(to_google(name, tensor) for name, tensor in state.items() if not name.endswith(NOT_STORED))
    if moments:
        trained = dict(tensors)
        for name, tensor in trained.items():
            tensors |= {f"{name}/adam_m": torch.zeros_like(tensor), f"{name}/adam_v": torch.ones_like(tensor)}
        tensors["global_step"] = torch.tensor(7, dtype=torch.int64)
    write_checkpoint(folder, tensors, checksum=checksum)
    (folder / "bert_config.json").write_text(json.dumps({key: config[key] for key in CONFIG_KEYS}))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")

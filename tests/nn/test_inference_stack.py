from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial

import pytest
import torch
from tests.kernels.on_amx import needs_amx
from tests.nn.inference_blocks import LENGTHS, MASK, T, make_stack, run
from tests.nn.reference_attention import H
from torch import nn

from bertkit.encoders import gpt, modernbert, roberta
from bertkit.kernels.fused import is_compiled
from bertkit.nn.block import PostNormBlock
from bertkit.nn.inference_linear import AmxInferenceLinear, CompiledLinear, PackedLinear, PlainLinear, can_pack
from bertkit.nn.inference_stack import InferenceStack, RowGroups, is_supported
from bertkit.nn.int8_linear import Int8Linear, Int8Maker, PackedInt8Linear, calibrate
from bertkit.nn.stack import BlockStack

Make = Callable[[BlockStack], InferenceStack]


def plain(stack: BlockStack) -> InferenceStack:
    return InferenceStack(stack, partial(PlainLinear, dtype=torch.float32), dtype=torch.float32)


def packed(stack: BlockStack) -> InferenceStack:
    return InferenceStack(stack, partial(PackedLinear, dtype=torch.float32), dtype=torch.float32)


def compiled(stack: BlockStack) -> InferenceStack:
    return InferenceStack(stack, CompiledLinear, dtype=torch.float32)


def bfloat16(stack: BlockStack) -> InferenceStack:
    kind = PackedLinear if can_pack(torch.bfloat16) else PlainLinear
    return InferenceStack(stack, partial(kind, dtype=torch.bfloat16), dtype=torch.bfloat16)


def on_amx(stack: BlockStack) -> InferenceStack:
    return InferenceStack(stack, AmxInferenceLinear, dtype=torch.bfloat16)


def compiled_int8(stack: BlockStack) -> InferenceStack:
    return make_int8(stack, Int8Linear)


def packed_int8(stack: BlockStack) -> InferenceStack:
    return make_int8(stack, PackedInt8Linear)


@torch.no_grad()
def make_int8(stack: BlockStack, layer: type[Int8Linear] | type[PackedInt8Linear]) -> InferenceStack:
    states = torch.randn(8, 11, H, generator=torch.Generator().manual_seed(0))
    return InferenceStack(stack, Int8Maker(layer, calibrate(stack, states)), dtype=torch.float32)


needs_packing = pytest.mark.skipif(not can_pack(torch.float32), reason="this PyTorch has no oneDNN")
needs_compiler = pytest.mark.skipif(not is_compiled(), reason="no C compiler with OpenMP on this machine")
ALL = [
    pytest.param(plain, 1e-5, id="plain"),
    pytest.param(packed, 1e-5, id="packed", marks=needs_packing),
    pytest.param(compiled, 1e-5, id="compiled", marks=needs_compiler),
    pytest.param(bfloat16, 0.1, id="bfloat16"),
    pytest.param(on_amx, 0.1, id="AMX", marks=needs_amx),
    pytest.param(packed_int8, 0.15, id="packed-int8", marks=needs_packing),
    pytest.param(compiled_int8, 0.15, id="compiled-int8", marks=needs_compiler),
]


@pytest.mark.parametrize(("make", "tolerance"), ALL)
def test_states_are_those_of_the_blocks_in_training(make: Make, tolerance: float) -> None:
    stack, states = make_stack(), torch.randn(len(LENGTHS), T, H)
    expected, found = run(stack, states, MASK), run(make(stack), states, MASK)
    torch.testing.assert_close(found[MASK], expected[MASK], rtol=0, atol=tolerance)
    assert found.dtype == torch.float32


@pytest.mark.parametrize(("make", "tolerance"), ALL)
def test_layers_that_share_a_block_are_all_computed(make: Make, tolerance: float) -> None:
    stack, states = BlockStack([make_stack()[0]] * 3), torch.randn(len(LENGTHS), T, H)
    found = run(make(stack), states, MASK)
    torch.testing.assert_close(found[MASK], run(stack, states, MASK)[MASK], rtol=0, atol=tolerance)


@pytest.mark.parametrize(("make", "tolerance"), ALL)
@pytest.mark.parametrize("padded", [True, False])
def test_selected_positions_have_the_states_of_a_full_pass(make: Make, tolerance: float, padded: bool) -> None:
    stack = make(make_stack())
    mask = MASK if padded else torch.ones_like(MASK)
    states, positions = torch.randn(len(LENGTHS), T, H), torch.zeros_like(MASK)
    positions[:, 0] = True
    found, full = run(stack, states, mask, positions), run(stack, states, mask)
    torch.testing.assert_close(found[positions], full[positions], rtol=0, atol=tolerance)
    if padded:
        positions[0, 5] = True  # rows with different numbers of positions
        torch.testing.assert_close(run(stack, states, mask, positions), full, rtol=0, atol=0)


@pytest.mark.parametrize(("make", "tolerance"), ALL)
def test_a_row_does_not_depend_on_the_batch(make: Make, tolerance: float) -> None:
    stack, states = make(make_stack()), torch.randn(len(LENGTHS), T, H)
    together = run(stack, states, MASK)
    for row, length in enumerate(LENGTHS):
        alone = run(stack, states[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))
        torch.testing.assert_close(together[row, :length], alone[0], rtol=0, atol=min(tolerance, 0.05))
        assert torch.equal(alone, run(stack, states[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool)))


@torch.no_grad()
def test_hidden_states_are_those_of_every_block() -> None:
    stack, states = make_stack(), torch.randn(len(LENGTHS), T, H)
    _, expected = stack(states, MASK, None, output_hidden_states=True, gradient_checkpointing=False)
    output, found = plain(stack)(states, MASK, None, output_hidden_states=True)
    assert len(found) == len(expected) == 4
    assert torch.equal(found[-1], output)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one[MASK], other[MASK], rtol=0, atol=1e-5)


@pytest.fixture
def short_heads() -> BlockStack:
    """Blocks whose heads are 4 wide, so that they can be compiled together."""
    stack = make_stack()
    for block in blocks_of(stack):
        block.attention.num_heads = H // 4
    return stack


def blocks_of(stack: BlockStack) -> list[PostNormBlock]:
    return [each for each in stack if isinstance(each, PostNormBlock)]


@needs_compiler
@pytest.mark.parametrize(("make", "tolerance"), [(compiled, 1e-5), (compiled_int8, 0.15)])
@pytest.mark.parametrize("first_only", [False, True])
def test_blocks_compiled_together_have_the_bits_of_their_layers(
    make: Make, tolerance: float, first_only: bool, short_heads: BlockStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, made = torch.randn(len(LENGTHS), T, H), make(short_heads)
    given = states.clone()
    positions = torch.arange(T).expand_as(MASK) == 0 if first_only else None
    found = run(made, given, MASK, positions)
    assert made._compiled is not None
    assert torch.equal(given, states)
    monkeypatch.setattr(InferenceStack, "_compile", lambda self, groups: None)
    assert torch.equal(found, run(make(short_heads), states, MASK, positions))
    read = MASK if positions is None else positions
    torch.testing.assert_close(found[read], run(short_heads, states, MASK)[read], rtol=0, atol=tolerance)


@needs_compiler
@pytest.mark.parametrize("lengths", [(11,) * 12, (1, 48, 3, 3, 30, 0, 20), (48, 0), (150, 20, 3, 90, 60)])
def test_a_text_has_the_same_bits_in_one_thread_and_in_several(
    lengths: tuple[int, ...], short_heads: BlockStack
) -> None:
    made, mask = compiled(short_heads), torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    states, threads = torch.randn(*mask.shape, H), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = run(made, states, mask)
        for count in (2, 5):
            torch.set_num_threads(count)
            assert torch.equal(run(made, states, mask), expected)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(expected[mask], run(short_heads, states, mask)[mask], rtol=0, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("make", [compiled, compiled_int8])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda stack: pickle.loads(pickle.dumps(stack))])
def test_a_copy_of_compiled_blocks_has_addresses_of_its_own(
    make: Make, duplicate: Callable[[InferenceStack], InferenceStack], short_heads: BlockStack
) -> None:
    states, made = torch.randn(len(LENGTHS), T, H), make(short_heads)
    before = run(made, states, MASK)
    other = duplicate(made)
    assert other._compiled is None
    for parameter in made.parameters():
        parameter.data.fill_(float("nan"))
    assert run(made, states, MASK)[MASK].isnan().all()
    assert torch.equal(run(other, states, MASK), before)


@needs_compiler
def test_other_blocks_are_computed_layer_by_layer(short_heads: BlockStack) -> None:
    long, mask = torch.randn(1, 193, H), torch.ones(1, 193, dtype=torch.bool)
    relu, tanh, uneven = (copy.deepcopy(short_heads) for _ in range(3))
    for block in blocks_of(relu):
        block.feed_forward.activation = nn.ReLU()
    for block in blocks_of(tanh):
        block.feed_forward.activation = nn.GELU(approximate="tanh")
    for block in blocks_of(uneven):
        block.attention_norm.eps = 0.1
    for stack in (relu, tanh, uneven):
        made, states = compiled(stack), torch.randn(len(LENGTHS), T, H)
        torch.testing.assert_close(run(made, states, MASK)[MASK], run(stack, states, MASK)[MASK], rtol=0, atol=1e-5)
        assert made._compiled is None
    made = compiled(short_heads)
    torch.testing.assert_close(run(made, long, mask), run(short_heads, long, mask), rtol=0, atol=1e-5)
    assert made._compiled is None
    assert run(made, long[:0], mask[:0]).shape == (0, 193, H)


def test_rows_of_equal_length_are_one_group() -> None:
    groups = RowGroups.of([7, 7, 3, 7])
    assert groups.groups == ((2, 7), (1, 3), (1, 7))
    assert list(groups.slices()) == [(0, 2, 7), (14, 1, 3), (17, 1, 7)]


def test_other_blocks_are_not_supported() -> None:
    assert is_supported(make_stack())
    assert is_supported(roberta.tiny().layers)
    assert not is_supported(gpt.tiny().layers)
    assert not is_supported(modernbert.tiny().layers)
    assert not is_supported(nn.ModuleList())

"""Attention over SGLang's token pool, one request at a time.

Shapes: `q`, `o` [tokens, heads, head size]; `k_buffer`, `v_buffer` [slots, key heads, head size]; `req_to_token`
[requests, positions] holds the slot of each position. `sm_scale` multiplies the scores.
"""

from __future__ import annotations

import torch  # type: ignore[import-not-found]
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention  # type: ignore[import-not-found]


def decode_attention_cpu(
    q: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    o: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    cache_loc: Tensor,
    attn_logits: Tensor,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    sm_scale: float,
    *rest: object,
) -> None:
    """One new token per request: its key and value are stored at `cache_loc`, its attention written to `o`."""
    if k is not None and v is not None:
        k_buffer[cache_loc] = k.view(-1, *k_buffer.shape[1:]).to(k_buffer.dtype)
        v_buffer[cache_loc] = v.view(-1, *v_buffer.shape[1:]).to(v_buffer.dtype)
    for i, (row, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)):
        slots = req_to_token[row, :length]
        o[i : i + 1] = _attend(q[i : i + 1], k_buffer[slots], v_buffer[slots], sm_scale, None)


def extend_attention_cpu(
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    o: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    extend_seq_lens: Tensor,
    extend_start_loc: Tensor,
    max_extend_len: int,
    sm_scale: float,
    *rest: object,
) -> None:
    """Several new tokens per request (prefill, draft extend, verification), already stored in the buffers.

    The last but one argument is the tree mask: a flat [requests, new, new] of "may see"; None is a chain.
    """
    tree_mask, is_causal = rest[-2:]
    if not is_causal:
        raise NotImplementedError("encoders are not served here")
    lengths = zip(req_pool_indices.tolist(), seq_lens.tolist(), extend_seq_lens.tolist(), strict=True)
    start = 0
    for i, (row, length, new) in enumerate(lengths):
        slots = req_to_token[row, :length]
        mask = torch.ones((new, length), dtype=torch.bool)
        if isinstance(tree_mask, Tensor):
            mask[:, length - new :] = tree_mask.view(-1, new, new)[i]
        else:
            mask[:, length - new :].tril_()
        o[start : start + new] = _attend(q[start : start + new], k_buffer[slots], v_buffer[slots], sm_scale, mask)
        start += new


def _attend(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None) -> Tensor:
    query, key, value = (each.to(q.dtype).movedim(0, 1).unsqueeze(0) for each in (q, k, v))
    grouped = query.shape[1] != key.shape[1]
    out = scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=grouped, scale=scale)
    return out.squeeze(0).movedim(1, 0)


def build_draft_decode_metadata_cpu(
    req_to_token: Tensor, req_pool_indices: Tensor, seq_lens: Tensor, topk: int, num_steps: int, pool_len: int
) -> Tensor:
    """A row of slots per draft branch: the request's own prefix, then the `num_steps` slots of that branch.

    A request's branches lie one after another behind its sequence, `num_steps` slots each.
    """
    rows = req_to_token[req_pool_indices].repeat_interleave(topk, dim=0)
    for i, length in enumerate(seq_lens.tolist()):
        for branch in range(1, topk):
            row = rows[i * topk + branch]
            start = length + branch * num_steps
            row[length : length + num_steps] = row[start : start + num_steps].clone()
    return rows

"""The tree of draft tokens: built, and verified greedily.

A request's tree has `n` nodes, its root (node 0) the last verified token. It is told by three tables
[requests, n]: `retrive_index` numbers the nodes over the whole batch, `retrive_next_token` names each node's first
child, `retrive_next_sibling` the next child of the same parent; -1 is none. The spelling is the kernels' own.
Results are written in place.
"""

from __future__ import annotations

import torch  # type: ignore[import-not-found]
from torch import Tensor

FULL_MASK = 0  # TreeMaskMode of sglang.kernels.ops.speculative.spec_tree; the others cover the new tokens only


def build_tree_kernel_efficient_cpu(
    parent_list: Tensor,
    selected_index: Tensor,
    seq_lens: Tensor,
    tree_mask: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int,
) -> None:
    """The trees of a batch from what the draft model proposed.

    Node `i` is the draft's proposal number `selected_index[i - 1]`; proposal `s` continues the step's beam
    `s // topk`, and `parent_list` names the proposal that this beam is (beam 0 continues the root).
    """
    n = draft_token_num
    if int(tree_mask_mode) == FULL_MASK:
        raise NotImplementedError("on a CPU SGLang asks for masks over the new tokens only")
    masks = tree_mask.view(-1, n, n)
    for b, length in enumerate(seq_lens.tolist()):
        parents = _parents(selected_index[b].tolist(), parent_list[b].tolist(), topk)
        sees = torch.eye(n, dtype=torch.bool)
        for node, parent in enumerate(parents):
            if parent >= 0:
                sees[node] |= sees[parent]
        masks[b] = sees
        positions[b * n : (b + 1) * n] = length + sees.sum(dim=1) - 1
        retrive_index[b] = torch.arange(b * n, (b + 1) * n)
        _link(parents, retrive_next_token[b], retrive_next_sibling[b])


def _parents(selected: list[int], beams: list[int], topk: int) -> list[int]:
    """Each node's parent; -1 for the root, and for a node whose parent was not selected: it is never reached."""
    node_of = {proposal: node for node, proposal in enumerate(selected, start=1)}
    parents = [-1]
    for proposal in selected:
        beam = proposal // topk
        parents.append(0 if beam == 0 else node_of.get(beams[beam], -1))
    return parents


def _link(parents: list[int], next_token: Tensor, next_sibling: Tensor) -> None:
    newest: dict[int, int] = {}
    for node, parent in enumerate(parents):
        if parent >= 0:
            if parent in newest:
                next_sibling[newest[parent]] = node
            else:
                next_token[parent] = node
            newest[parent] = node


def verify_tree_greedy_cpu(
    predicts: Tensor,
    accept_index: Tensor,
    accept_token_num: Tensor,
    candidates: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    target_predict: Tensor,
) -> None:
    """From the root down, the child that is what the target would have said; then the target's own next token.

    `accept_index` [requests, steps + 1] gets the nodes taken, `accept_token_num` how many drafts they are,
    `predicts` the target's token at each of them.
    """
    batch, n = candidates.shape
    wanted = target_predict.reshape(batch, n).tolist()
    for b in range(batch):
        tokens, children = candidates[b].tolist(), retrive_next_token[b].tolist()
        siblings, numbers = retrive_next_sibling[b].tolist(), retrive_index[b].tolist()
        path = [0]
        while len(path) < accept_index.shape[1]:
            child = children[path[-1]]
            while child != -1 and tokens[child] != wanted[b][path[-1]]:
                child = siblings[child]
            if child == -1:
                break
            path.append(child)
        for place, node in enumerate(path):
            accept_index[b, place] = numbers[node]
            predicts[numbers[node]] = wanted[b][node]
        accept_token_num[b] = len(path) - 1


def reconstruct_indices_from_tree_mask(
    tree_mask: Tensor,
    verified_seq_len: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    batch_size: int,
    draft_token_num: int,
) -> None:
    """The three tables of trees that are given as masks: a node's parent is the last earlier node that it sees."""
    n = draft_token_num
    sees = tree_mask.view(-1, n, n).bool()
    for b in range(batch_size):
        ancestors = sees[b].tril(-1)
        positions.view(-1, n)[b] = verified_seq_len[b] + ancestors.sum(dim=1)
        parents = [max(row.nonzero().flatten().tolist(), default=-1) for row in ancestors]
        retrive_index[b] = torch.arange(b * n, (b + 1) * n)
        retrive_next_token[b] = -1
        retrive_next_sibling[b] = -1
        _link(parents, retrive_next_token[b], retrive_next_sibling[b])

"""
slime: a generate function that plays episodes on AEnv against slime's router, and the filter that leaves unscored groups out.
Written against slime 0.3.1.

    --custom-generate-function-path aenv_client.slime.generate
    --dynamic-sampling-filter-path aenv_client.slime.keep_scored
    --metadata-key metadata

The metadata of a row is `{"environment": "shop@1.0.0", "task": "train-17"}`. The service is at `AENV_SYSTEM_URL`, its token is
`AENV_API_KEY`. Both paths are needed: an unscored episode is a stand-in that must not enter the mean of its group.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

from ._service import RolloutService, sampling_of, sequences_of
from .errors import Unscored
from .types import RolloutResult, Sequence

logger = logging.getLogger(__name__)
_SAMPLING = ("temperature", "top_p", "top_k")
_FAILED = "aenv_unscored"


async def generate(args: Any, sample: Any, sampling_params: dict[str, Any]) -> Any:
    """One episode as one sample, or as several with the same `rollout_id` if its token sequences differ."""
    metadata = dict(sample.metadata or {})
    service = RolloutService(limits=metadata.get("limits") or {})
    session = getattr(sample, "session_id", None)
    model = {
        "base_url": f"http://{args.sglang_router_ip}:{args.sglang_router_port}/v1",
        "tokens": "service",
        "sampling": sampling_of(sampling_params, _SAMPLING),
        "headers": {"X-SMG-Routing-Key": str(session)} if session else {},
    }
    try:
        result = await service.play(metadata, model, metadata={"index": sample.index, "group_index": sample.group_index})
        reward, sequences = sequences_of(result)
    except Unscored as error:
        logger.warning("sample %s: %s", sample.index, error)
        return _stand_in(sample, str(error))
    samples = [_filled(copy.copy(sample), result, sequence, reward) for sequence in sequences]
    if len(samples) == 1:
        return samples[0]
    for one in samples:
        one.rollout_id = sample.index if getattr(sample, "rollout_id", None) is None else sample.rollout_id
    return samples


def keep_scored(args: Any, samples: list[Any], **kwargs: Any) -> Any:
    """A filter for `--dynamic-sampling-filter-path`: a group with an unscored episode is left out, and another one is sampled."""
    from slime.rollout.filter_hub.base_types import DynamicFilterOutput

    flat = [one for sample in samples for one in (sample if isinstance(sample, list) else [sample])]
    keep = not any((one.metadata or {}).get(_FAILED) for one in flat)
    return DynamicFilterOutput(keep=keep, reason=None if keep else "unscored")


def _filled(sample: Any, result: RolloutResult, sequence: Sequence, reward: float) -> Any:
    prompt = sequence["prompt_length"]
    sample.tokens = list(sequence["token_ids"])
    sample.response_length = len(sample.tokens) - prompt
    sample.loss_mask = list(sequence["loss_mask"][prompt:])
    sample.rollout_log_probs = list(sequence["logprobs"][prompt:])
    sample.weight_versions = [str(span["version"]) for span in sequence["weight_versions"]]
    sample.reward = reward
    sample.response = "\n".join(str(one.get("content") or "") for one in result["messages"] if one.get("role") == "assistant")
    sample.status = type(sample).Status.TRUNCATED if result["truncated"] else type(sample).Status.COMPLETED
    return sample


def _stand_in(sample: Any, why: str) -> Any:
    """
    slime ends the run at None or an exception, so an unscored episode has two tokens, neither of them trained, until it is filtered.
    Its reward is not a number: without the filter, the mean of the group shows it instead of taking it for a zero.
    """
    sample = copy.copy(sample)
    sample.tokens, sample.response_length, sample.response = [0, 0], 1, ""
    sample.loss_mask, sample.rollout_log_probs = [0], [0.0]
    sample.reward = float("nan")
    sample.remove_sample = True
    sample.status = type(sample).Status.FAILED
    sample.metadata = {**(sample.metadata or {}), _FAILED: why}
    return sample

"""
Plays episodes through the modules for frameworks that need torch, with the frameworks' own classes: use_torch_rollouts.py FRAMEWORK URL
MODELS, where MODELS is a JSON object with the addresses of a good, a broken and a drifting model. Prints one JSON report.
"""

import asyncio
import json
import sys
import tempfile
from urllib.parse import urlsplit

FRAMEWORK, URL, MODELS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


def text(tokens, mask):
    """The scripted model has one token for each character."""
    return "".join(chr(id) for id, is_trained in zip(tokens, mask) if is_trained)


def tokenizer():
    """One token for each byte; a chat template as simple as can be."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_only = Tokenizer(models.BPE(vocab={one: at for at, one in enumerate([*special, *alphabet])}, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=bytes_only, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}CALL {{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}"
        "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return made


def drifting(template):
    """Renders the calls of earlier turns in other words than those that the model sampled."""
    return template.replace("%}CALL ", "%}called with ")


def trl():
    """A real step of GRPO. In the group of four, one episode solves the task, one does not, one is unscored, and one drifts."""
    import torch
    from datasets import Dataset
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from aenv_client.trl_rollout import AEnvRollout, aenv_reward

    config = Qwen2Config(
        vocab_size=512, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2
    )
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(config)
    seen = {}

    def play(prompts, trainer):
        players = [AEnvRollout("echo@1.0.0", url=URL, model_url=MODELS[name]) for name in ("good", "wrong", "broken", "drifting")]
        parts = [player([prompt], trainer) for player, prompt in zip(players, prompts, strict=True)]
        rows = {name: [row for part in parts for row in part[name]] for name in parts[0]}
        seen["trained"] = [text(ids, mask) for ids, mask in zip(rows["completion_ids"], rows["env_mask"])]
        return rows

    class Watched(GRPOTrainer):
        def _calculate_rewards(self, *args, **kwargs):
            rewards = super()._calculate_rewards(*args, **kwargs)
            seen["rewards"] = [None if one != one else one for one in rewards[:, 0].tolist()]
            return rewards

        def _generate_and_score_completions(self, inputs):
            batch = super()._generate_and_score_completions(inputs)
            seen["advantages"] = [round(one, 3) for one in batch["advantages"].flatten().tolist()]
            return batch

    before = [one.detach().clone() for one in model.parameters()]
    with tempfile.TemporaryDirectory() as folder:
        Watched(
            model=model,
            processing_class=tokenizer(),
            train_dataset=Dataset.from_list([{"prompt": "greet"}] * 4),
            reward_funcs=aenv_reward,
            rollout_func=play,
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=4,
                num_generations=4,
                max_completion_length=400,
                max_steps=1,
                learning_rate=0.1,
                report_to=[],
                use_cpu=True,
                save_strategy="no",
                disable_tqdm=True,
            ),
        ).train()
    seen["finite"] = all(bool(torch.isfinite(one).all()) for one in model.parameters())
    seen["changed"] = any(not torch.equal(one, other) for one, other in zip(before, model.parameters()))
    return seen


async def verl():
    """verl's registry makes the loop from the configuration of a user, and its output is turned into tensors as the trainer does it."""
    import hydra
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap

    from aenv_client import Unscored

    class Servers:
        """Stands for the load balancer, which needs Ray and GPUs."""

        def __init__(self, address):
            self.address, self.held = address, 0

        async def _acquire_server(self, request_id, **extra):
            self.held += 1
            return self.address, None

        def _release_server(self, server_id, request_id=None):
            self.held -= 1

    rollout = {"actor_rollout_ref": {"rollout": {"response_length": 100, "prompt_length": 4096}, "model": {"path": "m"}}, "data": {}}
    trainer = OmegaConf.create(rollout)
    row = {"raw_prompt": [], "extra_info": {"environment": None, "task": "greet", "index": 3}, "agent_name": "aenv", "global_steps": 9}
    report = {}
    for name, address in MODELS.items():
        servers = Servers(urlsplit(address).netloc)
        loop = hydra.utils.instantiate(
            {"_target_": "aenv_client.verl.AEnvAgentLoop", "environment": "echo@1.0.0", "url": URL, "limits": {"turns": 5}},
            trainer_config=DictConfigWrap(trainer),
            server_manager=servers,
            tokenizer=tokenizer(),
            processor=None,
            dataset_cls=object,
            data_config=DictConfigWrap(trainer.data),
            hf_model_type=None,
            tools=None,
        )
        try:
            made = await loop.run({"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}, **row)
            outputs = [one.as_dict() for one in (made if isinstance(made, list) else [made])]
            report[name] = [
                {
                    "trained": text(one["responses"].tolist(), one["response_mask"].tolist()),
                    "logprobs": len(one["rollout_log_probs"]) == len(one["responses"]) <= 100,
                    "score": one["rm_scores"].sum().item(),
                    "extra": one["extra_fields"],
                    "turns": one["num_turns"],
                }
                for one in outputs
            ]
        except Unscored as error:
            report[name] = str(error)
        assert servers.held == 0
    return report


async def areal():
    """AReaL's proxy server and workflow, with an engine that answers by a script."""
    import uvicorn
    from areal.api import ModelResponse
    from areal.experimental.openai import client as openai_client
    from areal.experimental.openai.proxy import proxy_rollout_server as proxy
    from areal.experimental.openai.proxy.workflow import OpenAIProxyWorkflow
    from openai.types.chat.chat_completion_message_function_tool_call import ChatCompletionMessageFunctionToolCall, Function

    from aenv_client import Unscored
    from aenv_client.areal import AEnvAgent, skip_unscored

    tokens = tokenizer()

    class Engine:
        works = True

        async def agenerate(self, request):
            if not self.works:
                raise RuntimeError("out of order")
            has_called = "<|im_start|>tool" in tokens.decode(request.input_ids)
            ids = tokens.encode("Done.<|im_end|>" if has_called else 'CALL {"text": "hello"}<|im_end|>', add_special_tokens=False)
            return ModelResponse(
                input_tokens=list(request.input_ids),
                output_tokens=ids,
                output_logprobs=[-0.5] * len(ids),
                output_versions=[3] * len(ids),
                tokenizer=tokens,
            )

    def process_tool_calls(text, tools, tool_call_parser, reasoning_parser, finish_reason, use_responses=False, tokenizer=None):
        """The real one needs SGLang or vLLM."""
        if not text.startswith("CALL "):
            return None, text, finish_reason
        arguments = text.removeprefix("CALL ").removesuffix("<|im_end|>")
        call = ChatCompletionMessageFunctionToolCall(id="call_1", type="function", function=Function(name="echo", arguments=arguments))
        return [call], "", "tool_calls"

    engine = Engine()
    openai_client.process_tool_calls = process_tool_calls
    proxy._openai_client = openai_client.ArealOpenAI(engine, tokens, api_key="none", base_url="none")
    proxy._admin_api_key = "admin"
    server = uvicorn.Server(uvicorn.Config(proxy.app, host="127.0.0.1", port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    agent = AEnvAgent("echo@1.0.0", url=URL, retries=0)
    workflow = OpenAIProxyWorkflow(
        mode="inline", agent=agent, proxy_addr=f"http://127.0.0.1:{port}", admin_api_key="admin", discount=0.9
    )

    async def recorded():
        interactions = await workflow.arun_episode(None, {"task": "greet"})
        turns = [one.to_tensor_dict() for one in interactions.values()]
        first, second = (turn["input_ids"][0].tolist() for turn in turns)
        sampled = [tokens.decode(turn["input_ids"][0][turn["loss_mask"][0].bool()]) for turn in turns]
        return {"rewards": [turn["rewards"][0].item() for turn in turns], "trained": sampled, "extends": second[: len(first)] == first}

    report = {"good": await recorded()}
    template = tokens.chat_template
    tokens.chat_template = drifting(template)
    report["drifting"] = await recorded()
    tokens.chat_template = template
    engine.works = False
    try:
        await workflow.arun_episode(None, {"task": "greet"})
    except Unscored as error:
        report["raised"] = str(error)
    report["skipped"] = await skip_unscored(workflow).arun_episode(None, {"task": "greet"})
    server.should_exit = True
    await serving
    return report


def main():
    work = globals()[FRAMEWORK]
    print(json.dumps(asyncio.run(work()) if asyncio.iscoroutinefunction(work) else work()))


main()

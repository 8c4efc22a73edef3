"""
Runs the snippets of docs/guides/train.md in a reader's folder: use_train_guide.py PART MODEL BLOCKS, where MODEL is the address of a model
and BLOCKS a JSON object with the snippets by their language. Prints one JSON report. What needs torch is in the parts `torch_...`; the
others have stand-ins for the trainers, which do with the arguments what the trainer does with them.
"""

import argparse
import asyncio
import importlib
import inspect
import json
import shlex
import sys
import types
from types import SimpleNamespace
from urllib.parse import urlsplit

PART, MODEL, BLOCKS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
SFT, AREAL, TRL = BLOCKS["python"]
[AGENT_YAML] = BLOCKS["yaml"]
VERL_COMMAND, SLIME_COMMAND = ([word for word in shlex.split(text) if word != "\n"] for text in BLOCKS["plain"])


def run(code, **names):
    names["__name__"] = "guide"
    exec(compile(code, "guide", "exec"), names)
    return names


def load(path):
    """A function or class by its path, as trainers find it."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def rows_of(kind, name):
    from datasets import load_dataset

    return load_dataset(kind, data_files=name, split="train").to_list()


def module(name, **content):
    made = types.ModuleType(name)
    made.__dict__.update(content)
    sys.modules[name] = made


def sft():
    seen = {}

    class SFTTrainer:
        def __init__(self, model, train_dataset, args):
            rows = train_dataset.to_list()
            seen.update(
                model=model,
                settings=args,
                roles=sorted({message["role"] for message in rows[0]["messages"]}),
                tools=[tool["function"]["name"] for tool in json.loads(rows[0]["tools"])],
            )

        def train(self):
            pass

    module("trl", SFTConfig=dict, SFTTrainer=SFTTrainer)
    run(SFT)
    return seen


def trl():
    seen = {}

    class GRPOTrainer:
        """Plays the first row, as the model would."""

        def __init__(self, model, train_dataset, environment_factory):
            self.row, self.env = train_dataset.to_list()[0], environment_factory()
            tools = [name for name, _ in inspect.getmembers(self.env, inspect.ismethod) if name not in ("reset", "get_reward")]
            seen.update(model=model, tools=[name for name in tools if not name.startswith("_")])

        def train(self):
            self.env.reset(**self.row)
            for n in range(1, 101):
                if "found" in self.env.guess(n):
                    break
            seen["reward"] = self.env.get_reward()

    module("trl", GRPOTrainer=GRPOTrainer)
    run(TRL)
    return seen


def areal():
    seen = {}

    class Trainer:
        def train(self, workflow, workflow_kwargs):
            agent = load(workflow)(**workflow_kwargs)
            [row, *_] = rows_of("json", "areal.jsonl")
            seen["reward"] = asyncio.run(agent.run(row, base_url=MODEL, api_key="none"))

    run(AREAL, trainer=Trainer())
    return seen


def slime():
    parser = argparse.ArgumentParser()
    for name in ("--prompt-data", "--input-key", "--label-key", "--metadata-key"):
        parser.add_argument(name, required=True)
    parser.add_argument("--n-samples-per-prompt", type=int)
    parser.add_argument("--custom-generate-function-path")
    parser.add_argument("--dynamic-sampling-filter-path")
    args = parser.parse_args(SLIME_COMMAND[SLIME_COMMAND.index("train.py") + 1 :])
    [row, *_] = rows_of("json", args.prompt_data)
    module("slime.rollout.filter_hub.base_types", DynamicFilterOutput=lambda keep, reason: SimpleNamespace(keep=keep, reason=reason))
    for name in ("slime", "slime.rollout", "slime.rollout.filter_hub"):
        module(name)

    class Sample(SimpleNamespace):
        Status = SimpleNamespace(COMPLETED="completed", TRUNCATED="truncated", FAILED="failed")

    where = urlsplit(MODEL)
    args.sglang_router_ip, args.sglang_router_port = where.hostname, where.port
    given = Sample(index=0, group_index=0, prompt=row[args.input_key], label=row[args.label_key], metadata=row[args.metadata_key])
    sample = asyncio.run(load(args.custom_generate_function_path)(args, given, {"temperature": 1.0}))
    kept = load(args.dynamic_sampling_filter_path)(args, [sample]).keep
    return {"columns": sorted(row), "reward": sample.reward, "kept": kept, "samples": args.n_samples_per_prompt}


class Servers:
    """Stands for verl's load balancer, which needs Ray and GPUs."""

    async def _acquire_server(self, request_id, **extra):
        return urlsplit(MODEL).netloc, None

    def _release_server(self, server_id, request_id=None):
        pass


def play_with_verl(**given):
    """Makes the agent loop of the file as verl does, and plays the first row of the Parquet file."""
    import hydra
    from omegaconf import OmegaConf

    [row, *_] = rows_of("parquet", "train.parquet")
    [config] = [one for one in OmegaConf.create(AGENT_YAML) if one.name == row["agent_name"]]
    loop = hydra.utils.instantiate(config, server_manager=Servers(), **given)
    made = asyncio.run(loop.run({"temperature": 1.0, "top_p": 1.0}, **row))
    return config, loop, made


def verl():
    class AgentLoopBase:
        def __init__(self, server_manager, trainer_config, rollout_config, **kwargs):
            self.server_manager, self.config, self.rollout_config = server_manager, trainer_config, rollout_config

    module(
        "verl.experimental.agent_loop.agent_loop",
        AgentLoopBase=AgentLoopBase,
        AgentLoopMetrics=SimpleNamespace,
        AgentLoopOutput=SimpleNamespace,
    )
    for name in ("verl", "verl.experimental", "verl.experimental.agent_loop"):
        module(name)
    from omegaconf import OmegaConf

    rollout = SimpleNamespace(response_length=4096)
    trainer = SimpleNamespace(actor_rollout_ref=SimpleNamespace(model=SimpleNamespace(path="m")))
    config, loop, made = play_with_verl(trainer_config=trainer, rollout_config=rollout)
    limits = OmegaConf.to_container(config.limits)
    return {"agent": config.name, "score": made.reward_score, "trained": any(made.response_mask), "limits": limits}


def small_model(folder):
    """An untrained model with one token per byte and the chat template of the guide's model, which TRL knows."""
    from pathlib import Path

    import torch
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
    vocabulary = {character: at for at, character in enumerate([*special, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    bytes_only = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=bytes_only, eos_token="<|im_end|>", pad_token="<|endoftext|>", additional_special_tokens=special[1:2]
    )
    tokens.add_tokens(special[3:], special_tokens=False)
    tokens.chat_template = (Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=16)
    Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokens), **sizes)).save_pretrained(folder)
    tokens.save_pretrained(folder)


def train_with_trl(code, kind):
    """The snippet as printed, with a small model and for one step without a GPU."""
    import torch
    import trl
    from transformers import TrainingArguments

    seen = {}
    check = TrainingArguments.__post_init__

    def small(self):
        self.use_cpu, self.max_steps, self.save_strategy, self.report_to = True, 1, "no", "none"
        check(self)

    TrainingArguments.__post_init__ = small
    train = getattr(trl, kind).train

    def watched(self, *args, **kwargs):
        result = train(self, *args, **kwargs)
        finite = all(bool(torch.isfinite(one).all()) for one in self.model.parameters())
        seen.update(steps=result.global_step, finite=finite)
        return result

    getattr(trl, kind).train = watched
    small_model("small")
    run(code.replace("Qwen/Qwen3-0.6B", "small"))
    return seen


def torch_sft():
    return train_with_trl(SFT, "SFTTrainer")


def torch_trl():
    return train_with_trl(TRL, "GRPOTrainer")


def torch_verl():
    from pathlib import Path

    import verl
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap

    overrides = VERL_COMMAND[VERL_COMMAND.index("verl.trainer.main_ppo") + 1 :]
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
        config = compose("ppo_trainer", overrides=[*overrides, "actor_rollout_ref.model.path=m"])
    rollout = config.actor_rollout_ref.rollout
    _, loop, made = play_with_verl(
        trainer_config=DictConfigWrap(config),
        tokenizer=None,
        processor=None,
        dataset_cls=object,
        data_config=DictConfigWrap(config.data),
        hf_model_type=None,
        tools=None,
    )
    return {
        "n": rollout.n,
        "files": config.data.train_files,
        "config": rollout.agent.agent_loop_config_path,
        "loop": type(loop).__name__,
        "score": made.reward_score,
    }


def torch_areal():
    import ast
    from pathlib import Path

    import areal
    from areal.api.cli_args import GenerationHyperparameters
    from areal.utils.dynamic_import import import_from_string

    # The module of the trainer imports loggers that are not needed here, so its parameters are read from its source.
    source = ast.parse((Path(areal.__file__).parent / "trainer/rl_trainer.py").read_text())
    [trainer] = [one for one in source.body if isinstance(one, ast.ClassDef) and one.name == "PPOTrainer"]
    [train] = [one for one in trainer.body if isinstance(one, ast.FunctionDef) and one.name == "train"]
    known = {one.arg for one in train.args.args}
    seen = {}

    class Trainer:
        def train(self, **given):
            assert set(given) <= known, set(given) - known
            workflow = import_from_string(given["workflow"])
            workflow(**given["workflow_kwargs"])
            seen["workflow"] = workflow.__name__

    run(AREAL, trainer=Trainer())
    return {**seen, "n_samples": hasattr(GenerationHyperparameters(), "n_samples")}


print(json.dumps(globals()[PART]()))

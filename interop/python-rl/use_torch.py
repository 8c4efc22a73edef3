"""Trains with real learners on torch: use_torch.py URL trl|sb3. Prints one JSON report."""

import json
import sys
import tempfile

URL, PART = sys.argv[1:]


def tokenizer():
    """One token per byte, with the chat template of a family whose tool calls TRL can parse."""
    from pathlib import Path

    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
    vocabulary = {character: at for at, character in enumerate([*special, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    bytes_only = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=bytes_only, eos_token="<|im_end|>", pad_token="<|endoftext|>", additional_special_tokens=special[1:2]
    )
    made.add_tokens(special[3:], special_tokens=False)
    made.chat_template = (Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()
    return made


def train_with_trl():
    """
    A real GRPO step with an untrained model. Generation is scripted, because the model cannot call tools yet: of each group of four,
    one is right, one is wrong, one loses its sandbox, and one says nothing.
    """
    import torch
    from datasets import Dataset
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from aenv_client.trl import environment_class

    tokens = tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokens), hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2
    )
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(config)
    call = lambda name, **arguments: f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call><|im_end|>"
    scripts = [call("count"), call("fail"), call("crash"), "I do not know.<|im_end|>"]
    seen = {}

    class Scripted(GRPOTrainer):
        def _generate_single_turn(self, prompt_ids, *args, **kwargs):
            texts = []
            for at, ids in enumerate(prompt_ids):
                has_called = "<tool_response>" in tokens.decode(ids)
                texts.append("done<|im_end|>" if has_called else scripts[at % 4])
            return [tokens.encode(text, add_special_tokens=False) for text in texts], None

        def _calculate_rewards(self, *args, **kwargs):
            rewards = super()._calculate_rewards(*args, **kwargs)
            seen["rewards"] = [None if one != one else one for one in rewards[:, 0].tolist()]
            return rewards

        def _generate_and_score_completions(self, inputs):
            batch = super()._generate_and_score_completions(inputs)
            seen["advantages"] = [round(one, 3) for one in batch["advantages"].flatten().tolist()]
            seen["masked"] = (batch["tool_mask"] == 0).any(dim=1).tolist() if "tool_mask" in batch else None
            return batch

    rows = [{"prompt": [{"role": "user", "content": "Play. "}], "task": "one"}] * 4
    before = [one.detach().clone() for one in model.parameters()]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Scripted(
            model=model,
            processing_class=tokens,
            train_dataset=Dataset.from_list(rows),
            environment_factory=environment_class("probe@1.0.0", url=URL),
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=4,
                num_generations=4,
                max_completion_length=400,
                max_steps=1,
                learning_rate=0.1,
                report_to=[],
                use_cpu=True,
                logging_steps=1,
                save_strategy="no",
                disable_tqdm=True,
            ),
        )
        trainer.train()
    seen["changed"] = any(not torch.equal(one, other) for one, other in zip(before, model.parameters()))
    seen["finite"] = all(bool(torch.isfinite(one).all()) for one in model.parameters())
    return seen


def train_with_sb3():
    """PPO on the tasks that differ only in the word to echo."""
    import gymnasium
    import numpy as np
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_checker import check_env

    from aenv_client.gymnasium import Menu

    say = [{"name": "echo", "arguments": {"text": word}} for word in ("hello", "brevity", "sesame")]
    env = Menu(gymnasium.make("AEnv-v0", environment="echo-shared@1.0.0", url=URL, tasks=["greet", "be-brief"], max_turns=1), say)
    check_env(env)

    def mean(choose):
        env.reset(seed=1)
        rewards = []
        for _ in range(40):
            observation, _ = env.reset()
            rewards.append(env.step(choose(observation))[1])
        return float(np.mean(rewards))

    random = np.random.default_rng(0)
    before = mean(lambda _: random.integers(3))
    learner = PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=10, learning_rate=0.01, seed=0, device="cpu")
    learner.learn(640)
    after = mean(lambda observation: learner.predict(observation, deterministic=True)[0])
    env.close()
    return {"random": before, "learned": after}


report = train_with_trl() if PART == "trl" else train_with_sb3()
print(json.dumps(report))

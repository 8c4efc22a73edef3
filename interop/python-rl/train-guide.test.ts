import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, type ScriptedOpenAi, scriptedOpenAi, type Tree, temporaryTree, torchPythonPath } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { type Platform, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksIn, readGuide } from "./guide.ts";
import { clientPath, type PythonOptions, runPython } from "./python.ts";

const guide = readGuide("train");
/** The number was found; fewer guesses give a little more. */
const SOLVED = expect.toSatisfy((reward: number) => reward >= 0.8);
const repo = new URL("../..", import.meta.url).pathname;

/** Plays the guessing game of the guide's project well, and in some samples not at all, so that its tasks are neither easy nor hard. */
function startModel(): Promise<ScriptedOpenAi> {
  return scriptedOpenAi(
    ({ body, messages }) => {
      const answers = messages.filter(({ role }) => role === "tool").map(({ text }) => text);
      const isOver = answers.at(-1)?.includes("found") === true || answers.length > 20 || (body.seed !== 0 && Number(body.seed) % 3 === 0);
      return isOver ? "I am done." : { toolCalls: [{ name: "guess", arguments: { n: nextGuess(answers, 10) } }] };
    },
    { tokens: { engine: "vllm" }, keepsRequests: false, needsKey: false },
  );
}

/** Doubles the number until it is too high, then halves the distance. */
function nextGuess(answers: readonly string[], first: number): number {
  let [low, high, guess] = [1, Number.POSITIVE_INFINITY, first];
  for (const answer of answers) {
    if (answer.includes("higher")) low = guess + 1;
    else high = guess - 1;
    guess = high === Number.POSITIVE_INFINITY ? Math.min(guess * 2, 100) : Math.floor((low + high) / 2);
  }
  return guess;
}

/** A suite in the folder of a reader who has run the commands of the guide up to the snippets for trainers. */
function describeReader(
  component: "python-data" | "torch",
  title: string,
  body: (run: (part: string, options?: PythonOptions) => Promise<unknown>) => void,
): void {
  describeNeeding(component, title, () => {
    let platform: Platform;
    let model: ScriptedOpenAi;
    let tree: Tree;

    beforeAll(async () => {
      tree = temporaryTree();
      symlinkSync(join(repo, "node_modules"), join(tree.path, "node_modules"));
      platform = await startPlatform();
      model = await startModel();
      const project = join(tree.path, "my-env");
      const env = { AENV_SYSTEM_URL: platform.controlUrl, AENV_HOME: join(tree.path, ".aenv"), OPENAI_API_KEY: "none" };
      for (const line of blocksIn(guide, "sh").join("").split("\n")) {
        const [, command = ""] = /^npx aenvironment ((?:init|rollout|push|export)\b[^#]*)$/.exec(line) ?? [];
        if (command === "" || command.includes("--agent command")) continue;
        const argv = command.replaceAll("http://127.0.0.1:8000/v1", model.baseUrl).trim().split(/\s+/);
        const { code, stderr } = await aenv(argv, { cwd: argv[0] === "init" ? tree.path : project, env });
        if (code !== 0) throw new Error(`'${line}' ended with ${code}: ${stderr}`);
      }
    }, 120_000);
    afterAll(async () => {
      await platform?.close();
      await model?.close();
      tree?.[Symbol.dispose]();
    });

    body((part, { variables = {}, ...options } = {}) => {
      // As printed, but for the addresses.
      const printed = guide.replaceAll("http://127.0.0.1:8080", platform.controlUrl);
      const blocks = { python: blocksIn(printed, "python"), yaml: blocksIn(printed, "yaml"), plain: blocksIn(printed, "") };
      return runPython("use_train_guide.py", [part, model.baseUrl, JSON.stringify(blocks)], {
        ...options,
        cwd: join(tree.path, "my-env"),
        variables: {
          AENV_SYSTEM_URL: platform.controlUrl,
          HF_HOME: join(tree.path, "huggingface"),
          HF_HUB_OFFLINE: "1",
          ...variables,
        },
      });
    });
  });
}

describeReader("python-data", "the guide to training, as printed", (run) => {
  it("has only snippets that are run here", () => {
    expect(["python", "yaml", ""].map((language) => blocksIn(guide, language).length)).toEqual([3, 1, 2]);
  });

  it("has a file for fine-tuning with TRL", { timeout: 100_000 }, async () => {
    expect(await run("sft")).toEqual({
      model: "Qwen/Qwen3-0.6B",
      settings: { assistant_only_loss: true },
      roles: expect.arrayContaining(["user", "assistant", "tool"]),
      tools: ["guess"],
    });
  });

  it("has a configuration of verl, whose agent loop plays a row of the Parquet file", { timeout: 100_000 }, async () => {
    expect(await run("verl")).toEqual({ agent: "aenv", score: SOLVED, trained: true, limits: { turns: 20 } });
  });

  it("has options of slime, whose functions play a row of the file", { timeout: 100_000 }, async () => {
    expect(await run("slime")).toEqual({ columns: ["label", "metadata", "prompt"], reward: SOLVED, kept: true, samples: 8 });
  });

  it("has a workflow of AReaL that plays a row of the file", { timeout: 100_000 }, async () => {
    expect(await run("areal")).toEqual({ reward: SOLVED });
  });

  it("has an environment class for TRL that plays a row of the file", { timeout: 100_000 }, async () => {
    expect(await run("trl")).toEqual({ model: "Qwen/Qwen3-0.6B", tools: ["guess"], reward: SOLVED });
  });
});

describeReader("torch", "the guide to training, with trainers on torch", (run) => {
  const options = { python: torchPythonPath, timeoutMs: 500_000 };
  const variables = { PYTHONPATH: clientPath, TRL_EXPERIMENTAL_SILENCE: "1", CUDA_VISIBLE_DEVICES: "", ACCELERATE_USE_CPU: "true" };
  const runTorch = (part: string) => run(part, { ...options, variables });

  it.each(["torch_sft", "torch_trl"])("TRL runs the snippet %s with a small model", { timeout: 600_000 }, async (part) => {
    expect(await runTorch(part)).toEqual({ steps: expect.any(Number), finite: true });
  });

  it("verl has the options of the command, and makes the agent loop of the file", { timeout: 600_000 }, async () => {
    expect(await runTorch("torch_verl")).toEqual({
      n: 8,
      files: "train.parquet",
      config: "agent.yaml",
      loop: "AEnvAgentLoop",
      score: SOLVED,
    });
  });

  it("AReaL's trainer takes the arguments of the snippet, and its settings have the field", { timeout: 600_000 }, async () => {
    expect(await runTorch("torch_areal")).toEqual({ workflow: "AEnvAgent", n_samples: true });
  });
});

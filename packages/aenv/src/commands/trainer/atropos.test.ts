import {
  describeNeeding,
  type ModelRequest,
  type ScriptedTokens,
  type ScriptedTurn,
  scriptedOpenAi,
  type Tree,
  temporaryTree,
} from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { aenv } from "../../testing/cli.ts";
import { type PythonServer, servePython } from "../../trainer/testing/python-server.ts";

interface Group {
  readonly tokens: number[][];
  readonly masks: number[][];
  readonly scores: number[];
  readonly inference_logprobs: number[][];
  readonly env_id: number;
}

/** Says the word of the task in the first turn, and in the second that it is done. */
const plays = ({ turn }: ModelRequest): ScriptedTurn =>
  turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "Done.";

describeNeeding("python-rl", "trainer atropos with the real server", () => {
  let atropos: PythonServer;
  let tree: Tree;
  beforeAll(async () => {
    atropos = await servePython("from atroposlib.api.server import app");
  });
  afterAll(() => atropos?.[Symbol.asyncDispose]());
  beforeEach(() => {
    tree = temporaryTree();
  });
  afterEach(async () => {
    tree[Symbol.dispose]();
    await atropos.ask("GET", "/reset_data");
  });

  /** What a trainer does first: registers, and asks for a batch. */
  async function startTrainer({ max_token_len = 4_096 } = {}): Promise<void> {
    await atropos.ask("POST", "/register", {
      wandb_group: "g",
      wandb_project: "p",
      batch_size: 4,
      max_token_len,
      checkpoint_dir: "",
      save_checkpoint_interval: 0,
      starting_step: 0,
      num_steps: 1,
    });
    expect(await atropos.ask("GET", "/batch")).toEqual({ batch: null });
  }
  const batch = async () => ((await atropos.ask("GET", "/batch")) as { batch: Group[] | null }).batch;

  async function feed(script: (request: ModelRequest) => ScriptedTurn, more: readonly string[] = [], tokens?: Partial<ScriptedTokens>) {
    await using model = await scriptedOpenAi(script, { tokens: { engine: "vllm", ...tokens } });
    const line = ["trainer", "atropos", "echo", "--url", atropos.url, "--model", "m", "--base-url", model.baseUrl, "--task", "greet"];
    const { code, stdout, stderr } = await aenv([...line, "-n", "4", "-c", "1", "--poll", "0.05s", "--json", ...more], { cwd: tree.path });
    const lines = stdout
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text));
    return { code, stderr, lines };
  }

  it("pushes a complete group, in which only sampled tokens are trained", { timeout: 60_000 }, async () => {
    await startTrainer();
    const { code, lines } = await feed(plays, ["--groups", "1"]);
    expect([code, lines]).toEqual([
      0,
      [
        { event: "group", group: 0, task: "greet", rewards: [1, 1, 1, 1], leftOut: null },
        { event: "stopped", sent: 1, leftOut: 0 },
      ],
    ]);
    const [group, ...others] = (await batch()) ?? [];
    expect([others, group?.scores, group?.env_id]).toEqual([[], [1, 1, 1, 1], 0]);
    for (const [index, tokens] of group?.tokens.entries() ?? []) {
      const mask = group?.masks[index] ?? [];
      const trained = mask.filter((value) => value !== -100);
      expect(mask).toHaveLength(tokens.length);
      expect(String.fromCodePoint(...trained)).toBe('<call>echo {"text":"hello"}<end>Done.<end>');
      expect(mask.every((value, at) => value === -100 || value === tokens[at])).toBe(true);
      expect(group?.inference_logprobs[index]?.every((value, at) => (mask[at] === -100 ? value === 1 : value <= 0))).toBe(true);
    }
  });

  it("plays an unscored episode again, and leaves a group out that stays incomplete", { timeout: 60_000 }, async () => {
    await startTrainer();
    let failures = 0;
    const failsOnce = (request: ModelRequest) => (failures++ === 0 ? ({ status: 400, message: "broken" } as const) : plays(request));
    expect(await feed(failsOnce, ["--groups", "1", "--retries", "1"])).toMatchObject({ code: 0, lines: [{ leftOut: null }, { sent: 1 }] });
    let asked = 0;
    const fails = (request: ModelRequest) => (asked++ % 5 === 0 ? ({ status: 400, message: "broken" } as const) : plays(request));
    const { lines } = await feed(fails, ["--groups", "1", "--retries", "0"]);
    expect(lines[0]).toMatchObject({
      leftOut: expect.stringMatching(/of 4 episodes have no score to train on: unscored by model: .*broken/),
    });
    const sent = (await batch()) ?? [];
    expect(sent.map(({ scores }) => scores)).toEqual([[1, 1, 1, 1]]);
  });

  it("leaves out episodes that drift into several sequences or are too long", { timeout: 60_000 }, async () => {
    await startTrainer({ max_token_len: 80 });
    const drifting = await feed(plays, ["--groups", "1", "--retries", "0"], { drifts: true });
    expect(drifting.lines[0]).toMatchObject({ leftOut: expect.stringContaining("drifted into 2 token sequences") });
    const long = await feed(plays, ["--groups", "1", "--retries", "0"]);
    expect(long.lines[0]).toMatchObject({ leftOut: expect.stringMatching(/has \d+ tokens, and the trainer takes fewer than 80/) });
    expect(await atropos.ask("GET", "/status")).toMatchObject({ queue_size: 0 });
  });

  it("waits for the trainer to start, and ends when it has its steps", { timeout: 60_000 }, async () => {
    const feeding = feed(plays, ["--max-batches", "1"]);
    await startTrainer();
    const trained: Group[] = [];
    while (trained.length === 0) trained.push(...((await batch()) ?? []));
    const { code, lines } = await feeding;
    expect([code, lines.at(-1)]).toMatchObject([0, { event: "stopped" }]);
    expect(trained[0]?.scores).toEqual([1, 1, 1, 1]);
  });

  it("gives up when the model returns no tokens", { timeout: 60_000 }, async () => {
    await startTrainer();
    await using model = await scriptedOpenAi(plays);
    const line = ["trainer", "atropos", "echo", "--url", atropos.url, "--model", "m", "--base-url", model.baseUrl, "--retries", "0"];
    const { code, stderr } = await aenv([...line, "-n", "1"], { cwd: tree.path });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/groups in a row were left out.*returns no token ids/)]);
  });

  it("refuses a group that does not fit into a batch", { timeout: 60_000 }, async () => {
    await startTrainer();
    const line = ["trainer", "atropos", "echo", "--url", atropos.url, "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "-n", "5"];
    const { code, stderr } = await aenv(line, { cwd: tree.path });
    expect([code, stderr]).toEqual([1, expect.stringContaining("a group of 5 does not fit into the trainer's batch of 4")]);
  });
});

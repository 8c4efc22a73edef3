import {
  describeNeeding,
  type ModelRequest,
  type ScriptedOpenAi,
  type ScriptedTurn,
  scriptedOpenAi,
  type Tree,
  temporaryTree,
} from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { aenv } from "../../testing/cli.ts";
import { type PythonServer, servePython } from "../../trainer/testing/python-server.ts";

const KEY = "the-gateways-key";
const application = `
from agentlightning.server.app import create_app
proxy = {"model_name": "m", "include_log_probs": True, "train": {"temperature": 1}, "val": {"temperature": 0.7}}
app = create_app({"key": "${KEY}", "default_proxy": proxy})
`;

/** Says the word of the task in the first turn, and in the second that it is done. */
const plays = ({ turn, messages }: ModelRequest): ScriptedTurn => {
  const word = /'(.+)'/.exec(messages.find(({ role }) => role === "user")?.text ?? "")?.[1];
  return turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: word } }] } : "Done.";
};

describe("trainer agent-lightning", () => {
  it("says that no server is at the address", async () => {
    const { code, stderr } = await aenv(["trainer", "agent-lightning", "echo", "--url", "nowhere"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("'nowhere' is not the address of a trainer's server")]);
  });
});

describeNeeding("python-rl", "trainer agent-lightning with the real gateway", () => {
  let gateway: PythonServer;
  let model: ScriptedOpenAi;
  let script: (request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>;
  /** Whether the model's chat template renders an earlier answer differently. */
  let drifts: boolean;
  let tree: Tree;
  beforeAll(async () => {
    const tokens = {
      engine: "vllm",
      get drifts() {
        return drifts;
      },
    } as const;
    gateway = await servePython(application, KEY);
    model = await scriptedOpenAi((request) => script(request), { needsKey: false, tokens });
    await gateway.ask("POST", "/api/models", [{ model: "m", endpoint: model.baseUrl, version: 3 }]);
  });
  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await model?.close();
  });
  beforeEach(() => {
    tree = temporaryTree();
    script = plays;
    drifts = false;
  });
  afterEach(() => tree[Symbol.dispose]());

  async function enqueue(...inputs: readonly unknown[]): Promise<string[]> {
    const body = inputs.map((input) => ({ input, config: { timeout_seconds: 60 } }));
    const made = (await gateway.ask("POST", "/api/rollouts", body)) as { rollout_id: string }[];
    return made.map(({ rollout_id }) => rollout_id);
  }
  const stateOf = async (id = "") => {
    const { rollout } = (await gateway.ask("GET", `/api/rollouts/${id}`)) as { rollout: { status: Record<string, unknown> } };
    return rollout.status;
  };
  const eventsOf = async (id = "") =>
    (await gateway.ask("GET", `/api/rollouts/${id}/events?format=triplet`)) as { event_type: string; data: Record<string, unknown> }[];
  const control = (...more: readonly string[]) =>
    aenv(["trainer", "agent-lightning", "echo", "--url", gateway.url, "--until-idle", "--poll", "0.05s", "--json", ...more], {
      cwd: tree.path,
      env: { AGL_KEY: KEY },
    });

  it("reports the reward of a scored rollout, whose tokens the gateway has recorded", { timeout: 60_000 }, async () => {
    const [id, other] = await enqueue({ task: "greet" }, { task: { id: "be-brief" }, seed: 5 });
    const { code, stdout, stderr } = await control();
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    expect(await stateOf(id)).toMatchObject({ state: "succeeded", last_attempt_id: "0", error_message: null });
    expect(await stateOf(other)).toMatchObject({ state: "succeeded" });
    const events = await eventsOf(id);
    expect(events.map(({ event_type }) => event_type)).toEqual(["model_request", "model_request", "reward"]);
    expect(events[2]?.data).toEqual({ value: 1 });
    for (const { data } of events.slice(0, 2)) {
      expect((data.prompt_token_ids as number[]).length).toBeGreaterThan(0);
      expect(data.response_log_probs).toHaveLength((data.response_token_ids as number[]).length);
    }
    expect(model.requests[0]?.body).toMatchObject({ model: "m", temperature: 1 });
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toEqual({ event: "stopped", scored: 2, failed: 0 });
    expect(stdout + stderr).not.toContain(KEY);
  });

  it.each([
    ["goes on with", false, true],
    ["does not go on with", true, false],
  ])(
    "leaves the tokens to the gateway where the second prompt %s those of the first turn",
    { timeout: 60_000 },
    async (_, drifting, goesOn) => {
      drifts = drifting;
      const [id] = await enqueue({ task: "greet" });
      expect((await control()).code).toBe(0);
      const [first, second, reward] = (await eventsOf(id)).map(({ data }) => data as Record<string, number[]>);
      const held = [...(first?.prompt_token_ids ?? []), ...(first?.response_token_ids ?? [])];
      expect(second?.prompt_token_ids?.slice(0, held.length).join() === held.join()).toBe(goesOn);
      expect(second?.response_token_ids?.length).toBeGreaterThan(0);
      expect(reward).toEqual({ value: 1 });
    },
  );

  it("reports an unscored rollout as failed, without a reward", { timeout: 60_000 }, async () => {
    script = () => ({ status: 400, message: "no such model" });
    const [id, unknown, bad] = await enqueue({ task: "greet" }, { task: "no-such-task" }, { prompt: "hello" });
    expect((await control()).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({
      state: "failed",
      error_message: expect.stringMatching(/^unscored by model at play: .*no such model/),
    });
    expect(await stateOf(unknown)).toMatchObject({ state: "failed", error_message: expect.stringMatching(/^unscored by environment/) });
    expect(await stateOf(bad)).toMatchObject({ state: "failed", error_message: expect.stringContaining('{"task": "ID"}') });
    for (const one of [id, unknown, bad]) {
      expect((await eventsOf(one)).filter(({ event_type }) => event_type === "reward")).toEqual([]);
    }
  });

  it("waits while the gateway is paused, and plays on", { timeout: 60_000 }, async () => {
    const [id] = await enqueue({ task: "greet" });
    await gateway.ask("POST", "/proxy/pause", { retry_after_seconds: 0 });
    const controlling = control();
    await vi.waitFor(async () => expect(await stateOf(id)).toMatchObject({ state: "running" }), { timeout: 30_000 });
    await gateway.ask("POST", "/proxy/resume");
    expect((await controlling).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ state: "succeeded" });
    expect((await eventsOf(id)).at(-1)).toMatchObject({ event_type: "reward", data: { value: 1 } });
  });

  it("reports what runs as failed when it is stopped, and leaves the rest queued", { timeout: 60_000 }, async () => {
    const stop = new AbortController();
    script = () => {
      stop.abort();
      return plays({ turn: 0, messages: [] } as unknown as ModelRequest);
    };
    const [first, second] = await enqueue({ task: "greet" }, { task: "be-brief" });
    const line = ["trainer", "agent-lightning", "echo", "--url", gateway.url, "--key", KEY, "--concurrency", "1"];
    const { code, stdout } = await aenv(line, { cwd: tree.path, stop: stop.signal });
    expect([code, stdout]).toEqual([0, expect.stringContaining("0 rollouts were scored, 1 failed.")]);
    expect(await stateOf(first)).toMatchObject({ state: "failed", error_message: expect.stringContaining("unscored by cancelled") });
    expect(await stateOf(second)).toMatchObject({ state: "queuing" });
    await gateway.ask("DELETE", `/api/rollouts/${second}`);
  });

  it("asks for the key when the gateway refuses", { timeout: 60_000 }, async () => {
    const { code, stderr } = await aenv(["trainer", "agent-lightning", "echo", "--url", gateway.url, "--key", "wrong"], { cwd: tree.path });
    expect([code, stderr]).toEqual([77, expect.stringContaining("--key or AGL_KEY")]);
  });
});

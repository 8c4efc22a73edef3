import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { type ChatMessage, type Trajectory, trajectory as trajectorySchema } from "@aenv/contract";
import { defineEnvironment, type EnvironmentDefinition, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { scriptedOpenAi, type Tree, temporaryTree } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { commandAgent } from "../agents/command.ts";
import { insideAgent } from "../agents/inside.ts";
import { moduleAgent } from "../agents/module.ts";
import { scriptedAgent } from "../agents/scripted.ts";
import { mergeTurns } from "../models/sequences.ts";
import type { Agent, ProgramAgent } from "../player/agent.ts";
import { RecordingServer } from "../recorder/server.ts";
import { Episode } from "./episode.ts";
import { InstancePool } from "./instance-pool.ts";
import { type PlayOptions, playEpisode } from "./play.ts";

const never = new AbortController().signal;

/** How a program in any language calls a tool: one HTTP request. */
const callTool = `
let id = 0;
async function callTool(url, name, args) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: id++, method: "tools/call", params: { name, arguments: args } }),
  });
  const { result, error } = await response.json();
  return error === undefined ? result.content[0].text : error.message;
}`;

const files = {
  "tools.mjs": `${callTool}
    for (const text of JSON.parse(process.argv[2])) await callTool(process.env.AENV_AGENT_URL, "echo", { text });
    console.log(process.env.AENV_TASK_ID + ": " + process.env.AENV_INSTRUCTION);`,
  "model.mjs": `${callTool}
    import { writeFileSync } from "node:fs";
    writeFileSync(process.argv[2], JSON.stringify(process.env));
    const { AENV_AGENT_URL, AENV_MESSAGES, AENV_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY } = process.env;
    const messages = JSON.parse(AENV_MESSAGES);
    for (;;) {
      const response = await fetch(OPENAI_BASE_URL + "/chat/completions", {
        method: "POST",
        headers: { authorization: "Bearer " + OPENAI_API_KEY, "content-type": "application/json" },
        body: JSON.stringify({ model: AENV_MODEL, messages }),
      });
      const { choices } = await response.json();
      const { role, content, tool_calls } = choices[0].message;
      messages.push({ role, content, ...(tool_calls && { tool_calls }) });
      if (tool_calls === undefined) break;
      for (const { id, function: called } of tool_calls) {
        const content = await callTool(AENV_AGENT_URL, called.name, JSON.parse(called.arguments));
        messages.push({ role: "tool", tool_call_id: id, content });
      }
    }`,
  "fails.mjs": `console.error("line one"); console.error("no idea how"); process.exit(3);`,
  "waits.mjs": `
    import { spawn } from "node:child_process";
    import { connect } from "node:net";
    process.on("SIGTERM", () => process.exit(0));
    const child = "process.on('SIGTERM', () => {}); require('node:net').connect(" + process.argv[2] + ", '127.0.0.1')";
    spawn(process.execPath, ["-e", child], { stdio: "ignore" });
    connect(Number(process.argv[2]), "127.0.0.1");`,
  "module.mjs": `${callTool}
    export default async ({ agentUrl, task, tools }) => {
      await callTool(agentUrl, tools[0].name, { text: "hello" });
      return "played " + task.id;
    };`,
  "agent.mjs": `
    export default {
      name: "prepared",
      settings: {},
      installed: "nothing",
      async prepare({ engine }) { this.installed = engine; },
      async run() { return { text: this.installed }; },
    };`,
  "throws.mjs": `export default async () => { throw new Error("out of ideas"); };`,
  "nothing.mjs": `export const agent = 1;`,
};

let platform: Platform;
let tree: Tree;
let environment: string;
let recorder: RecordingServer;
let instances: InstancePool;

beforeAll(async () => {
  tree = temporaryTree(files);
  recorder = await RecordingServer.open();
  platform = await startPlatform();
  environment = await publish(platform, projects.echo, { deployConfig: { isolation: "shared" } });
  instances = new InstancePool({
    environment,
    options: { systemUrl: platform.controlUrl, dataUrl: platform.dataUrl },
    environmentDigest: null,
  });
});
afterAll(async () => {
  await instances?.close();
  await recorder?.close();
  await platform?.close();
  tree?.[Symbol.dispose]();
});

function program(file: string, ...args: readonly string[]): Agent {
  return commandAgent({ command: [process.execPath, join(tree.path, file), ...args] });
}

async function play(agent: Agent, own: Partial<PlayOptions> = {}): Promise<Trajectory> {
  const played = await playEpisode(
    { id: "e", run: null, attempt: 0, task: { id: "greet", split: null, index: null }, group: null, seed: 7, metadata: {} },
    {
      agent,
      recorder,
      model: null,
      limits: {},
      deadlineMs: 30_000,
      recordsDigests: false,
      acquire: (spec, signal) => instances.acquire(spec, signal),
      provenance: { model: null, client_version: "0" },
      costOf: () => null,
      cancel: never,
      now: () => performance.now(),
      date: () => new Date(),
      ...own,
    },
  );
  expect(trajectorySchema.safeParse(played).error).toBeUndefined();
  return played;
}

describe("a program that plays an episode", () => {
  it("inside is a program of this machine, where sandboxes are processes; nothing is installed there", async () => {
    const command = [process.execPath, join(tree.path, "tools.mjs"), '["hello"]'];
    const trajectory = await play(insideAgent({ command }));
    expect(trajectory).toMatchObject({ outcome: { kind: "scored" }, metadata: { agent_program: { exit_code: 0 } } });
    expect(trajectory.steps).toHaveLength(1);
    const { outcome } = await play(insideAgent({ command, files: tree.path }));
    expect(outcome).toMatchObject({ kind: "unscored", cause: "agent", message: expect.stringContaining("engine oci or docker") });
  });

  it("calls tools, which are recorded as steps, and its output are its last words", async () => {
    const trajectory = await play(program("tools.mjs", '["well", "hello"]'));
    expect(trajectory).toMatchObject({ outcome: { kind: "scored", reward: 0.8 }, stop_reason: "done", turns: [] });
    expect(trajectory.steps.map(({ index, call, result }) => [index, call.name, call.arguments, result])).toEqual([
      [0, "echo", { text: "well" }, { content: [{ type: "text", text: "well" }], is_error: false }],
      [1, "echo", { text: "hello" }, { content: [{ type: "text", text: "hello" }], is_error: false }],
    ]);
    expect(trajectory.messages.at(-1)).toEqual({ role: "assistant", content: "greet: Echo the word 'hello'.\n" });
  });

  it("uses the model by an address of its own: exchanges are recorded, and it never sees the key of the endpoint", async () => {
    await using endpoint = await scriptedOpenAi([{ toolCalls: [{ name: "echo", arguments: { text: "hello" } }] }, "Done."]);
    const seen = join(tree.path, "environment.json");
    const model = { baseUrl: endpoint.baseUrl, apiKey: "the-real-key", name: "m" };
    const trajectory = await play(program("model.mjs", seen), { model });
    expect(trajectory).toMatchObject({ outcome: { kind: "scored", reward: 1 }, stop_reason: "done" });
    expect(trajectory.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "assistant"]);
    expect(trajectory.turns.map(({ message, finish_reason }) => [message, finish_reason])).toEqual([
      [2, "tool_calls"],
      [4, "stop"],
    ]);
    expect(trajectory.steps).toMatchObject([{ call: { name: "echo", arguments: { text: "hello" } }, result: { is_error: false } }]);
    expect(trajectory.usage.completion_tokens).toBeGreaterThan(0);
    expect(endpoint.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer the-real-key", "Bearer the-real-key"]);
    expect(readFileSync(seen, "utf8")).not.toContain("the-real-key");
  });

  it("is heard by an environment that wants to know what it writes beside tool calls, before these are made", async () => {
    const events: string[] = [];
    const listener = defineEnvironment({
      setup: () => ({}),
      prompt: () => "Echo twice.",
      hear: (text) => void events.push(text),
      tools: [{ name: "echo", run: () => `event ${events.push("echo")}` }],
      rewards: [{ name: "done", score: () => 1 }],
    }) as EnvironmentDefinition;
    await using served = await serve(listener, { port: 0 });
    const instance = new (class extends Environment {
      override async agentUrl() {
        return `${served.url}/mcp`;
      }
    })("listener@1.0.0", { instanceUrl: served.url });
    await using endpoint = await scriptedOpenAi([
      { text: "I echo.", toolCalls: [{ name: "echo", arguments: {} }] },
      { toolCalls: [{ name: "echo", arguments: {} }] },
      "Done.",
    ]);
    const provenance = { environment: "listener@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
    const { outcome } = await play(program("model.mjs", join(tree.path, "environment.json")), {
      model: { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" },
      acquire: async () => ({ instance, provenance, task: { id: null, split: null, index: null }, release: () => instance.release() }),
    });
    expect(outcome).toMatchObject({ kind: "scored", reward: 1 });
    expect(events).toEqual(["I echo.", "echo", "echo"]);
  });

  it("has the token ids of its model's answers if they are wanted", async () => {
    await using endpoint = await scriptedOpenAi([{ toolCalls: [{ name: "echo", arguments: { text: "hello" } }] }, "Done."], {
      tokens: { engine: "vllm" },
    });
    const model = { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m", wantsTokens: true };
    const trajectory = await play(program("model.mjs", join(tree.path, "environment.json")), { model });
    expect(trajectory).toMatchObject({ outcome: { kind: "scored", reward: 1 }, capture: "tokens" });
    expect(mergeTurns(trajectory.turns)).toHaveLength(1);
  });

  it("is unscored by the model if token ids are wanted and the endpoint returns none", async () => {
    await using endpoint = await scriptedOpenAi(["Done."]);
    const model = { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m", wantsTokens: true };
    expect((await play(program("model.mjs", join(tree.path, "environment.json")), { model })).outcome).toMatchObject({
      kind: "unscored",
      cause: "model",
      retryable: false,
      message: expect.stringContaining("returns no token ids"),
    });
  });

  it("gets neither the platform's address nor its key, with which it could reach the rewards", async () => {
    await using endpoint = await scriptedOpenAi(["Done."]);
    const seen = join(tree.path, "environment.json");
    vi.stubEnv("AENV_API_KEY", "the-platform-key");
    vi.stubEnv("AENV_SYSTEM_URL", platform.controlUrl);
    try {
      await play(program("model.mjs", seen), { model: { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" } });
    } finally {
      vi.unstubAllEnvs();
    }
    const variables = JSON.parse(readFileSync(seen, "utf8")) as Record<string, string>;
    expect(
      Object.keys(variables)
        .filter((name) => name.startsWith("AENV_"))
        .sort(),
    ).toEqual(["AENV_AGENT_URL", "AENV_INSTRUCTION", "AENV_MESSAGES", "AENV_MODEL", "AENV_SEED", "AENV_TASK_ID"]);
    expect(JSON.stringify(variables)).not.toContain("the-platform-key");
  });

  it("that ends with an exit code is unscored by the agent, and the last line of its errors is the reason", async () => {
    expect(await play(program("fails.mjs"))).toMatchObject({
      outcome: {
        kind: "unscored",
        cause: "agent",
        stage: "play",
        retryable: false,
        message: expect.stringMatching(/exit code 3: no idea how$/),
      },
      stop_reason: "error",
    });
  });

  it("that does not exist is unscored by the agent, with its name", async () => {
    expect(await play(commandAgent({ command: ["no-such-program"] }))).toMatchObject({
      outcome: { kind: "unscored", cause: "agent", message: expect.stringContaining("no-such-program could not be started") },
    });
  });

  it("is ended when it reaches a limit, and what it has done is scored", async () => {
    const words = JSON.stringify(Array.from({ length: 5 }, () => "hello"));
    const trajectory = await play(program("tools.mjs", words), { limits: { toolCalls: 2 } });
    expect(trajectory).toMatchObject({ outcome: { kind: "scored", reward: 0.8 }, stop_reason: "max_tool_calls", truncated: true });
    expect(trajectory.steps).toHaveLength(2);
  });

  it("is ended when the environment says that the episode is over", async () => {
    const words = JSON.stringify(Array.from({ length: 20 }, () => "hello"));
    const trajectory = await play(program("tools.mjs", words));
    expect(trajectory).toMatchObject({ outcome: { kind: "scored" }, stop_reason: "done", truncated: false });
    expect(trajectory.steps).toHaveLength(10);
  });

  it("ends with its children when the episode is cancelled, also with those that ignore a request to end", async () => {
    const cancel = new AbortController();
    const closed: Promise<unknown>[] = [];
    const server = createServer((socket: Socket) => {
      socket.on("error", () => {});
      socket.resume();
      closed.push(once(socket, "close"));
      // The program and its child are both connected: both run.
      if (closed.length === 2) cancel.abort();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const trajectory = await play(program("waits.mjs", String(port)), { cancel: cancel.signal });
    expect(trajectory.outcome).toMatchObject({ kind: "unscored", cause: "cancelled", retryable: true });
    await Promise.all(closed);
    server.close();
  });
});

/** Calls the tool so often, whatever the answers are. */
function calling(times: number): ProgramAgent {
  return {
    name: "calling",
    settings: {},
    run: async ({ agentUrl }) => {
      for (let id = 0; id < times; id++) {
        const params = { name: "echo", arguments: { text: "hello" } };
        const response = await fetch(agentUrl, {
          method: "POST",
          headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
          body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }),
        });
        await response.text();
      }
      return { text: "Done." };
    },
  };
}

describe("a tool call of a program that a failed server does not answer", () => {
  /** Instances whose first call of a tool is answered 503. */
  const acquire: PlayOptions["acquire"] = async (spec, signal) => {
    const lease = await instances.acquire(spec, signal);
    const real = await lease.instance.agentUrl();
    let calls = 0;
    const server = createHttpServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray());
      if (calls++ === 0) return void response.writeHead(503).end();
      const answer = await fetch(real, { method: "POST", headers: { ...(request.headers as Record<string, string>) }, body });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" }).end(await answer.text());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    Object.assign(lease.instance, { agentUrl: async () => `http://127.0.0.1:${port}` });
    const release = async () => {
      server.close();
      server.closeAllConnections();
      await lease.release(false);
    };
    return { ...lease, release };
  };

  it("makes the episode unscored, though the program ends as if nothing had happened", async () => {
    const { outcome, steps } = await play(calling(1), { acquire });
    expect(outcome).toMatchObject({
      kind: "unscored",
      cause: "sandbox",
      stage: "play",
      retryable: true,
      message: expect.stringContaining("'echo'"),
    });
    expect(steps).toHaveLength(1);
  });

  it("is no reason to leave the episode unscored if the program's next call has a result", async () => {
    expect(await play(calling(2), { acquire })).toMatchObject({ outcome: { kind: "scored", reward: 1 } });
  });
});

/** Asks the model until it answers, at most so often, whatever the answers are. */
function asking(attempts: number): ProgramAgent {
  return {
    name: "asking",
    settings: {},
    run: async ({ model, signal }) => {
      for (let at = 0; at < attempts; at++) {
        try {
          const response = await fetch(`${model?.openaiUrl}/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${model?.apiKey}`, "content-type": "application/json" },
            body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi." }], stream: true }),
            signal,
          });
          const text = await response.text();
          if (response.ok) return { text };
        } catch {
          // What went wrong is hidden, as many programs do.
        }
      }
      return { text: null };
    },
  };
}

describe("the model of a program", () => {
  const byModel = { kind: "unscored", cause: "model", stage: "play", retryable: true };
  const overheated = { status: 500, message: "overheated" };

  it.each([
    ["answers 500", () => overheated, "answered 500: overheated"],
    ["breaks off", () => ({ fault: "cut", answer: "A rather long answer, in pieces." }) as const, "broke off"],
    ["is busy until the program gives up", () => ({ status: 429, message: "slow down" }), "busy (429)"],
  ])("that %s makes the episode unscored, though the program ends as if nothing had happened", async (_, script, message) => {
    await using endpoint = await scriptedOpenAi(script);
    const { outcome } = await play(asking(2), { model: { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" } });
    expect(outcome).toMatchObject({ ...byModel, message: expect.stringContaining(message) });
  });

  it("that is gone makes it unscored too, also if the program ends with an error", async () => {
    const endpoint = await scriptedOpenAi([]);
    await endpoint.close();
    const model = { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" };
    expect((await play(asking(1), { model })).outcome).toMatchObject({
      ...byModel,
      message: expect.stringContaining("could not be reached"),
    });
    expect((await play(program("model.mjs", join(tree.path, "environment.json")), { model })).outcome).toMatchObject(byModel);
  });

  it("that never answers makes it unscored when the program's time is up", async () => {
    await using endpoint = await scriptedOpenAi(() => ({ fault: "silent" }));
    const model = { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" };
    expect((await play(asking(1), { model, limits: { seconds: 1 } })).outcome).toMatchObject(byModel);
  });

  it("may fail and be busy for a while: these answers are no turns", async () => {
    const busy = { status: 429, message: "slow down", headers: { "retry-after": "0" } };
    await using endpoint = await scriptedOpenAi(({ index }) => [overheated, busy, overheated, "Done."][index] as string);
    const trajectory = await play(asking(4), {
      model: { baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" },
      limits: { turns: 1 },
    });
    expect(trajectory).toMatchObject({ outcome: { kind: "scored" }, stop_reason: "done", turns: [{ finish_reason: "stop" }] });
  });
});

describe("a module that plays an episode", () => {
  it("is a function that is given the addresses, and returns its last words", async () => {
    const trajectory = await play(await moduleAgent(join(tree.path, "module.mjs")));
    expect(trajectory).toMatchObject({ outcome: { kind: "scored", reward: 1 }, steps: [{ call: { name: "echo" } }] });
    expect(trajectory.messages.at(-1)).toEqual({ role: "assistant", content: "played greet" });
  });

  it("is an agent that prepares the sandbox before its time begins", async () => {
    const trajectory = await play(await moduleAgent(join(tree.path, "agent.mjs")));
    expect(trajectory.messages.at(-1)).toEqual({ role: "assistant", content: "process" });
  });

  it("that throws is unscored by the agent", async () => {
    expect(await play(await moduleAgent(join(tree.path, "throws.mjs")))).toMatchObject({
      outcome: { kind: "unscored", cause: "agent", stage: "play", message: "out of ideas" },
    });
  });

  it("without an agent in it, or that is not there, is refused with what to write", async () => {
    await expect(moduleAgent(join(tree.path, "nothing.mjs"))).rejects.toThrow("write: export default async");
    await expect(moduleAgent(join(tree.path, "missing.mjs"))).rejects.toThrow("cannot be loaded");
  });
});

describe("a fork", () => {
  it("goes on from the same point on an instance of its own; the record of its parent stays as it was", async () => {
    await using instance = await Environment.create(environment, { systemUrl: platform.controlUrl, dataUrl: platform.dataUrl });
    const now = () => performance.now();
    const parent = await Episode.begin({
      instance,
      task: "greet",
      seed: 7,
      limits: { turns: 4 },
      signal: never,
      recordsDigests: true,
      now,
    });
    const say = (...texts: readonly string[]) =>
      scriptedAgent(texts.map((text) => ({ tool: "echo", arguments: { text } }))).begin({
        task: { id: null, instruction: null },
        tools: parent.tools,
        seed: 7,
        oracle: async () => null,
      });
    await parent.play(await say("one", "two"));
    const [messages, steps] = [structuredClone(parent.record.messages), structuredClone(parent.record.steps)];
    expect(steps).toHaveLength(2);

    const forks = await parent.fork(3);
    try {
      const words = ["red", "hello", "blue"];
      for (const [at, fork] of forks.entries()) await fork.play(await say(words[at] as string));
      expect(forks.map(({ record }) => record.steps.map(({ call }) => call.arguments.text))).toEqual([
        ["one", "two", "red"],
        ["one", "two", "hello"],
        ["one", "two", "blue"],
      ]);
      expect(new Set(forks.map(({ record }) => record.steps.at(-1)?.state_digest)).size).toBe(3);
      for (const { record } of forks) {
        expect(record.steps.slice(0, 2)).toEqual(steps);
        expect(record.messages.slice(0, messages.length) satisfies ChatMessage[]).toEqual(messages);
        const times = record.steps.map(({ started_ms }) => started_ms);
        expect(times).toEqual(times.toSorted((a, b) => a - b));
      }
      const outcomes = await Promise.all(forks.map((fork) => fork.score()));
      expect(outcomes.map((outcome) => outcome.kind === "scored" && outcome.components.said_it)).toEqual([0, 1, 0]);
    } finally {
      for (const fork of forks) await fork.instance.release();
    }
    expect(parent.record.messages).toEqual(messages);
    expect(parent.record.steps).toEqual(steps);
    expect(await parent.score()).toMatchObject({ components: { said_it: 0 } });
  });
});

import { type ChatMessage, type Trajectory, textOf } from "@aenv/contract";
import { defineEnvironment, type EnvironmentDefinition, type Served, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { type Script, scriptedOpenAi } from "@aenv/testing";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { playEpisode } from "../episode/play.ts";
import { ModelHttp } from "../models/http.ts";
import { shortened, type TerminalAgentOptions, terminalAgent } from "./terminal.ts";

const environment = defineEnvironment({
  tasks: () => [{ id: "count", instruction: "Count." }],
  prompt: () => [
    { role: "system", content: "The house rules." },
    { role: "user", content: "Count the files." },
  ],
  setup: () => ({}),
  tools: [
    {
      name: "execute_command",
      input: z.object({ command: z.string() }),
      run: ({ command }) => `${command}: ${"x".repeat(2_000)}`,
    },
    { name: "read_file", run: () => "text" },
  ],
  rewards: [{ name: "done", score: () => 1 }],
}) as EnvironmentDefinition;

const never = new AbortController().signal;
let http: ModelHttp;
let served: Served;

beforeAll(async () => {
  http = new ModelHttp({ retries: 0, timeoutMs: 10_000 });
  served = await serve(environment, { port: 0 });
});
afterAll(async () => {
  await http.close();
  await served.close();
});

async function play(script: Script, options: TerminalAgentOptions = {}, url = served.url) {
  const endpoint = await scriptedOpenAi(script);
  const agent = terminalAgent({ api: "chat", baseUrl: endpoint.baseUrl, apiKey: "k", name: "m" }, http, options);
  const trajectory = await playEpisode(
    { id: "e", run: null, attempt: 0, task: { id: "count", split: null, index: null }, group: null, seed: 1, metadata: {} },
    {
      agent,
      recorder: null,
      model: null,
      limits: {},
      deadlineMs: 60_000,
      recordsDigests: false,
      acquire: async () => {
        const instance = await Environment.create("count@1.0.0", { instanceUrl: url });
        const provenance = { environment: "count@1.0.0", environment_digest: null, engine: null, isolation: null, server_version: null };
        return { instance, provenance, release: () => instance.release() };
      },
      provenance: { model: "m", client_version: "0" },
      costOf: () => null,
      cancel: never,
      now: () => performance.now(),
      date: () => new Date(),
    },
  );
  await endpoint.close();
  return { trajectory, endpoint };
}

/** What the model was shown in each turn, as the trajectory tells. */
function shownIn({ messages, conversations = [], turns }: Trajectory): string[][] {
  return turns.map(({ conversation, message }) => {
    const shown = conversation === undefined ? messages : (conversations[conversation]?.messages ?? []);
    return shown.slice(0, message ?? 0).map(textOf);
  });
}

const call = (command: string) => ({ toolCalls: [{ name: "execute_command", arguments: { command } }] });

describe("the agent for terminals", { timeout: 30_000 }, () => {
  it("has a prompt of its own that names the environment's tools, and ends with a message without a call", async () => {
    const { trajectory, endpoint } = await play([call("ls"), "There are two."]);
    expect(trajectory).toMatchObject({ outcome: { kind: "scored", reward: 1 }, stop_reason: "done", steps: [{ message: 2 }] });
    const [system, user] = endpoint.requests[0]?.messages ?? [];
    expect(system?.text).toMatch(/- execute_command runs commands\.\n- read_file reads a file\.\n\n.*The house rules\.$/s);
    expect(user?.text).toBe("Count the files.");
    expect(trajectory.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "assistant"]);
    expect(trajectory.conversations).toBeUndefined();
    expect(trajectory.provenance.agent_settings).toMatchObject({
      model: "m",
      contextTokens: 100_000,
      prompt: expect.stringMatching(/^sha256:/),
    });
  });

  it("shortens old outputs, and the trajectory has for every turn exactly what the model saw", async () => {
    const commands = Array.from({ length: 12 }, (_, at) => call(`command ${at}`));
    const { trajectory, endpoint } = await play([...commands, "Done."], { contextTokens: 4_000 });
    expect(trajectory).toMatchObject({ stop_reason: "done", outcome: { reward: 1 } });
    expect(trajectory.turns).toHaveLength(13);
    expect(shownIn(trajectory)).toEqual(endpoint.requests.map(({ messages }) => messages.map(({ text }) => text ?? "")));
    expect(trajectory.conversations?.length).toBeGreaterThan(0);
    expect(trajectory.conversations?.length).toBeLessThan(6);
    const sizes = endpoint.requests.map(({ body }) => JSON.stringify(body.messages).length);
    expect(Math.max(...sizes)).toBeLessThan(12_500);
    // Steps point to the messages that made them, in whatever conversation they are now.
    for (const { message, call: made } of trajectory.steps) {
      expect(trajectory.messages[message ?? 0]?.tool_calls?.[0]?.id).toBe(made.id);
    }
    expect(trajectory.steps[0]?.result.content[0]?.text).toContain("x".repeat(2_000));
  });

  it("tries again with half of the conversation when the model can read less than the budget", async () => {
    let refused = 0;
    const { trajectory } = await play(({ body, turn }) => {
      if (JSON.stringify(body.messages).length > 9_000) {
        refused++;
        return { status: 400, message: "this is longer than the maximum context length" };
      }
      return turn < 6 ? call(`command ${turn}`) : "Done.";
    });
    expect(refused).toBeGreaterThan(0);
    expect(trajectory).toMatchObject({ stop_reason: "done" });
  });

  it("is refused by an environment without a terminal, with the tools that there are", async () => {
    const tools = [{ name: "add", run: () => 1 }];
    await using other = await serve(defineEnvironment({ tasks: () => [{ id: "count" }], tools }) as EnvironmentDefinition, { port: 0 });
    const { trajectory } = await play(["Done."], {}, other.url);
    expect(trajectory.outcome).toMatchObject({
      kind: "unscored",
      cause: "agent",
      message: expect.stringContaining("the environment has: add"),
    });
  });
});

describe("a shortened conversation", () => {
  const size = (messages: readonly ChatMessage[]) => messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0);

  it("has as many messages, changes only outputs, and is within its budget", () => {
    const outputs = fc.array(fc.nat({ max: 3_000 }), { maxLength: 15 });
    fc.assert(
      fc.property(outputs, fc.integer({ min: 5_000, max: 30_000 }), (lengths, budget) => {
        const messages: ChatMessage[] = [
          { role: "user", content: "Count." },
          ...lengths.flatMap((length, at): ChatMessage[] => [
            { role: "assistant", content: `step ${at}` },
            { role: "tool", tool_call_id: `${at}`, content: "y".repeat(length) },
          ]),
        ];
        let result: readonly ChatMessage[];
        try {
          result = shortened(messages, budget);
        } catch {
          // Only if everything short is too long still.
          expect(lengths.length * 600).toBeGreaterThan(budget - 1_000);
          return;
        }
        expect(result).toHaveLength(messages.length);
        expect(size(result)).toBeLessThanOrEqual(budget);
        expect(result.filter(({ role }) => role !== "tool")).toEqual(messages.filter(({ role }) => role !== "tool"));
        if (size(messages) <= budget) expect(result).toBe(messages);
      }),
    );
  });
});

import { localModels } from "@aenv/rollout";
import { type Script, type ScriptedOpenAi, scriptedOpenAi } from "@aenv/testing";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { compileEnvironment } from "../compile/environment.ts";
import type { AgentPart } from "../definition/agent.ts";
import { tool } from "../definition/definition.ts";
import { quietHooks } from "../instances/call.ts";
import { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { agentEnvironment } from "./agent-environment.ts";
import { chatAgent } from "./chat-agent.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const tools = [
  tool({
    name: "price",
    input: z.object({ of: z.string() }),
    run: ({ of }) => (of === "gold" ? Promise.reject(new Error("not for sale")) : 5),
  }),
  tool({ name: "wish", run: () => "granted" }),
] as const;

async function start(agent: AgentPart<unknown>, script: Script, needsKey = false): Promise<{ host: Host; model: ScriptedOpenAi }> {
  const model = await scriptedOpenAi(script, { needsKey });
  const definition = agentEnvironment({ agent, tools, rewards: [{ name: "free", score: () => 1 }] });
  const environment = await compileEnvironment(definition, { name: "clerk", version: "1.0.0" });
  const models = localModels({ main: { baseUrl: model.baseUrl, name: "m" } });
  const host = new Host(environment, () => {}, null, models);
  closing.push(
    () => host.close("the test is over"),
    () => model.close(),
  );
  return { host, model };
}

async function say(instance: Instance, message: string): Promise<string> {
  const chat = instance.tools.get("chat");
  if (chat === undefined) throw new Error("it has no tool 'chat'");
  const result = await instance.callTool(chat, { message }, quietHooks());
  return `${result.isError === true ? "error: " : ""}${String(result.content[0]?.text)}`;
}

const remembers: Script = ({ messages }) => `${messages.filter(({ role }) => role === "user").length} so far`;

describe("an agent that is a chat model", () => {
  it("calls the tools of its environment until it answers, and reads failures of theirs and of its own", async () => {
    const script: Script = [
      { toolCalls: [{ name: "price", arguments: { of: "tea" } }] },
      {
        toolCalls: [
          { name: "price", arguments: { of: "gold" } },
          { name: "chat", arguments: { message: "me?" } },
          { name: "price", arguments: "{" },
        ],
      },
      "Tea is 5, gold is not for sale.",
    ];
    const { host, model } = await start(chatAgent({ model: "main", instructions: "Sell." }), script);
    expect(await say(await host.create(), "What do tea and gold cost?")).toBe("Tea is 5, gold is not for sale.");
    expect(model.requests[0]).toMatchObject({
      tools: [{ name: "price" }, { name: "wish" }],
      messages: [{ role: "system", text: "Sell." }, {}],
    });
    expect(model.requests[2]?.messages.filter(({ role }) => role === "tool").map(({ text }) => text)).toEqual([
      "5",
      "Error: not for sale",
      "Error: there is no tool 'chat'; there are price, wish",
      expect.stringContaining("Error: the arguments are no JSON"),
    ]);
  });

  it("has only the tools that it is given", async () => {
    const { host, model } = await start(chatAgent({ model: "main", tools: ["wish"], maxTokens: 7, temperature: 0 }), ["hello"]);
    await say(await host.create(), "Hi.");
    expect(model.requests[0]).toMatchObject({ tools: [{ name: "wish" }], body: { max_tokens: 7, temperature: 0 } });
  });

  it("goes on in a fork from the same conversation, apart from the other one", async () => {
    const { host, model } = await start(chatAgent({ model: "main" }), remembers);
    const parent = await host.create();
    await say(parent, "one");
    const [fork] = await host.fork(parent.id, 1);
    expect(await say(fork as Instance, "two")).toBe("2 so far");
    const seen = model.requests.at(-1)?.messages.map(({ text }) => text);
    expect(seen).toEqual(["one", "1 so far", "two"]);
    await say(parent, "another two");
    expect(model.requests.at(-1)?.messages.map(({ text }) => text)).toEqual(["one", "1 so far", "another two"]);
    expect(await parent.authorEpisode.digest(quietHooks())).not.toEqual(await (fork as Instance).authorEpisode.digest(quietHooks()));
  });

  it("fails a turn in which its model goes on calling tools, and scores it", async () => {
    const { host } = await start(chatAgent({ model: "main", maxTurns: 3 }), () => ({ toolCalls: [{ name: "wish" }] }));
    const instance = await host.create();
    expect(await say(instance, "Go on.")).toContain("error: the agent has called its model 3 times without an answer");
    expect(await instance.endpoints.reward({}, quietHooks())).toBe(1);
  });

  it("makes a model's failure that of the call and of the reward, never an answer", async () => {
    const { host } = await start(chatAgent({ model: "main" }), [{ status: 403, message: "no" }]);
    const instance = await host.create();
    await expect(say(instance, "Hi.")).rejects.toMatchObject({ code: "model.failed" });
    await expect(instance.endpoints.reward({}, quietHooks())).rejects.toMatchObject({ code: "model.failed" });
  });
});

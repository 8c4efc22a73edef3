import { localModels } from "@aenv/rollout";
import { type Script, scriptedOpenAi } from "@aenv/testing";
import { afterEach, describe, expect, it } from "vitest";
import { compileEnvironment } from "../compile/environment.ts";
import type { AgentPart } from "../definition/agent.ts";
import { quietHooks } from "../instances/call.ts";
import { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { modelFetch } from "../models/model-fetch.ts";
import { agentEnvironment } from "./agent-environment.ts";
import { customAgent } from "./custom-agent.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start(agent: AgentPart<unknown>, script: Script = ["hello"]) {
  const model = await scriptedOpenAi(script, { needsKey: false });
  const environment = await compileEnvironment(agentEnvironment({ agent }), { name: "own", version: "1.0.0" });
  const host = new Host(environment, () => {}, null, localModels({ main: { baseUrl: model.baseUrl, name: "m" } }));
  closing.push(
    () => host.close("the test is over"),
    () => model.close(),
  );
  return { host, model };
}

async function say(instance: Instance, message: string): Promise<string> {
  const chat = instance.tools.get("chat");
  if (chat === undefined) throw new Error("it has no tool 'chat'");
  return String((await instance.callTool(chat, { message }, quietHooks())).content[0]?.text);
}

const ask = (fetcher: typeof fetch, body: object) =>
  fetcher("http://model/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "any", messages: [{ role: "user", content: "Hi." }], ...body }),
  });

describe("an agent of the author's own", () => {
  it("gets the memory that its last turn has returned, also in a fork", async () => {
    const { host } = await start(
      customAgent<string[]>(({ text, memory = [] }) => ({ answer: [...memory, text].join(", "), memory: [...memory, text] })),
    );
    const parent = await host.create();
    await say(parent, "one");
    const [fork] = await host.fork(parent.id, 1);
    expect([await say(parent, "two"), await say(fork as Instance, "three")]).toEqual(["one, two", "one, three"]);
  });

  it("reaches its model through a client of chat completions, in one piece and as a stream", async () => {
    const said = async (stream: boolean) => {
      const { host, model } = await start(
        customAgent(async ({ context }) => (await ask(modelFetch(context.model("main")), { stream, max_tokens: 9 })).text()),
      );
      const text = await say(await host.create(), "Go.");
      expect(model.requests[0]).toMatchObject({ model: "m", body: { max_tokens: 9 } });
      return text;
    };
    expect(JSON.parse(await said(false))).toMatchObject({ object: "chat.completion", choices: [{ message: { content: "hello" } }] });
    const events = (await said(true)).split("\n\n").map((event) => event.slice("data: ".length));
    expect(events.at(-2)).toBe("[DONE]");
    expect(JSON.parse(events[0] ?? "")).toMatchObject({ choices: [{ delta: { content: "hello" } }] });
  });

  it("fails with its model, even if it makes an answer of the failure", async () => {
    const { host } = await start(
      customAgent(async ({ context }) => ((await ask(modelFetch(context.model("main")), {})).ok ? "fine" : "Sorry, something went wrong.")),
      [{ status: 403, message: "no" }],
    );
    await expect(say(await host.create(), "Go.")).rejects.toMatchObject({ code: "model.failed" });
  });

  it("may try its model again: a call that works makes up for one that failed", async () => {
    let calls = 0;
    const { host } = await start(
      customAgent(async ({ context }) => {
        const own = modelFetch(context.model("main"));
        await ask(own, {});
        return (await ask(own, {})).ok ? "fine" : "broken";
      }),
      () => (calls++ === 0 ? { status: 403, message: "no" } : "hello"),
    );
    expect(await say(await host.create(), "Go.")).toBe("fine");
  });
});

import { afterEach, expect, it } from "vitest";
import { agentEnvironment } from "../agent/agent-environment.ts";
import { compileEnvironment } from "../compile/environment.ts";
import type { Part } from "../definition/agent.ts";
import { quietHooks } from "../instances/call.ts";
import { Host } from "../instances/host.ts";
import { type Served, serve } from "../serve/serve.ts";
import { remoteAgent } from "./remote-agent.ts";

const open: { close(reason: string): Promise<unknown> }[] = [];
const served: Served[] = [];

afterEach(async () => {
  for (const host of open.splice(0)) await host.close("the test is over");
  for (const one of served.splice(0)) await one.close();
});

const textOf = (parts: readonly Part[]) => parts.map((part) => ("text" in part ? part.text : "")).join("");

it("an agent of this kit answers as a remote agent, with questions, artifacts and a memory", async () => {
  const counter = agentEnvironment({
    description: "Counts what it is told.",
    agent: {
      begin: () => ({ heard: [] as string[] }),
      async *turn(input, memory) {
        memory.heard.push(textOf(input));
        yield { kind: "message", parts: [{ text: "thinking" }] };
        yield { kind: "artifact", artifact: { artifactId: "list", parts: [{ data: { heard: [...memory.heard] } }] }, last: true };
        if (textOf(input) === "ask") yield { kind: "question", parts: [{ text: "What?" }] };
        else if (textOf(input) === "fail") throw new Error("it was told to fail");
        else yield { kind: "answer", parts: [{ text: `heard ${memory.heard.length}` }] };
      },
    },
  });
  const inner = await serve(counter, { port: 0, name: "counter", version: "1.0.0" });
  served.push(inner);
  const { host: address } = new URL(inner.url);
  const outer = agentEnvironment({ description: "Elsewhere.", agent: remoteAgent(inner.url, { allowPrivate: [address] }) });
  const host = new Host(await compileEnvironment(outer, { name: "outer", version: "1.0.0" }), () => {});
  open.push(host);
  const instance = await host.create();
  const send = async (args: object) => {
    const tool = instance.tools.get("send_message");
    if (tool === undefined) throw new Error("there is no tool send_message");
    return (await instance.callTool(tool, args, quietHooks())).structuredContent as Record<string, unknown>;
  };
  const asked = await send({ message: "ask" });
  expect(asked).toMatchObject({ state: "input-required", reply: "What?" });
  const answered = await send({ message: "this", task_id: asked.task_id });
  expect(answered).toMatchObject({ state: "completed", reply: "heard 2", artifacts: [{ parts: [{ data: { heard: ["ask", "this"] } }] }] });
  expect(await send({ message: "more", context_id: asked.context_id })).toMatchObject({ state: "completed", reply: "heard 3" });
  expect(await send({ message: "fail", context_id: asked.context_id })).toMatchObject({ state: "failed" });
  expect(await send({ message: "new" })).toMatchObject({ reply: "heard 1" });
});

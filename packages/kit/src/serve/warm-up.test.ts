import { expect, it } from "vitest";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { type Served, serve } from "./serve.ts";
import { warmUp } from "./warm-up.ts";

it("serves a dummy environment, calls it, and leaves nothing of it", async () => {
  const opened: Served[] = [];
  const ended: string[] = [];
  await warmUp(async (definition) => {
    const served = await serve(definition, { first: null, port: 0 });
    served.host.onEnd((id) => ended.push(id));
    opened.push(served);
    return served;
  });
  expect(ended).toEqual(["first", "second"]);
  await expect(fetch(`${opened[0]?.url}/env-instance/list`)).rejects.toThrow();
});

it("runs no code of the author before an instance is created", async () => {
  let ran = 0;
  const environment = defineEnvironment({
    setup: () => ++ran,
    tools: [{ name: "add", run: () => `${++ran}` }],
    tasks: () => [{ id: `${++ran}` }],
  });
  await using served = await serve(environment as EnvironmentDefinition, { first: null, port: 0, warmsUp: true });
  expect(served.host.size).toBe(0);
  expect(ran).toBe(0);
});

it("does not fail if the dummy environment cannot be served", async () => {
  await warmUp(() => Promise.reject(new Error("no port is free")));
});

import { PlatformError } from "@aenv/contract";
import { expect, it } from "vitest";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { serve } from "../serve/serve.ts";

const environment = defineEnvironment({
  tools: [
    { name: "bash", description: "Runs a command.", run: (_, { sandbox }) => sandbox.exec("true") },
    {
      name: "read",
      description: "Reads a file.",
      run: () => {
        throw new PlatformError("file.not_found", "no such file");
      },
    },
  ],
  rewards: [{ name: "done", sandbox: "fresh", score: () => 1 }],
}) as EnvironmentDefinition;

for (const useFastPath of [true, false]) {
  it(`a failure of the platform is an error of the protocol, never the result of a tool (${useFastPath ? "fast path" : "MCP SDK"})`, async () => {
    await using served = await serve(environment, { port: 0, useFastPath, writeLog: () => {} });
    const call = async (name: string) => {
      const response = await fetch(`${served.url}/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } }),
      });
      const text = await response.text();
      return JSON.parse(text.startsWith("{") ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? "null"));
    };
    const answer = await call("bash");
    expect(answer).toMatchObject({ id: 1, error: { code: -32_603, data: { code: "sandbox.unsupported", retryable: false } } });
    expect(answer.error.message).toContain("it is not run by a platform");
    expect(answer).not.toHaveProperty("result");
    // What the sandbox says about the agent's own request is data for the agent.
    expect(await call("read")).toMatchObject({ result: { isError: true, content: [{ text: "no such file" }] } });
  });
}

it("a reward whose fresh sandbox cannot be opened is an error, never a score", async () => {
  await using served = await serve(environment, { port: 0, writeLog: () => {} });
  const response = await fetch(`${served.url}/task/reward`, { method: "POST", body: "{}" });
  expect(await response.json()).toMatchObject({ success: false, errorInfo: { code: "sandbox.unsupported" } });
});

import { type RolloutResult, rolloutResult } from "@aenv/contract";
import { type Script, scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

vi.setConfig({ testTimeout: 30_000 });

let platform: Platform;
let echo: string;
let ada: { readonly authorization: string };

beforeAll(async () => {
  platform = await startPlatform({ flags: { access: "on" } });
  const admin = await platform.token("root", "admin");
  ada = await platform.token("ada", "trainer");
  echo = await publish(platform, projects.echo, { headers: admin });
  await platform.demand("POST", `/env/${echo.replace("@", "/")}/visibility`, { visibility: "public" }, admin);
});
afterAll(() => platform?.close());

const SOLVES: Script = [{ toolCalls: [{ name: "echo", arguments: { text: "hello" } }] }, "I said hello."];

const post = (body: unknown, headers: Readonly<Record<string, string>> = {}, query = "") =>
  fetch(`${platform.controlUrl}/rollouts${query}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...ada, ...headers },
    body: JSON.stringify(body),
  });

/** The lines of a stream, without pings. */
async function results(response: Response): Promise<RolloutResult[]> {
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line)).filter((one) => one.type !== "ping");
}

it("plays a rollout against the caller's model and streams its scored result", async () => {
  await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "sglang", weightVersion: "12" } });
  const response = await post({
    stream: true,
    rollouts: [
      {
        id: "first",
        environment: echo,
        task: { id: "greet" },
        group: { id: "g", index: 0, size: 1 },
        model: { base_url: model.baseUrl, api_key: "k", name: "m", tokens: "service" },
        metadata: { step: 3 },
      },
    ],
  });
  const [result] = await results(response);
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  expect(rolloutResult.parse(result)).toEqual(result);
  expect(result).toMatchObject({
    id: "first",
    attempt: 0,
    task: { id: "greet", split: "train", index: 0 },
    outcome: { kind: "scored", reward: 1 },
    stop_reason: "done",
    num_turns: 2,
    tool_calls: 1,
    capture: "tokens",
    metadata: { step: 3 },
    provenance: { environment: "echo@1.0.0", agent: "openai", model: "m" },
  });
  expect(result?.sequences).toHaveLength(1);
  expect(result?.sequences[0]?.weight_versions.map(({ version }) => version)).toEqual(["12", "12"]);
});

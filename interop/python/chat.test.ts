import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, pythonPath } from "@aenv/testing";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freeLoopback, ORIGINAL_PORT, variables } from "./original.ts";

describeNeeding("python", "the original's example of an agent as an environment", () => {
  const host = freeLoopback();
  let platform: Platform;

  beforeAll(async () => {
    platform = await startPlatform({ flags: { host, controlPort: 8080, dataPort: ORIGINAL_PORT } });
    expect(await publish(platform, join(import.meta.dirname, "agent-b"))).toBe("agent-b@1.0.0");
  }, 60_000);
  afterAll(() => platform?.close());

  it("prints an answer of the agent", { timeout: 120_000 }, async () => {
    const env = variables({ AENV_SYSTEM_URL: `http://${host}` });
    const { stdout } = await promisify(execFile)(pythonPath, [join(import.meta.dirname, "chat.py")], { env, timeout: 90_000 });
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual({
      is_error: false,
      content: [expect.objectContaining({ type: "text", text: "Greeting 1, you said: Hello!" })],
    });
  });
});

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, pythonRlPath } from "@aenv/testing";
import { projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";

describeNeeding("python-rl", "OpenEnv's published clients", () => {
  it("train on an environment of this platform: reset, steps, rewards, errors, and the URL validator", { timeout: 240_000 }, async () => {
    await using platform = await startPlatform({ flags: { access: "on" } });
    const headers = await platform.token("ada", "trainer", "publisher");
    const token = headers.authorization.slice("Bearer ".length);
    const [echo, probe] = [await publish(platform, projects.echo, { headers }), await publish(platform, projects.probe, { headers })];
    const base = `${platform.dataUrl}/openenv`;
    const { stdout } = await promisify(execFile)(
      pythonRlPath,
      [join(import.meta.dirname, "openenv_clients.py"), `${base}/${echo}`, `${base}/${token}/${echo}`, token, `${base}/${probe}`],
      { env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore" }, timeout: 220_000 },
    );
    const score = { total: 1, components: { said_it: 1, brief: 1 } };
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual({
      generic: {
        prompt: "Echo the word 'brevity', in as few calls as you can.",
        first: [null, false],
        echoed: ["brevity", null, false],
        wrong: "tool_not_found",
        last: [1, true, score],
        state: [3, "be-brief", 1],
        again: ["be-brief", null, false],
        refused: expect.stringContaining("VALIDATION_ERROR"),
        after: 0,
      },
      tools: {
        prompt: "Echo the word 'hello'.",
        tools: ["echo", "remember", "submit", "say"],
        echoed: "hello",
        wrong: expect.stringMatching(/^RuntimeError: Tool 'echo' failed: .*text/s),
        stepped: "more",
        listed: 4,
        steps: 3,
        submitted: { reward: 0.8, done: true },
      },
      lost: {
        crashed: expect.stringContaining("instance lost:"),
        submitted: expect.stringContaining("instance lost:"),
        counted: "1",
      },
      parallel: 8 * 1 + 8 * 0.2,
      validated: [true, "simulation", "openenv-http/1.x"],
      in_sync: [1, true],
    });
  });
});

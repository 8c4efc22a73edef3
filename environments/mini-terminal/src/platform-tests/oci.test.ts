import { fileURLToPath } from "node:url";
import { Environment } from "@aenv/sdk";
import { describeNeeding } from "@aenv/testing";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";

const project = fileURLToPath(new URL("../..", import.meta.url));

for (const runtime of ["runc", "runsc"] as const) {
  describeNeeding(runtime, `mini-terminal in an isolated sandbox with ${runtime}`, () => {
    let platform: Platform;
    let env: Environment;
    beforeAll(async () => {
      platform = await startPlatform({ flags: { engine: "oci", runtime } });
      env = await Environment.create(await publish(platform, project), { systemUrl: platform.controlUrl });
    }, 120_000);
    afterAll(async () => {
      await env?.release();
      await platform?.close();
    });

    const execute = async (one: Environment, command: string, timeout = 60) =>
      (await one.callTool("execute_command", { command, timeout })).json<{ output: [string, boolean]; returncode: number }>();

    it("keeps a session, interrupts a command, and ends one that ignores that", { timeout: 120_000 }, async () => {
      expect(await execute(env, "word=kept; cd /tmp; false")).toMatchObject({ output: ["", true], returncode: 1 });
      expect(await execute(env, "echo before; sleep 50", 1)).toMatchObject({ output: ["before\n", false], returncode: 130 });
      expect(await execute(env, "bash -c 'trap \"\" INT; sleep 50'; true", 1)).toMatchObject({ output: [expect.any(String), false] });
      expect(await execute(env, "while :; do :; done", 1)).toMatchObject({ output: ["", false], returncode: 130 });
      expect(await execute(env, "echo $word $PWD > /dev/stdout; exit 3")).toMatchObject({ output: ["kept /tmp\n", true], returncode: 3 });
    });

    it("can be solved with the commands of this machine", { timeout: 120_000 }, async () => {
      for (const task of ["repair-files", "fix-script"]) {
        await env.reset({ task, seed: 1 });
        for (const action of (await env.episode.oracle()) ?? []) if ("tool" in action) await env.callTool(action.tool, action.arguments);
        expect(await env.score(), task).toMatchObject({ reward: 1 });
      }
    });

    if (runtime === "runsc") {
      it("is forked with its shells and their background processes", { timeout: 120_000 }, async () => {
        await env.reset({ task: null });
        await execute(env, "word=kept; cd /tmp; sleep 500 & job=$!");
        const [fork] = await env.fork(1, { fidelity: "memory" });
        try {
          expect(await execute(fork as Environment, "echo $word $PWD; kill $job && echo was running")).toMatchObject({
            output: ["kept /tmp\nwas running\n", true],
          });
          expect(await execute(env, "kill $job && echo is running")).toMatchObject({ output: ["is running\n", true] });
        } finally {
          await fork?.release();
        }
      });
    }
  });
}

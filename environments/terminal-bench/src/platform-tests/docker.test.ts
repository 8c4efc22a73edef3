import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Environment } from "@aenv/sdk";
import { type DockerDaemon, describeNeeding, startDocker } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { expectOneService } from "./testing/one-service.ts";
import { startWorld, type World } from "./testing/world.ts";

const TASKS = ["hello-file", "artifact-tree", "no-network", "steps-network", "one-service", "capabilities", "shared-folder", "exact-tree"];
const SERVICES = ["compose", "two-services", "mounts"];

describeNeeding("docker", "terminal-bench in containers of the engine docker", () =>
  describeNeeding("docker-registry", "and images of a registry", () => {
    let daemon: DockerDaemon;
    let world: World;

    beforeAll(async () => {
      daemon = await startDocker();
      world = await startWorld({ engine: "docker", dockerSocket: daemon.socket, taskCapabilities: "docker" }, [...TASKS, ...SERVICES]);
    }, 300_000);
    afterAll(async () => {
      await world?.[Symbol.asyncDispose]();
      await daemon?.[Symbol.asyncDispose]();
    }, 120_000);

    it("gives the oracle 1 and an idle agent 0, twice", { timeout: 300_000 }, async () => {
      const chosen = [...TASKS.flatMap((id) => ["--task", id]), "-n", "2"];
      expect(await world.rewards("oracle", chosen)).toEqual(Object.fromEntries(TASKS.map((id) => [id, [1, 1]])));
      expect(await world.rewards("noop", chosen)).toEqual(Object.fromEntries(TASKS.map((id) => [id, [0, 0]])));
    });

    const open = (task: string) => {
      const options = { systemUrl: world.platform.controlUrl, environmentVariables: world.variables, task };
      return Environment.create(world.ref, options);
    };
    const reward = async (env: Environment) => (await env.callReward({})) as unknown as { readonly reward: number };
    const volumes = async () => {
      const { stdout } = await promisify(execFile)("docker", ["--host", `unix://${daemon.socket}`, "volume", "ls", "--quiet"]);
      return stdout.split("\n").filter((line) => line !== "");
    };
    const solve = async (env: Environment) => {
      for (const action of (await env.episode.oracle()) ?? []) if ("tool" in action) await env.callTool(action.tool, action.arguments);
    };

    it("plays a task with one service as its compose file says: program, limits, hosts, mounts and folders in memory", {
      timeout: 120_000,
    }, async () => {
      await using env = await open("one-service");
      await expectOneService(env);
    });

    it("gives services copies of the task's files and folders, which they share with the agent", { timeout: 300_000 }, async () => {
      await using env = await open("mounts");
      expect(await reward(env)).toMatchObject({ reward: 0 });
      const before = await volumes();
      await solve(env);
      const { text } = await env.callTool("bash", { command: "cat /app/word.txt" });
      expect(text).toContain("word own kept city.example shared");
      expect(await reward(env)).toMatchObject({ reward: 1 });
      expect(before).toHaveLength(3);
      await env.release();
      expect(await volumes()).toEqual([]);
    });

    it("plays a task of Terminal-Bench 1 with two services, which the tests reach too", { timeout: 300_000 }, async () => {
      await using env = await open("two-services");
      expect(await reward(env)).toMatchObject({ reward: 0 });
      await solve(env);
      expect(await reward(env)).toMatchObject({ reward: 1 });
    });

    it("plays a task whose two services share a network and a volume, which the tests reach too", { timeout: 300_000 }, async () => {
      await using env = await open("compose");
      expect(await reward(env)).toMatchObject({ reward: 0 });
      await solve(env);
      // What the agent says of a name does not reach the tests.
      await env.callTool("bash", { command: "echo 127.0.0.1 answers >> /etc/hosts" });
      expect(await reward(env)).toMatchObject({ reward: 1 });
      const { files } = await env.callFunction<{ files: Record<string, { text: string }> }>("episode_artifacts");
      expect(files["artifacts/srv/answers/requests/paths.txt"]?.text.split("\n")).toEqual(
        expect.arrayContaining(["/tests", "/answer.txt"]),
      );
    });
  }),
);

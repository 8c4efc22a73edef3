import { Environment } from "@aenv/sdk";
import { type DockerDaemon, describeNeeding, startDocker } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startWorld, type World } from "./testing/world.ts";

const TASKS = ["hello-file", "no-network", "steps-network"];

describeNeeding("docker", "terminal-bench in containers of the engine docker", () =>
  describeNeeding("docker-registry", "and images of a registry", () => {
    let daemon: DockerDaemon;
    let world: World;

    beforeAll(async () => {
      daemon = await startDocker();
      world = await startWorld({ engine: "docker", dockerSocket: daemon.socket }, [...TASKS, "compose", "two-services"]);
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
    const solve = async (env: Environment) => {
      for (const action of (await env.episode.oracle()) ?? []) if ("tool" in action) await env.callTool(action.tool, action.arguments);
    };

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

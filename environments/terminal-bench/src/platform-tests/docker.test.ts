import { type DockerDaemon, describeNeeding, startDocker } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startWorld, type World } from "./testing/world.ts";

/** Of the examples, those whose sandboxes need no network: the daemon of the tests has none. */
const TASKS = ["hello-file", "no-network"];

describeNeeding("docker", "terminal-bench in containers of the engine docker", () =>
  describeNeeding("docker-registry", "and images of a registry", () => {
    let daemon: DockerDaemon;
    let world: World;

    beforeAll(async () => {
      daemon = await startDocker();
      world = await startWorld({ engine: "docker", dockerSocket: daemon.socket }, TASKS);
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
  }),
);

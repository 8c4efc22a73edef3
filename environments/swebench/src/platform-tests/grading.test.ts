import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type DockerDaemon, describeNeeding, pushSweBase, startDocker, sweExamples, sweRows, temporaryTree } from "@aenv/testing";
import { publish } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Attack, attacks } from "./testing/attacks.ts";
import { describeEnvironment } from "./testing/environment-tests.ts";
import { expectedResults, gradePredictions } from "./testing/predictions.ts";
import { replayOne, rollOut, rollOutAttacks } from "./testing/rollouts.ts";
import { runnerAttacks, runnerTasks } from "./testing/runner-attacks.ts";
import { TASK, Victim } from "./testing/victim.ts";
import { project, startWorld, type World } from "./testing/world.ts";

const attacker = fileURLToPath(new URL("testing/attacker.ts", import.meta.url));
const TIMEOUT = { timeout: 180_000 };

function describeAttacks(world: () => World, task: string, chosen: readonly Attack[]): void {
  describe(`an agent gets no reward in ${task} for`, () => {
    it.each(chosen)("$name", TIMEOUT, async ({ script, deceives, prints = "" }) => {
      await using victim = await Victim.open(world(), { task });
      expect(await victim.run(script)).toContain(prints);
      expect(await victim.reward()).toMatchObject({ reward: 0, returncode: 1 });
      if (deceives !== null) expect(await victim.deceives(deceives), "a grader that trusts the agent's sandbox").toBe(true);
    });
  });
}

/** Tasks whose tests are not run by pytest. */
function describeRunners(world: () => World): void {
  for (const { task, runner } of runnerTasks) {
    const chosen = runnerAttacks.filter((attack) => attack.task === task);
    describeAttacks(world, task, chosen);

    it(`rewards a solution whose tests ${runner} runs, and no empty one`, TIMEOUT, async () => {
      await using victim = await Victim.open(world(), { task });
      expect(await victim.reward()).toMatchObject({ reward: 0 });
      await victim.solve();
      expect(await victim.reward()).toMatchObject({ reward: 1, stderr: null });
    });
  }
}

/** The first of the list, which are the simplest ones, or all. */
function describeRollouts(world: () => World, attacked = attacks.length): void {
  it("rewards the oracle of a rollout, and again in a replay", { timeout: 300_000 }, async () => {
    expect(await rollOut(world(), "--agent", "oracle", "--run", "solved")).toEqual([1, 1, 1, 1, 1, 1]);
    expect(await replayOne(world(), "solved", "0-0")).toMatchObject({ equal: 1, unequal: [] });
  });

  describe(`an attacker of a rollout gets no reward in ${TASK} for`, () => {
    let rewards: Readonly<Record<string, unknown>>;
    beforeAll(async () => {
      const attack = ["--agent", "module", "--agent-file", attacker, "--task", TASK, "-n", String(attacked)];
      rewards = await rollOutAttacks(world(), ...attack);
    }, 600_000);

    it.each(attacks.slice(0, attacked))("$name", ({ name }) => {
      expect(rewards[name]).toBe(0);
    });
  });
}

describeNeeding("docker-registry", "the grader of swe-bench, with images of a registry", () =>
  describeNeeding("mmdebstrap", "from Debian packages", () => {
    describeNeeding("runc", "in sandboxes of the engine oci", () => {
      let world: World;
      beforeAll(async () => {
        // The original's SDK knows only these ports; all of 127/8 is loopback.
        const host = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(2, 255)}`;
        world = await startWorld({ engine: "oci", host, controlPort: 8080, dataPort: 8081 });
      }, 600_000);
      afterAll(() => world?.[Symbol.asyncDispose](), 60_000);

      it.each(Object.keys(expectedResults))("gives the expected results to predictions: %s", TIMEOUT, async (kind) => {
        expect(await gradePredictions(world, kind)).toEqual(expectedResults[kind]);
      });

      describeEnvironment(() => world);
      describeAttacks(() => world, TASK, attacks);
      describeRunners(() => world);
      describeRollouts(() => world, 4);

      it("gives nothing for filling the disk, and a solution counts on a full disk", TIMEOUT, async () => {
        const taskSandboxes = { images: ["*"], atOnce: 3, memory: "512Mi", disk: "48Mi", egress: "none" };
        const ref = await publish(world.platform, project, { isolation: "shared", version: "1.0.1", deployConfig: { taskSandboxes } });
        await using victim = await Victim.open(world, { ref });
        expect(await victim.run("cp /opt/cheat/cheat.py conftest.py; cat /dev/zero > /fill; df / | tail -1")).toContain("100%");
        expect(await victim.reward()).toMatchObject({ reward: 0 });
        await victim.run("rm /fill");
        await victim.solve();
        expect(await victim.run("cat /dev/zero > /fill; df / | tail -1")).toContain("100%");
        expect(await victim.reward()).toMatchObject({ reward: 1 });
      });

      it("rewards a solution, in whatever state the agent's sandbox is", TIMEOUT, async () => {
        await using victim = await Victim.open(world);
        await victim.solve();
        const isChosen = (...words: string[]) => attacks.filter(({ name }) => words.some((word) => name.includes(word)));
        for (const { script } of [...isChosen("hooks", "again and again", "history"), ...isChosen("ld.so.preload")])
          await victim.run(script);
        const answer = await victim.reward();
        expect(answer).toMatchObject({ reward: 1, stderr: null });
        expect(answer.left_out).toContain("conftest.py: a file that decides how the tests are run");
      });
    });

    describeNeeding("docker", "in sandboxes of the engine docker", () => {
      let daemon: DockerDaemon;
      let world: World;
      beforeAll(async () => {
        daemon = await startDocker();
        world = await startWorld({ engine: "docker", dockerSocket: daemon.socket });
      }, 600_000);
      afterAll(async () => {
        await world?.[Symbol.asyncDispose]();
        await daemon?.[Symbol.asyncDispose]();
      }, 120_000);

      it.each(["gold", "malformed"])("gives the expected results to predictions: %s", TIMEOUT, async (kind) => {
        expect(await gradePredictions(world, kind)).toEqual(expectedResults[kind]);
      });

      it("can use images that Docker builds from the Dockerfiles, without a network", TIMEOUT, async () => {
        const id = "aenv__ledger-4";
        using settings = temporaryTree({ "config.json": readFileSync(world.registry.authFile, "utf8") });
        // The builder of Docker 20, which needs no plugin.
        const env = { ...process.env, DOCKER_HOST: `unix://${daemon.socket}`, DOCKER_CONFIG: settings.path, DOCKER_BUILDKIT: "0" };
        const docker = async (...args: readonly string[]) => (await promisify(execFile)("docker", args, { env })).stdout.trim();
        const base = await pushSweBase(world.registry);
        await docker("pull", "--quiet", base);
        const options = ["--network", "none", "--build-arg", `BASE=${base}`, "--tag", "built"];
        await docker("build", "--quiet", ...options, join(sweExamples, "tasks", id));
        const [row] = sweRows().filter(({ instance_id }) => instance_id === id);
        expect(await docker("run", "--rm", "--network", "none", "built", "git", "rev-parse", "HEAD")).toBe(row?.base_commit);
        expect(await docker("run", "--rm", "--network", "none", "built", "pytest", "-q")).toContain("14 passed");
      });

      describeRunners(() => world);
      describeRollouts(() => world);

      // Many storages of Docker cannot limit the disk, so the attack is bounded here. The agent's memory disk is full.
      it("gives nothing for filling the disk, and goes on", TIMEOUT, async () => {
        await using victim = await Victim.open(world);
        const fill = "cat /dev/zero > /dev/shm/fill; df /dev/shm | tail -1; head -c 300000000 /dev/zero > /fill; ls -s /fill";
        expect(await victim.run(`cp /opt/cheat/cheat.py conftest.py; ${fill}`)).toMatch(/100%.*29\d{4} \/fill/s);
        expect(await victim.reward()).toMatchObject({ reward: 0 });
        await victim.solve();
        expect(await victim.reward()).toMatchObject({ reward: 1 });
      });
    });
  }),
);

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Random } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { check } from "./crash/check.ts";
import { Load } from "./crash/load.ts";
import { killRecovering, playSeeds, seedsOr } from "./crash/runs.ts";
import { lookAt } from "./crash/sandboxes.ts";
import { type ServerProcess, startServerProcess } from "./crash/server-process.ts";
import { World } from "./crash/world.ts";
import { projects, publish } from "./platform.ts";
import { removeHome } from "./processes.ts";

const SEEDS = seedsOr(10);
const FLAGS = { poolMin: 0, poolMax: 1, round: "200ms", startTimeout: "10s", maxHosts: 2 };

describe("a server that is killed at any moment", () => {
  const home = mkdtempSync(join(tmpdir(), "aenv-crash-"));
  const world = new World();
  let server: ServerProcess;
  let refs: readonly [string, string];

  beforeAll(async () => {
    server = await startServerProcess(home, { flags: FLAGS }).ready;
    refs = [await publish(server, projects.probe), await publish(server, projects.probe, { isolation: "shared" })];
  });

  afterAll(async () => {
    await server?.kill();
    await removeHome(home);
  });

  /**
   * One run: load, and a kill at a critical step or at any other time, sometimes again while the server recovers. Then all responses
   * must still be true; sometimes also after more load without a kill.
   */
  async function live(seed: number): Promise<void> {
    const random = new Random(seed);
    if (!random.isOneIn(3)) await server.dieAfter(1 + random.below(200));
    await new Load([server], world, random, refs).run(1 + random.below(60), () => kill(random));
    await killRecovering(home, FLAGS, world, random);
    server = await startServerProcess(home, { flags: FLAGS }).ready;
    await check([server], world, home);
    if (!random.isOneIn(6)) return;
    await new Load([server], world, random, refs).run(30, async () => {});
    await check([server], world, home);
  }

  async function kill(random: Random): Promise<void> {
    const isAsked = random.isOneIn(10);
    if (isAsked) server.askToStop();
    await pause(random.next() * (isAsked ? 200 : 20));
    await server.kill();
    world.counts.kills++;
  }

  it(`loses no acknowledged change and leaks nothing over ${SEEDS} runs`, () => playSeeds(SEEDS, world, live), 60_000 + SEEDS * 20_000);

  it("leaves nothing when it is stopped", async () => {
    await server.stop();
    expect(await lookAt(home)).toEqual({ sandboxes: [], unfinished: [], processes: [], slots: new Map() });
  });
});

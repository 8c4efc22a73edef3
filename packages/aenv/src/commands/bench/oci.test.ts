import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, type Tree, temporaryTree, writeSmallImage } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { aenv } from "../../testing/cli.ts";
import { RunningCommand } from "../../testing/command.ts";

const project = new URL("../../bench/fixtures/rooms", import.meta.url).pathname;
const IMAGE = "127.0.0.1:1/rooms:1";
const TASKS = 6;

describeNeeding("runc", "a benchmark whose tasks run in images, with the engine oci", () => {
  let tree: Tree;
  let env: Record<string, string>;
  beforeAll(() => {
    tree = temporaryTree();
    // Room for two sandboxes.
    env = { AENV_HOME: join(tree.path, "home"), AENV_TASK_MEMORY_TOTAL_MB: "150" };
  });
  afterAll(() => tree[Symbol.dispose]());

  const bench = (...argv: string[]) => aenv(["bench", ...argv], { cwd: tree.path, env });
  const line = [project, "--engine", "oci", "-c", String(TASKS), "--run", "rooms"];
  const homes = () => (existsSync(join(tree.path, "home/embedded")) ? readdirSync(join(tree.path, "home/embedded")) : []);

  it("starts nothing without its images, and names them", { timeout: 120_000 }, async () => {
    const { code, stderr } = await bench("run", ...line);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/1 images of rooms are missing, so nothing was started[\s\S]*rooms:1: /)]);
    expect([existsSync(join(tree.path, "runs")), homes()]).toEqual([false, []]);
    expect((await bench("images", project)).stderr).toContain("1 of 1 image is missing");
  });

  it("takes an image from an archive", { timeout: 120_000 }, async () => {
    const archive = await writeSmallImage(tree.path, { files: { "task.txt": "a room\n" } });
    const { code, stdout } = await bench("images", project, "--load", `${IMAGE}=${archive}`);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/rooms:1 .* 6 .* present/)]);
  });

  it("plays more tasks at once than there is memory for, and goes on after it was killed", { timeout: 300_000 }, async () => {
    {
      await using killed = new RunningCommand(["bench", "run", ...line], { cwd: tree.path, env });
      const trajectories = join(tree.path, "runs/rooms/trajectories.jsonl");
      const played = () => killed.child.exitCode !== null || (statSync(trajectories, { throwIfNoEntry: false })?.size ?? 0) > 0;
      await expect.poll(played, { timeout: 120_000, interval: 20 }).toBe(true);
      expect([await killed.stop("SIGKILL").then(({ stdout }) => stdout), homes().length]).toEqual(["", 1]);
    }
    const { code, stdout, stderr } = await bench("run", ...line, "--json");
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ episodes: TASKS, scored: TASKS, reward: { mean: 1 }, unscored: {} });
    expect(JSON.parse(stdout).resumed).toBeGreaterThan(0);
    expect(homes()).toEqual([]);
  });
});

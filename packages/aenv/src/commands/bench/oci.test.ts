import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  describeNeeding,
  startImageRegistry,
  type Tree,
  temporaryTree,
  writeDockerArchive,
  writeSmallImage,
  writeSmallRoot,
} from "@aenv/testing";
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

  describeNeeding("docker-registry", "from a registry", () => {
    it("pulls them before anything starts, and unpacks a layer that they share once", { timeout: 180_000 }, async () => {
      using own = temporaryTree({ "1.txt": "one", "2.txt": "two" });
      const images: string[] = [];
      const run = [...line.with(-1, "pulled"), "--task", "a", "--task", "b"];
      {
        await using registry = await startImageRegistry();
        await writeSmallRoot(own.path, "root.tar", { "task.txt": "a room\n" });
        for (const tag of ["1", "2"]) {
          execFileSync("tar", ["--create", `--file=${tag}.tar`, `${tag}.txt`], { cwd: own.path });
          await writeDockerArchive(own.path, [
            { name: `rooms:${tag}`, layers: ["root.tar", `${tag}.tar`], config: { Env: ["PATH=/usr/bin:/bin"] } },
          ]);
          images.push(await registry.push(join(own.path, "image.tar"), `rooms:${tag}`));
        }
        Object.assign(env, {
          AENV_HOME: join(own.path, "home"),
          AENV_REGISTRY_AUTH: registry.authFile,
          AENV_INSECURE_REGISTRIES: registry.host,
        });
        const { code, stderr } = await bench(
          "run",
          ...run,
          "--task",
          "c",
          "--var",
          `IMAGES=${[...images, `${registry.host}/rooms:3`].join(",")}`,
        );
        expect([code, stderr]).toEqual([1, expect.stringMatching(/1 images of rooms are missing, so nothing was started[\s\S]*rooms:3: /)]);
      }
      const layers = join(own.path, "home/images/layers");
      const layersWith = (file: string) => readdirSync(layers).filter((name) => existsSync(join(layers, name, "diff", file))).length;
      expect(["task.txt", "1.txt", "2.txt"].map(layersWith)).toEqual([1, 1, 1]);
      // Nothing can be pulled any more.
      const { code, stdout, stderr } = await bench("run", ...run, "--var", `IMAGES=${images.join(",")}`, "--json");
      expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
      expect(JSON.parse(stdout)).toMatchObject({ episodes: 2, reward: { mean: 1 } });
    });
  });
});

import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Environment } from "@aenv/sdk";
import { describeNeeding, pythonPath, sweExamples } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runnerTasks } from "./runner-attacks.ts";
import type { World } from "./world.ts";

interface Answer {
  readonly reward: number;
  readonly resolution: string | null;
  readonly returncode: number;
  readonly stdout: string;
  readonly stderr: string | null;
  readonly left_out: readonly string[];
}

/** What the environment does with the work of an agent, and with answers, in a world that has started. */
export function describeEnvironment(world: () => World): void {
  describe("the environment", () => {
    let env: Environment;
    const open = (options: object = {}) => Environment.create(world().ref, { systemUrl: world().platform.controlUrl, ...options });
    beforeAll(async () => {
      env = await open();
    }, 60_000);
    afterAll(() => env?.release());

    const bash = async (one: Environment, command: string) => String((await one.callTool("bash", { command })).text);
    const reward = async (one: Environment, args: Record<string, unknown> = {}) => (await one.callReward(args)) as Answer;

    it("lists its tasks without a sandbox", async () => {
      const items = await env.tasks();
      const ids = ["aenv__cronline-3", "aenv__ledger-4", "aenv__routes-3", ...runnerTasks.slice(1).map(({ task }) => task)];
      expect(items.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
      expect(items).toHaveLength(ids.length);
      expect(items[0]?.instruction).toContain("/testbed");
      await expect(bash(env, "true")).rejects.toThrow("has no open sandbox");
    });

    it("resolves the tasks that the oracle plays, and keeps the files of the reference", { timeout: 180_000 }, async () => {
      for (const task of ["aenv__ledger-4", "aenv__routes-3"]) {
        await env.reset({ task });
        for (const action of (await env.episode.oracle()) ?? []) if ("tool" in action) await env.callTool(action.tool, action.arguments);
        expect(await reward(env), task).toMatchObject({ reward: 1, returncode: 0, stderr: null, left_out: [] });
      }
      const { files } = await env.callFunction<{ files: Record<string, { text: string }> }>("episode_artifacts");
      expect(Object.keys(files)).toEqual(["report.json", "patch.diff", "eval.sh", "run_instance.log", "test_output.txt"]);
      expect(JSON.parse(files["report.json"]?.text ?? "")["aenv__routes-3"].resolved).toBe(true);
      expect(files["patch.diff"]?.text).toMatch(/^diff --git a\/src\/pattern.js b\/src\/pattern.js\n/);
    });

    it("takes all that the agent did to the repository, and nothing from its programs", { timeout: 180_000 }, async () => {
      await env.reset({ task: "aenv__ledger-4" });
      await bash(
        env,
        "printf 'a\\0b' > data.bin; printf 'caf\\351\\n' > 'latin 1.txt'; ln -s /etc/passwd out; ln -s ledger in; mkfifo pipe",
      );
      await bash(
        env,
        "echo x > 'new \"file\"'; chmod +x README.md; rm ledger/__init__.py; mkdir ledger/__init__.py; touch ledger/__init__.py/a",
      );
      await bash(
        env,
        "echo '*' > .git/info/exclude; git add -A; git commit -qm all; rm -rf .git; echo cheat > conftest.py; mkdir -p sub/.git",
      );
      await bash(env, "cp /bin/false /usr/bin/git; cp /bin/true /bin/sh");
      const answer = await reward(env);
      expect(answer.left_out).toEqual([
        "conftest.py: a file that decides how the tests are run",
        "out: a link out of the repository, to '/etc/passwd'",
      ]);
      const { files } = await env.callFunction<{ files: Record<string, { text: string }> }>("episode_artifacts");
      const patch = files["patch.diff"]?.text ?? "";
      expect([...patch.matchAll(/^diff --git (.*)$/gm)].map(([, names]) => names)).toEqual([
        "a/README.md b/README.md",
        "a/data.bin b/data.bin",
        "a/in b/in",
        "a/ledger/__init__.py b/ledger/__init__.py",
        "a/ledger/__init__.py/a b/ledger/__init__.py/a",
        '"a/new \\"file\\"" "b/new \\"file\\""',
        "a/latin 1.txt b/latin 1.txt",
      ]);
      expect(files["run_instance.log"]?.text).toContain(">>>>> Applied Patch:");
    });

    it("gives nothing for an empty patch, and runs no tests", async () => {
      await env.reset({ task: "aenv__ledger-4" });
      await bash(env, "touch ledger/amounts.py; echo x > tests/__pycache__");
      await bash(env, "rm -f tests/__pycache__");
      expect(await reward(env)).toMatchObject({ reward: 0, returncode: 1, stdout: "", stderr: "the patch is empty" });
    });

    it("grades answers with aenv bench, writes the reference's report, and grades them anew", { timeout: 240_000 }, async () => {
      const { folder, variables } = world();
      const chosen = { "aenv__cronline-3": "gold", "aenv__ledger-4": "partial", "aenv__routes-3": "malformed" };
      const lines = Object.entries(chosen).map(([id, kind]) => {
        const all = readFileSync(join(sweExamples, "predictions", `${kind}.jsonl`), "utf8")
          .trim()
          .split("\n");
        const { model_patch } = all.map((line) => JSON.parse(line)).find(({ instance_id }) => instance_id === id);
        return JSON.stringify({ instance_id: id, model_name_or_path: "mixed", model_patch });
      });
      writeFileSync(join(folder, "mixed.jsonl"), `${lines.join("\n")}\n`);
      const grade = async (...args: string[]) => {
        const { code, stdout, stderr } = await aenv(["bench", "grade", "swe-bench", "--from", "rows.jsonl", "--json", ...args], {
          cwd: folder,
          env: { ...process.env, ...variables },
        });
        expect([code, stderr], stderr).toEqual([0, expect.any(String)]);
        return JSON.parse(stdout);
      };
      await grade("--predictions", "mixed.jsonl", "--engine", "oci", "-c", "3", "--run", "mixed");
      const report = () => JSON.parse(readFileSync(join(folder, "runs/mixed/results/mixed.mixed.json"), "utf8"));
      const expected = { resolved_ids: ["aenv__cronline-3"], unresolved_ids: ["aenv__ledger-4"], error_ids: ["aenv__routes-3"] };
      expect(report()).toMatchObject(expected);
      expect((await grade("--regrade", "mixed")).results).toMatchObject({ resolved: "1", unresolved: "1", errors: "1" });
      expect(report()).toMatchObject(expected);
    });

    it("is created with a datasource, and says what is wrong with a request", { timeout: 120_000 }, async () => {
      await using one = await open({ datasource: "swebench/aenv__ledger-4" });
      expect(await bash(one, "git log --format=%s | head -1; pwd")).toContain("/testbed");
      const gold = JSON.parse(readFileSync(join(sweExamples, "predictions/gold.jsonl"), "utf8").split("\n")[0] ?? "");
      expect(gold.instance_id).toBe("aenv__ledger-4");
      // As the original's example sends it.
      expect(await reward(one, { instance: gold.instance_id, model_patch: [gold.model_patch], timeout: 60 })).toMatchObject({
        returncode: 0,
      });
      await expect(reward(one, { instance: "aenv__cronline-3" })).rejects.toThrow("the episode plays aenv__ledger-4");
      await expect(reward(one, { instance: "x__y-1", model_patch: "x" })).rejects.toThrow("there is no instance 'x__y-1'");
      await expect(open({ datasource: "x__y-1" })).rejects.toThrow("the datasource 'x__y-1'");
    });

    describeNeeding("python", "published as the original's swebench", () => {
      it("works with its example, in its Python SDK", { timeout: 240_000 }, async () => {
        const { platform, folder } = world();
        const push = ["push", "--work-dir", "swe-bench", "--name", "swebench", "--system-url", platform.controlUrl, "--json"];
        expect(await aenv(push, { cwd: folder })).toMatchObject({ code: 0 });
        const example = fileURLToPath(new URL("../../../../../interop/python/swebench.py", import.meta.url));
        const patch = join(sweExamples, "tasks/aenv__ledger-4/gold.patch");
        const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", AENV_SYSTEM_URL: platform.controlUrl.replace(/:\d+$/, "") };
        const { stdout } = await promisify(execFile)(pythonPath, [example, "aenv__ledger-4", patch], { env, timeout: 200_000 });
        const answer = JSON.parse(stdout);
        expect(answer).toMatchObject({ returncode: 0, stderr: null });
        expect(JSON.parse(answer.stdout)["aenv__ledger-4"]).toMatchObject({ patch_successfully_applied: true, resolved: true });
      });
    });

    it("gives nothing for tests that take too long", { timeout: 120_000 }, async () => {
      await env.reset({ task: "aenv__ledger-4" });
      await bash(env, "echo 'import time; time.sleep(600)' >> ledger/amounts.py");
      expect(await reward(env, { timeout: 3 })).toMatchObject({ reward: 0, stderr: "run err:Test timed out after 3 seconds." });
    });
  });
}

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { jobResultOf, readJob, taskChecksum } from "@aenv/terminal-bench/core";
import { writeBase } from "@aenv/terminal-bench/example-world";
import {
  composePluginPath,
  type DockerDaemon,
  describeNeeding,
  harborPythonPath,
  startDocker,
  type Tree,
  temporaryTree,
} from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";

const run = promisify(execFile);
const examples = join(import.meta.dirname, "../../environments/terminal-bench/examples/harbor");
// Not `no-network`: Harbor 0.25 enforces that in Docker with a sidecar, whose image it builds from packages of the network.
const TASKS = ["artifacts", "healthcheck", "reward-json", "separate-verifier", "fresh-verifier", "steps-mean"];

describeNeeding("harbor", "Harbor itself", () =>
  describeNeeding("docker", "with containers of Docker", () =>
    describeNeeding("docker-compose", "and Compose", () => {
      let tree: Tree;
      let daemon: DockerDaemon;
      let env: NodeJS.ProcessEnv;
      beforeAll(async () => {
        tree = temporaryTree();
        daemon = await startDocker();
        mkdirSync(join(tree.path, "docker/cli-plugins"), { recursive: true });
        symlinkSync(composePluginPath, join(tree.path, "docker/cli-plugins/docker-compose"));
        env = {
          ...process.env,
          DOCKER_HOST: `unix://${daemon.socket}`,
          DOCKER_CONFIG: join(tree.path, "docker"),
          // The builder that needs no other plugin.
          DOCKER_BUILDKIT: "0",
          HOME: tree.path,
          // Otherwise it asks the network for prices of models.
          LITELLM_LOCAL_MODEL_COST_MAP: "True",
          PYTHONDONTWRITEBYTECODE: "1",
        };
        const base = join(tree.path, "base");
        writeBase(base);
        for (const folder of ["etc", "tmp", "root"]) mkdirSync(join(base, folder));
        writeFileSync(join(base, "etc/passwd"), "root:x:0:0::/root:/bin/bash\n");
        writeFileSync(join(base, "etc/group"), "root:x:0:\n");
        await run("sh", ["-c", 'tar -C "$1" -c . | docker import - aenv-debian', "sh", base], { env });
      }, 120_000);
      afterAll(async () => {
        await daemon?.[Symbol.asyncDispose]();
        tree?.[Symbol.dispose]();
      }, 120_000);

      it("gives its oracle 1 and its idle agent 0 on our tasks, and our reader sees so", { timeout: 300_000 }, async () => {
        const job = join(tree.path, "jobs/ours");
        const script = join(import.meta.dirname, "run_job.py");
        await run(harborPythonPath, [script, examples, job, ...TASKS], { env });
        const { result, trials, unfinished } = await readJob(job);
        expect(unfinished).toEqual([]);
        const seen = trials.map(({ result: { task_name, agent_info, verifier_result, exception_info } }) => [
          `${task_name} ${agent_info.name}`,
          exception_info?.exception_message ?? verifier_result?.rewards?.reward,
        ]);
        const rewards = { oracle: 1, nop: 0 };
        const expected = TASKS.flatMap((name) =>
          Object.entries(rewards).map(([agent, reward]) => [`aenv-examples/${name} ${agent}`, reward]),
        );
        expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(expected));
        for (const { folder, result: trial } of trials) {
          const name = trial.task_name.split("/")[1] ?? "";
          expect(trial.task_checksum, name).toBe(await taskChecksum(join(examples, name)));
          expect(existsSync(join(folder, "config.json")), name).toBe(true);
        }

        if (result === null) throw new Error("the job has no result");
        const { id, started_at: startedAt, updated_at: updatedAt, finished_at: finishedAt, n_total_trials: totalTrials, stats } = result;
        const progress = { id, startedAt, updatedAt, finishedAt, totalTrials, runningTrials: 0, cancelledTrials: 0, retries: 0 };
        const ours = jobResultOf(
          trials.map((trial) => trial.result),
          progress,
        );
        const numbers = ({ evals }: typeof stats) =>
          Object.entries(evals)
            .map(([key, { metrics, n_trials, n_errors, pass_at_k }]) => ({ key, metrics, n_trials, n_errors, pass_at_k }))
            .sort((a, b) => (a.key < b.key ? -1 : 1));
        expect(numbers(ours.stats)).toEqual(numbers(stats));
      });
    }),
  ),
);

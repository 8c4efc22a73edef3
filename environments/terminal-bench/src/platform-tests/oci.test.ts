import { fileURLToPath } from "node:url";
import { readTrajectories } from "@aenv/rollout";
import { describeNeeding, type ImageRegistry, startImageRegistry, type Tree, temporaryTree } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ExampleWorld, openExamples } from "./testing/examples.ts";

const project = fileURLToPath(new URL("../..", import.meta.url));

describeNeeding("runc", "terminal-bench in sandboxes of the engine oci", () =>
  describeNeeding("docker-registry", "and images of a registry", () => {
    let registry: ImageRegistry;
    let examples: ExampleWorld;
    let tree: Tree;
    let platform: Platform;
    let ref: string;

    beforeAll(async () => {
      registry = await startImageRegistry();
      examples = await openExamples(registry);
      tree = temporaryTree();
      platform = await startPlatform({
        flags: { engine: "oci", registryAuth: registry.authFile, insecureRegistries: [registry.host], dataDir: examples.dataDir },
      });
      ref = await publish(platform, project);
    }, 300_000);
    afterAll(async () => {
      await platform?.close();
      examples?.[Symbol.dispose]();
      tree?.[Symbol.dispose]();
      await registry?.[Symbol.asyncDispose]();
    }, 120_000);

    async function rewards(agent: string, more: readonly string[] = []): Promise<Record<string, unknown[]>> {
      const variables = ["--var", `TERMINAL_BENCH_IMAGES=${examples.prefix}`];
      const run = ["--agent", agent, "-c", "4", "--retries", "0", "--max-unscored", "1", "--json", ...more];
      const { code, stdout, stderr } = await aenv(["rollout", ref, "--system-url", platform.controlUrl, ...variables, ...run], {
        cwd: tree.path,
      });
      if (code !== 0) throw new Error(stderr);
      const found: Record<string, unknown[]> = {};
      for await (const { task, outcome } of readTrajectories(`${JSON.parse(stdout).folder}/trajectories.jsonl`)) {
        const id = String(task.id);
        found[id] = [...(found[id] ?? []), outcome.kind === "scored" ? outcome.reward : outcome];
      }
      return found;
    }

    it("scores hello-file", async () => {
      console.log(await rewards("oracle", ["-n", "1"]));
    }, 600_000);
  }),
);

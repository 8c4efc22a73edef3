import { fileURLToPath } from "node:url";
import { readTrajectories } from "@aenv/rollout";
import { type ImageRegistry, startImageRegistry, temporaryTree } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { type ExampleWorld, openExamples } from "./examples.ts";

export { writeBase } from "./base-layer.ts";

const project = fileURLToPath(new URL("../../..", import.meta.url));

/** A server with the environment and the examples, and a registry with their images. */
export interface World extends AsyncDisposable {
  readonly platform: Platform;
  readonly registry: ImageRegistry;
  readonly examples: ExampleWorld;
  readonly ref: string;
  readonly folder: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The rewards of a rollout by task; the whole outcome of episodes without a score. */
  rewards(agent: string, options: readonly string[]): Promise<Record<string, unknown[]>>;
}

/** Only with the images of some tasks, if they are named. */
export async function startWorld(flags: Readonly<Record<string, unknown>>, tasks?: readonly string[]): Promise<World> {
  const stack = new AsyncDisposableStack();
  try {
    const registry = stack.use(await startImageRegistry());
    const tree = stack.use(temporaryTree());
    const examples = stack.use(await openExamples(registry, tasks));
    const access = { registryAuth: registry.authFile, insecureRegistries: [registry.host] };
    const platform = stack.use(await startPlatform({ flags: { ...access, dataDir: examples.dataDir, ...flags } }));
    const ref = await publish(platform, project);
    const variables = { TERMINAL_BENCH_IMAGES: examples.prefix };
    const rewards: World["rewards"] = async (agent, options) => {
      const given = Object.entries(variables).flatMap(([name, value]) => ["--var", `${name}=${value}`]);
      const run = ["--agent", agent, "-c", "4", "--max-unscored", "1", "--json", ...options];
      const { code, stdout, stderr } = await aenv(["rollout", ref, "--system-url", platform.controlUrl, ...given, ...run], {
        cwd: tree.path,
      });
      if (code !== 0) throw new Error(stderr);
      const found: Record<string, unknown[]> = {};
      for await (const { task, outcome } of readTrajectories(`${JSON.parse(stdout).folder}/trajectories.jsonl`)) {
        const id = String(task.id);
        found[id] = [...(found[id] ?? []), outcome.kind === "scored" ? outcome.reward : outcome];
      }
      return found;
    };
    const owned = stack.move();
    return { platform, registry, examples, ref, folder: tree.path, variables, rewards, [Symbol.asyncDispose]: () => owned.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

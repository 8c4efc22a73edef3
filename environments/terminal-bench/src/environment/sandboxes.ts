import type { TaskSandbox, TaskSandboxes } from "@aenv/kit";
import { applyChanges } from "../changes/apply.ts";
import { agentImage, verifierImage } from "../images/images.ts";
import type { NetworkPolicy } from "../network/policy.ts";
import { entrypointOf, startEntrypoint } from "../platform/entrypoint.ts";
import { PlatformSandbox } from "../platform/task-sandbox.ts";
import type { Task } from "../task/model.ts";
import type { Sandboxes } from "../trial/phases.ts";
import type { MainOptions } from "../trial/start.ts";
import { openOptions } from "./open-options.ts";

export interface SandboxOptions {
  readonly task: Task;
  readonly main: MainOptions;
  readonly isStrict: boolean;
  readonly imagePrefix: string;
  /** Of the agent's sandbox, as long as it lives. */
  readonly policy: NetworkPolicy;
  /** Ends the programs that the environment keeps for the agent, such as a terminal. */
  readonly endProcesses: () => Promise<void>;
  /** Called with the changes of the agent that the verifier's sandbox did not get. */
  readonly onLeftOut: (paths: readonly string[]) => void;
}

/** The sandboxes of a task on the platform, for one call. */
export function platformSandboxes(options: SandboxOptions, sandboxes: TaskSandboxes): Sandboxes {
  const { task, main, imagePrefix, isStrict } = options;
  const open = async (policy: NetworkPolicy, name: string): Promise<TaskSandbox> => {
    const { image } = await agentImage(task, imagePrefix);
    const sandbox = await sandboxes.open({ name, image, env: main.env, ...openOptions(task.config.environment, policy) });
    await startEntrypoint(sandbox, await entrypointOf(task.definition), main.cwd);
    return sandbox;
  };
  const startCopy: Sandboxes["startCopy"] = async (agent, policy, prepare) => {
    const fresh = await open(policy, "verifier");
    const sandbox = new PlatformSandbox(fresh, policy);
    try {
      await prepare(sandbox);
      const taken = task.config.artifacts.map((one) => (typeof one === "string" ? one : one.source).replace(/(?<=.)\/+$/, ""));
      options.onLeftOut(await applyChanges((agent as PlatformSandbox).platform, fresh, taken));
      return sandbox;
    } catch (error) {
      await sandbox.stop();
      throw error;
    }
  };
  return {
    startAgent: async () => new PlatformSandbox(await open(options.policy, "task"), options.policy, options.endProcesses),
    startVerifier: async (config, contextFolder, policy) => {
      const { image } = await verifierImage(task, config, contextFolder, imagePrefix);
      return new PlatformSandbox(await sandboxes.open({ name: "verifier", image, ...openOptions(config, policy) }), policy);
    },
    ...(isStrict && { startCopy }),
  };
}

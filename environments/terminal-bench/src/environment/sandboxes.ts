import type { EpisodeContext, OpenSandboxOptions, TaskSandbox, TaskSandboxes } from "@aenv/kit";
import { applyChanges } from "../changes/apply.ts";
import { agentImage } from "../compose/images.ts";
import { type ComposeTask, composeOf, hasServices, isComposeTask } from "../compose/of-task.ts";
import type { ComposePlan } from "../compose/plan.ts";
import { programOf, startProgram } from "../platform/entrypoint.ts";
import { PlatformSandbox } from "../platform/task-sandbox.ts";
import type { Task } from "../task/model.ts";
import type { HostVariables } from "../templates/template.ts";
import { TrialFailure } from "../trial/failure.ts";
import type { Sandboxes } from "../trial/phases.ts";
import type { NetworkPolicy } from "../trial/plan/network.ts";
import { type MainOptions, mainOptions } from "../trial/start.ts";
import { withCapabilities } from "./capabilities.ts";
import { openOptions } from "./open-options.ts";
import { openSandbox } from "./open-sandbox.ts";
import { createFolders, findService, keptFolders, ownOptions, policyOf, sharesOf, startServices } from "./services.ts";
import type { Settings } from "./settings.ts";

const TESTS_DISK_MB = 256;

export interface SandboxOptions {
  readonly task: Task;
  readonly main: MainOptions;
  /** What templates of the task may read. */
  readonly host: HostVariables;
  readonly isStrict: boolean;
  readonly capabilities: Settings["capabilities"];
  readonly imagePrefix: string;
  /** Ends the programs that the environment keeps for the agent, such as a terminal. */
  readonly endProcesses: () => Promise<void>;
  /** Called with the changes of the agent that the verifier's sandbox did not get. */
  readonly onLeftOut: (paths: readonly string[]) => void;
}

type OpenerOptions = Pick<SandboxOptions, "task" | "main" | "imagePrefix" | "host">;

/** How the sandboxes of a task are opened, or those of its verifier's environment. */
function openerOf({ task, main, imagePrefix, host }: OpenerOptions, sandboxes: TaskSandboxes) {
  const compose = isComposeTask(task) ? { task, plan: composeOf(task, host), isAlone: !hasServices(task) } : null;
  const plan = compose?.plan ?? null;
  const open = async (policy: NetworkPolicy, name: "task" | "verifier"): Promise<TaskSandbox> => {
    const { image } = await agentImage(task, imagePrefix, host);
    const { environment } = task.config;
    const memory_mb = plan?.main.memoryMb ?? environment.memory_mb;
    const storage_mb = diskOf(environment.storage_mb, name);
    const limits = openOptions(
      { memory_mb, storage_mb, cpus: plan?.main.cpus ?? environment.cpus },
      plan === null ? policy : policyOf(plan, plan.main, policy),
    );
    const sandbox = await openSandbox(
      sandboxes,
      { name, image, env: main.env, ...limits, ...(compose !== null && (await ofService(compose, name, limits.memoryMb))) },
      process,
    );
    if (compose !== null) await createFolders(compose.task, compose.plan, sandbox);
    if (main.cwd !== null) await createWorkingDirectory(sandbox, main.cwd);
    await startProgram(sandbox, await programOf(task, plan), main.cwd);
    return sandbox;
  };
  return { compose, plan, open };
}

/** Docker creates that of a service too. One that cannot exist is an error before the agent has worked for nothing. */
async function createWorkingDirectory({ files }: TaskSandbox, path: string): Promise<void> {
  try {
    await files.mkdir(path);
  } catch (error) {
    throw new TrialFailure("SandboxBuildFailedError", `the working directory ${path} cannot be created: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** The sandboxes of a task on the platform, for one call: they end with its signal. */
export function platformSandboxes(options: SandboxOptions, context: Pick<EpisodeContext, "sandbox" | "sandboxes">): Sandboxes {
  const sandboxes = withCapabilities(context.sandboxes, options.capabilities);
  const { task, imagePrefix, isStrict, host } = options;
  const { compose, plan, open } = openerOf(options, sandboxes);
  const startCopy: Sandboxes["startCopy"] = async (policy, prepare) => {
    const fresh = await open(policy, "verifier");
    const sandbox = new PlatformSandbox(fresh);
    try {
      await prepare(sandbox);
      options.onLeftOut(await applyChanges(context.sandbox, fresh, takenPaths(task), plan === null ? [] : keptFolders(plan)));
      return sandbox;
    } catch (error) {
      await sandbox.stop();
      throw error;
    }
  };
  return {
    agent: new PlatformSandbox(context.sandbox, options.endProcesses),
    startAgent: async (policy) => {
      const openMain = () => open(policy, "task");
      await (compose === null ? openMain() : startServices({ ...compose, imagePrefix, policy, sandboxes, openMain }));
    },
    startVerifier: async (verifier, policy) => {
      const own = openerOf({ task: verifier, main: mainOptions(verifier, {}, host), imagePrefix, host }, sandboxes);
      return new PlatformSandbox(await own.open(policy, "verifier"));
    },
    service: (name) => {
      const sandbox = findService(sandboxes, name);
      return sandbox && new PlatformSandbox(sandbox, undefined, "sh");
    },
    ...(isStrict && { startCopy }),
  };
}

/** The sandbox of the tests has room for them, also if the agent has filled its own. */
function diskOf(storageMb: number | null, name: "task" | "verifier"): number | null {
  return storageMb === null || storageMb <= 0 || name === "task" ? storageMb : storageMb + TESTS_DISK_MB;
}

/** What the task lists as artifacts of the agent's own sandbox. */
function takenPaths({ config }: Task): readonly string[] {
  const own = config.artifacts.map((one) => (typeof one === "string" ? { source: one, service: null } : one));
  return own.filter(({ service }) => service === null || service === "main").map(({ source }) => source.replace(/(?<=.)\/+$/, ""));
}

interface Compose {
  readonly task: ComposeTask;
  readonly plan: ComposePlan;
  /** It has no other service, so it needs no network for them. */
  readonly isAlone: boolean;
}

/**
 * What the agent's service has beside the limits of any task. For the tests, it is the sandbox in which they run. The other services know
 * the agent's own by these names.
 */
async function ofService({ task, plan, isAlone }: Compose, name: "task" | "verifier", memoryMb: number): Promise<OpenSandboxOptions> {
  const { main } = plan;
  const own = ownOptions(main, memoryMb, isAlone || name === "verifier" ? main.aliases : []);
  return isAlone ? own : { ...own, ...(await sharesOf(task, plan, name === "task")) };
}

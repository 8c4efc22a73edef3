import { PlatformError } from "@aenv/contract";
import * as z from "zod";
import { digestOf } from "../journal/digest.ts";
import { differences } from "../replay/difference.ts";

/** All that decides what a run's episodes are. Two runs with equal settings play the same episodes. */
export const runSettings = z.object({
  format: z.literal("aenv.run.v1"),
  /** `name@version`, with the version that was found. */
  environment: z.string(),
  environment_digest: z.string().nullable(),
  /** Variables by name; values that look like secrets are left out. */
  variables: z.record(z.string(), z.string()),
  agent: z.object({ name: z.string(), settings: z.record(z.string(), z.unknown()) }),
  model: z.string().nullable(),
  split: z.string().nullable(),
  tasks: z.array(z.object({ id: z.string(), split: z.string().optional() })),
  samples: z.number().int().positive(),
  seed: z.number().int(),
  limits: z.object({
    turns: z.number().optional(),
    toolCalls: z.number().optional(),
    tokens: z.number().optional(),
    seconds: z.number().optional(),
  }),
  /** Arguments of the reward. */
  reward_args: z.record(z.string(), z.unknown()).optional(),
  records_digests: z.boolean(),
  pass_reward: z.number(),
  /** Where the environment's project was, for commands that play the run again. It does not decide what the episodes are. */
  folder: z.string().optional(),
  /** After so many tool calls the samples of a task are forked from one episode. */
  fork_at: z.number().int().nonnegative().optional(),
  /** The digest of a benchmark's data. */
  data_digest: z.string().optional(),
  /** Where that data was, and what it was prepared from. It does not decide what the episodes are. */
  data: z.object({ folder: z.string(), from: z.string().optional(), domains: z.array(z.string()).optional() }).optional(),
  /** The run whose trajectories were scored again. */
  rescored_from: z.string().optional(),
});
export type RunSettings = z.infer<typeof runSettings>;

/** The name of a run that nobody has named: the same for the same settings, so that the same command goes on with it. */
export function runNameOf(settings: RunSettings): string {
  const environment = settings.environment.replaceAll(/[^A-Za-z0-9.-]/g, "-");
  return `${environment}-${settings.agent.name}-${digestOf(identityOf(settings)).slice("sha256:".length, "sha256:".length + 8)}`;
}

function identityOf({ folder: _, data: __, ...settings }: RunSettings): Omit<RunSettings, "folder" | "data"> {
  return settings;
}

const SECRET = /key|token|secret|password|credential/i;

/** Variables as a run's settings may hold them: those whose name says that they are secret are left out. */
export function withoutSecrets(variables: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !SECRET.test(name)));
}

/** Refuses to go on with a run that has other settings, and says which. */
export function requireSameSettings(run: string, stored: RunSettings, wanted: RunSettings): void {
  const [first] = differences(identityOf(stored), identityOf(wanted), 1);
  if (first === undefined) return;
  const shown = (value: unknown) => JSON.stringify(value) ?? "nothing";
  throw new PlatformError(
    "request.conflict",
    `run '${run}' was begun with ${first.path} = ${shown(first.expected)}, not ${shown(first.actual)}; use the same settings to go on with it, or another name for a new run`,
  );
}

import type { Provenance } from "@aenv/contract";

/** One part of a provenance that is another one now. */
export interface Drift {
  readonly field: string;
  readonly recorded: string;
  /** Null if it is not there any more. */
  readonly now: string | null;
  /** Whether it decides what the episodes are; the machinery around them should make no difference. */
  readonly isEssential: boolean;
}

/** The fields by name, as people read them. */
const essential = {
  environment: "environment",
  environment_digest: "environment digest",
  tools_digest: "tool schemas",
  reward_digest: "reward code",
  config_digest: "config and variables",
  agent: "agent",
  agent_digest: "agent settings",
  model: "model",
} as const satisfies Partial<Record<keyof Provenance, string>>;
const around = {
  engine: "engine",
  isolation: "isolation",
  server_version: "server version",
  client_version: "client version",
} as const satisfies Partial<Record<keyof Provenance, string>>;

/** What has changed since a trajectory was recorded. What was not recorded then cannot be compared, and is left out. */
export function driftOf(recorded: Provenance, now: Partial<Provenance>): Drift[] {
  const found = (fields: Readonly<Record<string, string>>, isEssential: boolean) =>
    Object.entries(fields).flatMap(([key, field]): Drift[] => {
      const [was, is] = [recorded[key], now[key] ?? null];
      if (typeof was !== "string" || was === is) return [];
      return [{ field, recorded: was, now: typeof is === "string" ? is : null, isEssential }];
    });
  return [...found(essential, true), ...found(around, false)];
}

import {
  assertShmFits,
  type EnvironmentConfig,
  type Limit,
  limitFields,
  limitPath,
  PlatformError,
  type Resources,
  readLimits,
} from "@aenv/contract";
import type { SandboxEngine } from "@aenv/sandbox";

export interface LimitedEnvironment {
  readonly name: string;
  readonly version: string;
  readonly config: EnvironmentConfig;
}

/**
 * What `deployConfig` of an environment asks for; undefined if it leaves that to the server. What the engine cannot limit for single sandboxes is
 * ignored. Each limit is at most the setting of the same name.
 */
export function environmentLimits(
  { name, version, config: { deployConfig } }: LimitedEnvironment,
  { can }: Pick<SandboxEngine, "can">,
  settings: Resources,
): Resources | undefined {
  const ref = `${name}@${version}`;
  const asked = readLimits(ref, "deployConfig", deployConfig, can.ownLimits);
  for (const { limit, field } of limitFields("deployConfig")) {
    const most = settings[limit];
    if (most !== undefined && (asked[limit] ?? 0) > most)
      throw new PlatformError(
        "instance.unsupported",
        `${limitPath("deployConfig", limit)} of ${ref} is '${deployConfig?.[field]}', and this server allows ${most}${limit === "cpus" ? "" : " MiB"} (its setting ${limit})`,
      );
  }
  assertShmFits(ref, "deployConfig", { ...settings, ...asked });
  const own = Object.entries(asked).filter(([limit, amount]) => amount !== settings[limit as Limit]);
  return own.length === 0 ? undefined : Object.fromEntries(own);
}

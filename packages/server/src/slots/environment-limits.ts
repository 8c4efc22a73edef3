import { cpusOf, type EnvironmentConfig, mebibytesOf, PlatformError, shmProblem } from "@aenv/contract";
import type { SandboxEngine, SandboxSpec } from "@aenv/sandbox";

/** Limits of the sandboxes of one environment, which blank processes do not have. */
export type EnvironmentLimits = Pick<SandboxSpec, "memoryMb" | "cpus" | "diskMb" | "shmMb">;

export interface LimitedEnvironment {
  readonly name: string;
  readonly version: string;
  readonly config: EnvironmentConfig;
}

/** Each field of an environment, what it limits, and the setting of the operator that it must not exceed. */
const FIELDS = [
  { field: "cpu", setting: "cpus", parse: cpusOf, example: 'a number of processors, such as "2" or "500m"' },
  { field: "memory", setting: "memoryMb", parse: mebibytesOf, example: 'a size, such as "2Gi" or "500M"' },
  { field: "ephemeralStorage", setting: "diskMb", parse: mebibytesOf, example: 'a size, such as "10Gi" or "500M"' },
] as const;

/**
 * What `deployConfig` of an environment asks for; undefined if it leaves that to the server. What the engine cannot limit for single sandboxes is
 * ignored.
 */
export function environmentLimits(
  { name, version, config }: LimitedEnvironment,
  { can }: Pick<SandboxEngine, "can">,
  settings: EnvironmentLimits,
): EnvironmentLimits | undefined {
  const limits: { -readonly [K in keyof EnvironmentLimits]: EnvironmentLimits[K] } = {};
  for (const { field, setting, parse, example } of FIELDS) {
    if (!can.ownLimits.includes(setting)) continue;
    const text = config.deployConfig?.[field];
    if (text === undefined) continue;
    const asked = parse(text);
    const error = (code: "environment.invalid" | "instance.unsupported", why: string) =>
      new PlatformError(code, `deployConfig.${field} of ${name}@${version} is '${text}', ${why}`);
    if (asked === null) throw error("environment.invalid", `which is not ${example}`);
    const most = settings[setting] ?? Number.POSITIVE_INFINITY;
    if (asked > most)
      throw error("instance.unsupported", `and this server allows ${most}${field === "cpu" ? "" : " MiB"} (its setting ${setting})`);
    if (asked !== most) limits[setting] = asked;
  }
  const { shmMb } = config.deployConfig ?? {};
  if (shmMb !== undefined && can.ownLimits.includes("shmMb")) {
    const problem = shmProblem(shmMb, limits.memoryMb ?? settings.memoryMb);
    if (problem !== null) throw new PlatformError("environment.invalid", `deployConfig.shmMb of ${name}@${version} ${problem}`);
    limits.shmMb = shmMb;
  }
  return Object.keys(limits).length === 0 ? undefined : limits;
}

import type { CreateInstanceRequest, EnvironmentConfig, SandboxOptions } from "@aenv/contract";
import type { SandboxEngine } from "@aenv/sandbox";

/** What the sandbox is asked to have: by the request, else by the environment's own config. An empty value counts as left out. */
export function sandboxOptionsOf(
  { deployConfig = {} }: EnvironmentConfig,
  request: Pick<CreateInstanceRequest, "mount_points" | "init_command">,
): SandboxOptions {
  const mountPoints = request.mount_points?.length ? request.mount_points : (deployConfig.mountPoints ?? []);
  const initCommand = request.init_command || deployConfig.initCommand || "";
  return { ...(mountPoints.length > 0 && { mountPoints }), ...(initCommand !== "" && { initCommand }) };
}

export interface SupportedOptions {
  /** What the engine is told; undefined for nothing. */
  readonly options: SandboxOptions | undefined;
  /** What it is not told, and why. */
  readonly warnings: readonly string[];
}

/** What an engine cannot do is left out with a warning: refusing would break callers that always send it, and silence would hide it. */
export function supportedOptions(
  { mountPoints, initCommand }: SandboxOptions,
  { name, can }: Pick<SandboxEngine, "name" | "can">,
  isShared: boolean,
): SupportedOptions {
  const warnings: string[] = [];
  const isSupported = (isAble: boolean, what: string) => {
    if (isAble && !isShared) return true;
    const reason = isAble ? "instances that share a process have no sandbox of their own" : `the engine '${name}' cannot do it`;
    warnings.push(`${what}: ${reason}`);
    return false;
  };
  const options = {
    ...(mountPoints !== undefined && isSupported(can.mounts, "mount_points ignored, nothing is mounted") && { mountPoints }),
    ...(initCommand !== undefined && isSupported(can.initCommand, "init_command ignored, it is not run") && { initCommand }),
  };
  return { options: Object.keys(options).length > 0 ? options : undefined, warnings };
}

import type { CreateInstanceRequest, EnvironmentConfig, SandboxOptions } from "@aenv/contract";
import type { SandboxEngine } from "@aenv/sandbox";

/** The sandbox options of the request, else of the environment's config. An empty value counts as missing. */
export function sandboxOptionsOf(
  { deployConfig = {} }: EnvironmentConfig,
  request: Pick<CreateInstanceRequest, "mount_points" | "init_command">,
): SandboxOptions {
  const mountPoints = request.mount_points?.length ? request.mount_points : (deployConfig.mountPoints ?? []);
  const initCommand = request.init_command || deployConfig.initCommand || "";
  return { ...(mountPoints.length > 0 && { mountPoints }), ...(initCommand !== "" && { initCommand }) };
}

export interface SupportedOptions {
  /** Options for the engine; undefined if there are none. */
  readonly options: SandboxOptions | undefined;
  /** Options that are ignored, with the reason. */
  readonly warnings: readonly string[];
}

/** Options that the engine does not support are ignored with a warning: an error would break clients that always send them. */
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

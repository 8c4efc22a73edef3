import { type EnvironmentConfig, PlatformError } from "@aenv/contract";

/** `shared`: instances of one owner share processes. `instance`: each instance has a process of its own. */
export type Isolation = "shared" | "instance";

export function isolationOf(config: EnvironmentConfig): Isolation {
  const value = config.deployConfig?.isolation;
  if (value === undefined || value === "instance") return "instance";
  if (value === "shared") return "shared";
  throw new PlatformError(
    "environment.invalid",
    `deployConfig.isolation is ${JSON.stringify(value)}; this server knows "shared" and "instance"`,
  );
}

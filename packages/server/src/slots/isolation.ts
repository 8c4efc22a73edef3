import { type EnvironmentConfig, PlatformError } from "@aenv/contract";

/** How strong the walls around an instance are. */
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

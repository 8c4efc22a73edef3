import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { buildxPluginPath, type ComponentName } from "@aenv/testing";

/** The builders that need Docker's engine, and what a test of them needs. */
export const dockerBuilders = { docker: "docker", buildx: "docker-buildx" } as const satisfies Record<string, ComponentName>;
export type DockerBuilder = keyof typeof dockerBuilders;

/** Variables of a user of a daemon, whose home gets the plugin of the builder if it needs one. */
export function dockerVariables(builder: DockerBuilder, home: string, socket: string): Readonly<Record<string, string | undefined>> {
  if (builder === "buildx") {
    const plugins = join(home, ".docker/cli-plugins");
    mkdirSync(plugins, { recursive: true });
    symlinkSync(buildxPluginPath, join(plugins, "docker-buildx"));
  }
  return { PATH: process.env.PATH, HOME: home, DOCKER_HOST: `unix://${socket}` };
}

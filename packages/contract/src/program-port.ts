import type { EnvironmentConfig } from "./config.ts";

/** Where the servers of the original listen. */
const DEFAULT_PORT = 8081;

/**
 * The port of a command. It is flexible if the command can listen on another one: because it names `{port}`, or because it was told none,
 * so that it must read the variable PORT.
 */
export function programPort({ command, port }: NonNullable<EnvironmentConfig["runtime"]>): { port: number; isFlexible: boolean } {
  return { port: port ?? DEFAULT_PORT, isFlexible: port === undefined || command.some((part) => part.includes("{port}")) };
}

import type { Target } from "../load/load.ts";
import { Child } from "./child.ts";
import type { Memory } from "./usage.ts";

/** A server in its own process that reports its CPU time and memory. */
export interface Server extends Target, AsyncDisposable {
  readonly pid: number;
  memory(): Promise<Memory>;
}

export async function startServer(file: URL, args: readonly string[] = [], nodeOptions: readonly string[] = []): Promise<Server> {
  const child = new Child(file, args, { nodeOptions });
  return {
    url: await child.query<string>("url"),
    pid: child.pid,
    cpuUs: () => child.query("cpuUs"),
    memory: () => child.query("memory"),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

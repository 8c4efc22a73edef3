import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectInit, type InitConnection, OciEngine, type OciEngineOptions, type Sandbox, type SandboxSpec } from "@aenv/sandbox";
import { PROGRAM } from "./image.ts";

const { signal } = new AbortController();

/** An engine with a home of its own, and the sandboxes that it has created. */
export class Machine implements AsyncDisposable {
  readonly engine: OciEngine;
  readonly home: string;
  #made = 0;

  private constructor(engine: OciEngine, home: string) {
    this.engine = engine;
    this.home = home;
  }

  static async open(options: Omit<OciEngineOptions, "home">): Promise<Machine> {
    const home = await mkdtemp(join(tmpdir(), "aenv-bench-"));
    return new Machine(new OciEngine({ home, ...options }), home);
  }

  create(more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    const id = `bench-${++this.#made}`;
    const spec: SandboxSpec = { id, command: [], variables: {}, labels: {}, startTimeoutMs: 60_000, listening: { kind: "none" }, ...more };
    return this.engine.create(spec, signal);
  }

  connect({ commands }: Sandbox): Promise<InitConnection> {
    if (commands === undefined) throw new Error(`the engine ${this.engine.name} runs no commands`);
    return connectInit(commands.address, this.engine.commands.key, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sandbox of await this.engine.list()) await sandbox.destroy();
    await this.engine.close();
    await rm(this.home, { recursive: true, force: true });
  }
}

/** Starts the image's program with these arguments, and waits for the line that it prints. */
export async function runProgram(init: InitConnection, args: readonly string[] = []): Promise<void> {
  const program = await init.spawn({ argv: [PROGRAM, ...args] });
  for await (const printed of program.stdout) {
    if (!String(printed).includes("ready")) continue;
    program.detach();
    return;
  }
  throw new Error("the program ended and printed nothing");
}

export async function millisecondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

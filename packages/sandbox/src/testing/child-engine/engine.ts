import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { noAbilities, type Sandbox, type SandboxEngine, type SandboxSpec } from "../../engine/engine.ts";
import { EngineWork } from "../../lifecycle/engine-work.ts";
import { waitUntilAnswering } from "../../lifecycle/readiness.ts";
import { assertValid } from "../../lifecycle/spec-check.ts";
import { existsAlready, startFailed } from "../../lifecycle/start-errors.ts";
import { startWithin } from "../../lifecycle/start-limits.ts";
import { ChildSandbox } from "./sandbox.ts";

/** Sandboxes that are children of this process and end with the engine: as little as an engine can be. */
export class ChildEngine implements SandboxEngine {
  readonly name = "child";
  readonly can = noAbilities;
  readonly #folder: string;
  readonly #work = new EngineWork();
  readonly #sandboxes = new Map<string, ChildSandbox>();

  constructor(home: string) {
    this.#folder = join(home, "children");
    mkdirSync(this.#folder, { recursive: true });
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    assertValid(spec);
    if (this.#sandboxes.has(spec.id)) throw existsAlready(spec.id);
    return this.#work.start(spec.id, signal, (either) => this.#start(spec, either));
  }

  async #start(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const { id, startTimeoutMs: timeoutMs } = spec;
    const sandbox = new ChildSandbox(spec, join(this.#folder, id), () => this.#sandboxes.delete(id));
    const timedOut = () => startFailed(id, `it did not answer within ${timeoutMs} ms`);
    try {
      await startWithin({ id, signal, timeoutMs, timedOut }, async (stop, fail) => {
        sandbox.exited.then(({ reason }) => fail(() => startFailed(id, reason)));
        await waitUntilAnswering(sandbox.address.path, stop);
      });
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
    this.#sandboxes.set(id, sandbox);
    return sandbox;
  }

  async list(): Promise<readonly Sandbox[]> {
    return [...this.#sandboxes.values()].filter(({ hasExited }) => !hasExited);
  }

  async close(): Promise<void> {
    await this.#work.close();
    await Promise.all([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
  }
}

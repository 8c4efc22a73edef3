import { TimedSignal } from "@aenv/contract";
import type { SandboxAddress } from "../engine/engine.ts";
import { isRunning, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import type { Records } from "../host/records.ts";
import type { EngineWork } from "../lifecycle/engine-work.ts";
import type { Unseen } from "../lifecycle/unseen.ts";
import type { Container } from "./container.ts";
import type { Containers } from "./containers.ts";
import type { OciSandbox, SandboxRecord } from "./sandbox.ts";

export interface AdoptionOptions {
  readonly records: Records<SandboxRecord>;
  /** Those that this process follows. */
  readonly sandboxes: Map<string, OciSandbox>;
  readonly unseen: Unseen<OciSandbox>;
  readonly processes: ProcessTable;
  readonly self: ProcessIdentity;
  readonly work: EngineWork;
  readonly open: (record: SandboxRecord, container: Container, address: SandboxAddress) => OciSandbox;
}

const ADOPT_MS = 10_000;

/** Sandboxes of other server processes on a home. */
export class Adoption {
  readonly #options: AdoptionOptions;

  constructor(options: AdoptionOptions) {
    this.#options = options;
  }

  /** Finds the sandboxes of other server processes on this home, takes over those whose process has ended, and removes what else is left. */
  async adopt(containers: Containers): Promise<void> {
    const { records, sandboxes } = this.#options;
    const ids = records.ids();
    const used = new Set<string>();
    await Promise.all(
      ids.map(async (id) => {
        const record = records.find(id);
        if (await this.#adoptOne(id, record, containers)) used.add(record?.container ?? "");
        else {
          const owned = record?.container == null ? null : containers.find(record.container);
          if (owned !== null) await containers.remove(owned);
          await records.remove(id);
        }
      }),
    );
    // Sandboxes that another process has removed.
    for (const sandbox of sandboxes.values())
      if (sandbox.hasExited && !sandbox.isKept && !ids.includes(sandbox.id)) sandboxes.delete(sandbox.id);
    await records.removeParts(this.#options.processes);
    await containers.collect(used);
  }

  /** False if the sandbox is to be removed. */
  async #adoptOne(id: string, record: SandboxRecord | null, containers: Containers): Promise<boolean> {
    const { work, sandboxes, processes, unseen } = this.#options;
    if (work.isStarting(id)) return true;
    const held = sandboxes.get(id);
    if (held?.isKept || (held !== undefined && record === null)) return true;
    if (record === null) return false;
    const hasKeeper = record.keeper !== null && isRunning(processes, record.keeper);
    if (!record.isReady || record.address === null) return hasKeeper;
    const sandbox = held ?? (await this.#openRunning(record, record.address, containers));
    if (sandbox === null || sandbox.hasExited) return hasKeeper;
    if (!hasKeeper) {
      if (!(await this.#takeOver(sandbox))) return false;
      unseen.add(sandbox);
    }
    sandboxes.set(id, sandbox);
    return true;
  }

  async #openRunning(record: SandboxRecord, address: SandboxAddress, containers: Containers): Promise<OciSandbox | null> {
    const owned = record.container === null ? null : containers.find(record.container);
    using limit = new TimedSignal(ADOPT_MS, this.#options.work.closing);
    const container = owned === null ? null : await containers.open(owned, limit.signal);
    return container === null ? null : this.#options.open(record, container, address);
  }

  /** False if its program has ended: nobody waits for the reason. */
  async #takeOver(sandbox: OciSandbox): Promise<boolean> {
    const { program } = sandbox.record;
    try {
      const { init } = sandbox.container;
      if (program === null) sandbox.keep();
      else {
        const listed = (await init.listProcesses()).find(({ id }) => id === program);
        if (listed?.ending !== null) throw new Error("the program has ended");
        sandbox.follows(await init.attach(program));
      }
    } catch {
      await sandbox.detach();
      return false;
    }
    this.#options.records.write(sandbox.id, sandbox.setRecord({ keeper: this.#options.self }));
    return true;
  }
}

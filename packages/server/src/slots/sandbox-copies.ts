import { type ForkFidelity, fillPath, hostRoutes, PlatformError } from "@aenv/contract";
import type { Sandbox, SandboxEngine, SandboxSnapshot, SnapshotFidelity } from "@aenv/sandbox";
import type { SandboxRequest } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { type InitialState, parseInitialState } from "./initial-state.ts";
import { NO_SNAPSHOTS, type ProgramEpisodes, type ProgramState } from "./program-episodes.ts";
import type { Slot } from "./slot.ts";

export interface SandboxCopiesOptions {
  readonly engine: SandboxEngine;
  readonly space: SnapshotSpace;
  readonly find: (sandboxId: string) => Promise<Sandbox | null>;
  readonly episodes: ProgramEpisodes;
  /** Sends a request to the process of an instance. */
  readonly request: (slot: Slot, request: Omit<SandboxRequest, "timeoutMs">) => Promise<unknown>;
}

/** A running instance that is a program. */
interface ProgramInstance {
  readonly id: string;
  readonly seed: number;
  readonly environment: { readonly name: string };
  readonly programArguments?: readonly string[];
}

/** What is read and stored of running instances, to fork them or to store them. */
export class SandboxCopies {
  readonly #options: SandboxCopiesOptions;

  constructor(options: SandboxCopiesOptions) {
    this.#options = options;
  }

  /** Stores the sandbox of an instance, lets `use` start others from it, and deletes it again. */
  async withSnapshot<T>(
    id: string,
    slot: Slot,
    fidelity: SnapshotFidelity,
    signal: AbortSignal,
    use: (snapshot: SandboxSnapshot) => Promise<T>,
  ): Promise<T> {
    const { engine } = this.#options;
    const snapshot = await this.takeSnapshot(id, slot, fidelity, "forked", signal);
    try {
      return await use(snapshot);
    } finally {
      // A snapshot that is left costs disk space only, and is removed with the server's other snapshots.
      await engine.snapshots?.remove(snapshot.id).catch(() => {});
    }
  }

  /** Stores the sandbox of an instance in the engine, which removes it when this process ends. `verb` is for errors. */
  async takeSnapshot(
    id: string,
    slot: Slot,
    fidelity: SnapshotFidelity,
    verb: "forked" | "stored",
    signal: AbortSignal,
  ): Promise<SandboxSnapshot> {
    await this.assertCopyable(id, slot, fidelity, verb, signal);
    const sandbox = await this.#options.find(slot.sandboxId);
    const { snapshots } = sandbox ?? {};
    if (snapshots === undefined) throw new PlatformError("sandbox.lost", `the sandbox of instance '${id}' has ended`);
    return this.#options.space.use(() => snapshots.take(fidelity, signal));
  }

  /** What a fork continues with if its request does not say it: its state, or as much of the sandbox as can be copied. */
  async usualFidelity(slot: Slot, signal: AbortSignal): Promise<ForkFidelity> {
    if (slot.program === undefined || (await this.#hasSnapshots(slot, signal))) return "state";
    const { snapshots = this.#options.engine.snapshots } = (await this.#options.find(slot.sandboxId)) ?? {};
    const possible = snapshots?.fidelities ?? [];
    return (["memory", "files"] as const).find((one) => possible.includes(one)) ?? "state";
  }

  /** Refuses what cannot be copied here, before anything is. `verb` is for errors. */
  async assertCopyable(id: string, slot: Slot, fidelity: ForkFidelity, verb: "forked" | "stored", signal: AbortSignal): Promise<void> {
    const { name, snapshots } = this.#options.engine;
    const fidelities: readonly ForkFidelity[] = snapshots?.fidelities ?? [];
    const unsupported = (why: string) =>
      new PlatformError("instance.unsupported", `instance '${id}' cannot be ${verb} with its ${fidelity}: ${why}`);
    if (fidelity === "state") {
      if (slot.program === undefined || (await this.#hasSnapshots(slot, signal))) return;
      const next = fidelities.length === 0 ? "start the server with --engine oci, which copies" : "use the fidelity";
      throw unsupported(`${NO_SNAPSHOTS}, and only the program knows its state; ${next} files or memory`);
    }
    if (!slot.isOwnSandbox)
      throw unsupported(`it shares its process with others; set deployConfig.isolation to "instance", or use the fidelity state`);
    if (fidelities.includes(fidelity)) return;
    const copied = [...(slot.program === undefined ? ["state"] : []), ...fidelities];
    const what = copied.length === 0 ? "no program" : copied.join(", ");
    throw unsupported(`the engine '${name}' of this server copies ${what === "state" ? "its state only" : what}`);
  }

  async #hasSnapshots(slot: Slot, signal: AbortSignal): Promise<boolean> {
    return (await this.#options.episodes.abilities(slot, signal))?.snapshot === true;
  }

  /** The state of a program that has snapshots. */
  storeProgram(id: string, slot: Slot, signal: AbortSignal): Promise<ProgramState> {
    return this.#options.episodes.store(id, slot, signal);
  }

  /** What another sandbox needs to start a fork of this instance. */
  async readInitialState(id: string, slot: Slot, signal: AbortSignal): Promise<InitialState> {
    const { method } = hostRoutes.forkSpec;
    const path = fillPath(hostRoutes.forkSpec, { id });
    return parseInitialState(id, await this.#options.request(slot, { method, path, maxBytes: responseLimits.state, signal }));
  }

  /** What another sandbox needs to start the program of this instance again. The platform stores no variables: they may be secrets. */
  async readProgramState({ id, seed, environment, programArguments = [] }: ProgramInstance, slot: Slot): Promise<InitialState> {
    const sandbox = await this.#options.find(slot.sandboxId);
    const variables = await sandbox?.programVariables?.();
    const refused = (why: string) =>
      new PlatformError(
        "instance.unsupported",
        `instance '${id}' cannot be forked: ${why}; store a snapshot of it, and create instances from the snapshot with their variables`,
      );
    if (variables === undefined)
      throw refused(
        `the engine '${this.#options.engine.name}' of this server does not know the variables that its program was started with`,
      );
    if (slot.program?.hasServer === true && variables.envNAME !== environment.name)
      throw refused("its program has overwritten the variables that it was started with");
    return { id, task: null, seed, variables, arguments: programArguments };
  }
}

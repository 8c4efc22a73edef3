import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { formatBytes, PlatformError, parseBoundedJson, readBoundedText, type SnapshotRef, type SnapshotRequest } from "@aenv/contract";
import type { SandboxEngine, SnapshotPart } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { Quotas } from "../access/quotas.ts";
import { isInScope } from "../access/scopes.ts";
import { digestOf } from "../hub/archives/digest.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import { type InitialState, parseInitialState } from "../slots/initial-state.ts";
import type { Slot } from "../slots/slot.ts";
import type { Slots } from "../slots/slots.ts";
import type { Collection } from "../stores/collection.ts";
import type { SnapshotContent } from "./content.ts";
import { type LocalCopies, STATE } from "./local-copies.ts";
import { bytesOf, isReady, type ReadySnapshot, type SnapshotRow, type StoredPart, snapshotKey } from "./row.ts";

export interface SnapshotsOptions {
  readonly rows: Collection<SnapshotRow>;
  readonly content: SnapshotContent;
  readonly copies: LocalCopies;
  readonly engine: SandboxEngine;
  readonly slots: Slots;
  readonly quotas: Quotas;
  readonly serverId: string;
  readonly livingServers: () => Promise<ReadonlySet<string>>;
  readonly now: () => Date;
}

/** A running instance that is stored. */
export interface Subject extends Pick<SnapshotRow, "owner" | "environment" | "task" | "seed" | "secretVariables" | "programArguments"> {
  readonly id: string;
  /** The digest of the environment's bundle. */
  readonly digest: string;
  readonly slot: Slot;
}

/** What is stored, but for the bytes. */
interface Taken {
  /** The id of the snapshot in the engine; null for the state alone. */
  readonly local: string | null;
  readonly facts: SnapshotRow["facts"];
  readonly cut: readonly string[];
  readonly parts: readonly (SnapshotPart & { open(): Readable })[];
}

/** A state is stored as JSON that this server wrote of a sandbox's answer, so it may be somewhat longer than that. */
const MAX_STATE_BYTES = 4 * responseLimits.state;

/** Stored snapshots of owners, from which instances start on every server of the store. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  /** The ids of those that this server stores now. */
  readonly #taking = new Set<string>();

  constructor(options: SnapshotsOptions) {
    this.#options = options;
  }

  /** Stores an instance, which goes on. If it fails, nothing is left. */
  async take(subject: Subject, request: SnapshotRequest, signal: AbortSignal): Promise<ReadySnapshot> {
    assertNoSecrets(subject, request);
    await this.#options.slots.sandboxCopies.assertCopyable(subject.id, subject.slot, request.fidelity ?? "state", "stored", signal);
    const row = this.#newRow(subject, request);
    this.#taking.add(row.id);
    try {
      await this.#insert(row);
      return await this.#store(row, subject, signal);
    } finally {
      this.#taking.delete(row.id);
    }
  }

  /** Finds a snapshot by name among those of the owner, or by id. One that the caller may not see is not found. */
  async get(ref: SnapshotRef, owner: string, caller: Caller): Promise<SnapshotRow> {
    const found = "id" in ref ? await this.#listBy("id", ref.id) : await this.#listNamed(ref.name, owner, caller);
    const [first, ...others] = found.filter((row) => maySee(row, caller));
    if (first === undefined) throw new PlatformError("snapshot.not_found", `snapshot '${"id" in ref ? ref.id : ref.name}' not found`);
    if (others.length === 0) return first;
    throw new PlatformError("snapshot.not_found", `several owners have a snapshot '${first.name}'; name it by its id`);
  }

  /** An administrator need not be the owner. */
  async #listNamed(name: string, owner: string, caller: Caller): Promise<SnapshotRow[]> {
    const own = await this.#options.rows.find(snapshotKey({ owner, name }));
    if (own !== null) return [own.value];
    return caller.roles.has("admin") ? this.#listBy("name", name) : [];
  }

  async #listBy(index: "id" | "name", value: string): Promise<SnapshotRow[]> {
    return (await this.#options.rows.list({ where: { index, value }, limit: 2 })).map((row) => row.value);
  }

  /** A page in the order of owner and name. Only an admin sees snapshots of other owners. */
  async page(
    filter: { readonly owner?: string | undefined; readonly limit: number; readonly after?: string | undefined },
    caller: Caller,
  ): Promise<{ readonly rows: readonly SnapshotRow[]; readonly next: string | null }> {
    const owner = caller.roles.has("admin") ? filter.owner : caller.owner;
    const where = owner === undefined ? { index: "all", value: "yes" } : { index: "owner", value: owner };
    const found: SnapshotRow[] = [];
    let { after } = filter;
    for (;;) {
      const page = await this.#options.rows.list({ where, limit: 500, ...(after !== undefined && { after }) });
      for (const { key, value } of page) {
        after = key;
        if (maySee(value, caller)) found.push(value);
        if (found.length === filter.limit) return { rows: found, next: key };
      }
      if (page.length < 500) return { rows: found, next: null };
    }
  }

  /** Instances that were started from it go on. */
  async remove(row: SnapshotRow): Promise<void> {
    await this.#discard(row);
    await this.#options.copies.drop(row.id);
  }

  /** Calls `occupy` with what an instance needs to continue from the snapshot. */
  async start<T>(snapshot: ReadySnapshot, initial: InitialState, occupy: (full: InitialState) => Promise<T>): Promise<T> {
    const full = { ...initial, ...(await this.#stateOf(snapshot, initial.id)) };
    if (snapshot.fidelity === "state") return occupy(full);
    return this.#options.copies.use(snapshot, (sandboxSnapshot) =>
      occupy({ ...full, sandboxSnapshot, ...(snapshot.fidelity === "memory" && { storedInstance: snapshot.instance }) }),
    );
  }

  /** Removes what servers that ended left unfinished, content that no snapshot has, and idle copies in the engine. */
  async sweep(): Promise<void> {
    const { rows, content, copies, serverId, livingServers } = this.#options;
    const creating: SnapshotRow[] = [];
    for await (const { value } of rows.each({ index: "creating", value: "yes" })) creating.push(value);
    if (creating.length > 0) {
      const living = await livingServers();
      for (const row of creating)
        if (row.server === serverId ? !this.#taking.has(row.id) : !living.has(row.server)) await this.#discard(row);
    }
    await content.collect(livingServers);
    await copies.trim(async (id) => (await rows.count("id", id)) > 0);
  }

  close(): Promise<void> {
    return this.#options.copies.close();
  }

  #newRow(subject: Subject, { name, fidelity = "state" }: SnapshotRequest): SnapshotRow {
    const { id: instance, owner, environment, digest: bundle, task, seed, secretVariables, programArguments } = subject;
    const id = `snap-${randomBytes(12).toString("hex")}`;
    const { serverId, now } = this.#options;
    return {
      id,
      owner,
      name: name ?? id,
      fidelity,
      environment,
      bundle,
      instance,
      task,
      seed,
      createdAt: now().toISOString(),
      server: serverId,
      parts: [],
      facts: null,
      cut: [],
      ...(fidelity !== "state" && secretVariables !== undefined && { secretVariables }),
      ...(programArguments !== undefined && { programArguments }),
      digest: null,
    };
  }

  async #insert(row: SnapshotRow): Promise<void> {
    const { owner, name } = row;
    const { snapshots: max } = this.#options.quotas.of(owner);
    const inserted = await this.#options.rows.insert(snapshotKey(row), row, { limit: { index: "owner", value: owner, max } });
    if (inserted === "exists")
      throw new PlatformError("snapshot.exists", `'${owner}' has a snapshot '${name}' already; delete it first, or choose another name`);
    if (inserted === "limit")
      throw exceeded(owner, `has stored ${countText(max)} and may store ${max}`, "maxSnapshots", { maxSnapshots: max });
  }

  async #store(row: SnapshotRow, subject: Subject, signal: AbortSignal): Promise<ReadySnapshot> {
    const { copies, engine } = this.#options;
    let stored = row;
    let taken: Taken | null = null;
    try {
      const left = await this.#bytesLeft(row);
      taken = await this.#read(row, subject, signal);
      let received = 0;
      for (const part of taken.parts) {
        const onBytes = (bytes: number) => {
          received += bytes;
          if (received > left.bytes) throw left.error();
        };
        stored = await this.#storePart(stored, part, onBytes, signal);
      }
      // Also for snapshots that other servers store at the same time: their parts are listed by now, or they see those of this one.
      await this.#assertFits(stored);
      const { facts, cut } = taken;
      const digest = digestOf(JSON.stringify([row.fidelity, ...stored.parts.map((part) => part.digest)]));
      const ready = { ...stored, facts, cut, digest };
      await this.#change(row, () => ready);
      if (taken.local !== null) copies.add(row.id, taken.local);
      return ready;
    } catch (error) {
      if (taken?.local != null) await engine.snapshots?.remove(taken.local).catch(() => {});
      // What cannot be removed now is removed by a sweep.
      await this.#discard(stored).catch(() => {});
      throw error;
    }
  }

  async #read({ id, fidelity }: SnapshotRow, subject: Subject, signal: AbortSignal): Promise<Taken> {
    const { id: instance, slot } = subject;
    const { slots, engine } = this.#options;
    const local = fidelity === "state" ? null : await slots.sandboxCopies.takeSnapshot(instance, slot, fidelity, "stored", signal);
    try {
      const parts: Taken["parts"][number][] = [];
      if (fidelity === "state" || (fidelity === "files" && slot.program === undefined)) {
        const state = Buffer.from(JSON.stringify(await this.#readState(subject, signal)));
        parts.push({ name: `${STATE}${id}`, open: () => Readable.from([state]) });
      }
      if (local === null) return { local: null, facts: null, cut: [], parts };
      const exported = await engine.snapshots?.export(local.id);
      if (exported === undefined)
        throw new PlatformError(
          "instance.unsupported",
          `the engine '${engine.name}' of this server cannot store snapshots with ${fidelity}`,
        );
      for (const part of exported.parts) parts.push({ ...part, open: () => exported.open(part, signal) });
      return { local: local.id, facts: exported.facts, cut: local.cut ?? [], parts };
    } catch (error) {
      if (local !== null) await engine.snapshots?.remove(local.id).catch(() => {});
      throw error;
    }
  }

  /** Without the variables, which may be secrets. */
  async #readState({ id, slot, seed, programArguments = [] }: Subject, signal: AbortSignal): Promise<object> {
    const { sandboxCopies } = this.#options.slots;
    // The task of a program is part of its own state.
    if (slot.program !== undefined)
      return {
        task: null,
        seed,
        environment_variables: {},
        arguments: programArguments,
        ...(await sandboxCopies.storeProgram(id, slot, signal)),
      };
    const { task, seed: own, arguments: args, snapshot } = await sandboxCopies.readInitialState(id, slot, signal);
    return { task, seed: own, environment_variables: {}, arguments: args, snapshot };
  }

  async #storePart(
    row: SnapshotRow,
    { open, name }: Taken["parts"][number],
    onBytes: (bytes: number) => void,
    signal: AbortSignal,
  ): Promise<SnapshotRow> {
    const { content } = this.#options;
    const withPart = (part: StoredPart) =>
      this.#change(row, (latest) => ({ ...latest, parts: [...latest.parts.filter((one) => one.name !== name), part] }));
    const known = await this.#findPart(name);
    if (known !== null) {
      const listed = await withPart(known);
      if (await content.has(known.digest)) return listed;
    }
    const arrival = await content.receive(open(), onBytes, signal);
    try {
      const listed = await withPart({ name, digest: arrival.digest, bytes: arrival.bytes });
      await content.keep(arrival);
      return listed;
    } catch (error) {
      await content.discard(arrival);
      throw error;
    }
  }

  /** A part with this name in another snapshot: layers are in many of them. */
  async #findPart(name: string): Promise<StoredPart | null> {
    for await (const { value } of this.#options.rows.each({ index: "all", value: "yes" })) {
      const found = isReady(value) ? value.parts.find((part) => part.name === name) : undefined;
      if (found !== undefined) return found;
    }
    return null;
  }

  async #change(row: SnapshotRow, change: (latest: SnapshotRow) => SnapshotRow): Promise<SnapshotRow> {
    const changed = await this.#options.rows.update(snapshotKey(row), (latest) => (latest.id === row.id ? change(latest) : null));
    if (changed === null) throw new PlatformError("snapshot.not_found", `snapshot '${row.name}' was deleted while it was stored`);
    return changed;
  }

  /** How much of the quota the other snapshots of the owner leave; an error if that is nothing. */
  async #bytesLeft(row: SnapshotRow): Promise<{ readonly bytes: number; error(): PlatformError }> {
    const others = await this.#othersOf(row);
    const used = bytesOf(others);
    const { snapshotBytes } = this.#options.quotas.of(row.owner);
    const error = () => this.#tooLarge(row, others);
    if (used >= snapshotBytes) throw error();
    return { bytes: snapshotBytes - used, error };
  }

  /** What the snapshot has in common with others of the owner needs no more space. */
  async #assertFits(row: SnapshotRow): Promise<void> {
    const others = await this.#othersOf(row);
    if (bytesOf([...others, row]) > this.#options.quotas.of(row.owner).snapshotBytes) throw this.#tooLarge(row, others);
  }

  async #othersOf({ id, owner }: SnapshotRow): Promise<readonly SnapshotRow[]> {
    const others: SnapshotRow[] = [];
    for await (const { value } of this.#options.rows.each({ index: "owner", value: owner })) if (value.id !== id) others.push(value);
    return others;
  }

  #tooLarge({ owner }: SnapshotRow, others: readonly SnapshotRow[]): PlatformError {
    const used = bytesOf(others);
    const { snapshotBytes } = this.#options.quotas.of(owner);
    return exceeded(
      owner,
      `has stored ${formatBytes(used)} in ${countText(others.length)} and may store ${formatBytes(snapshotBytes)}, so this one does not fit`,
      "snapshotBytes",
      { usedBytes: used, snapshotBytes },
    );
  }

  async #stateOf({ parts, name }: ReadySnapshot, id: string): Promise<Partial<InitialState>> {
    const part = parts.find((one) => one.name.startsWith(STATE));
    if (part === undefined) return {};
    const stored = await readBoundedText(await this.#options.content.open(part.digest), { maxBytes: MAX_STATE_BYTES });
    try {
      const { variables: _, ...state } = parseInitialState(id, parseBoundedJson(stored));
      return state;
    } catch (cause) {
      throw new PlatformError("snapshot.invalid", `the state in snapshot '${name}' cannot be read`, { cause });
    }
  }

  /** Removes the row first: what is left after a crash has no row and is removed by a sweep. */
  async #discard(row: SnapshotRow): Promise<void> {
    const { rows, content } = this.#options;
    const found = await rows.find(snapshotKey(row));
    const latest = found?.value.id === row.id ? found : null;
    if (latest !== null && !(await rows.remove(latest.key, latest.rev))) return this.#discard(row);
    await content.remove([...row.parts, ...(latest?.value.parts ?? [])].map(({ digest }) => digest));
  }
}

/** What a sandbox got as a variable is in its memory, and its programs may have written it to a file. The state is stored without variables. */
function assertNoSecrets(
  { id, secretVariables = [] }: Subject,
  { fidelity = "state", include_secrets: isAllowed = false }: SnapshotRequest,
): void {
  if (fidelity === "state" || isAllowed || secretVariables.length === 0) return;
  throw new PlatformError(
    "request.invalid",
    `instance '${id}' got secrets as ${secretVariables.join(", ")}, which its ${fidelity} may contain; store its state only, or allow it with "include_secrets": true (includeSecrets in the SDK, --include-secrets of aenv snapshot create)`,
  );
}

function countText(count: number): string {
  return `${count} snapshot${count === 1 ? "" : "s"}`;
}

function maySee(row: SnapshotRow, caller: Caller): boolean {
  return isInScope(caller, row.environment.name) && (caller.roles.has("admin") || row.owner === caller.owner);
}

function exceeded(owner: string, problem: string, setting: string, details: object): PlatformError {
  const advice = `delete snapshots that are not needed (aenv snapshot list), or ask the operator to raise ${setting}`;
  return new PlatformError("quota.exceeded", `'${owner}' ${problem}; ${advice}`, { retryable: false, details: { owner, ...details } });
}

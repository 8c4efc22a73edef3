import { setTimeout as pause } from "node:timers/promises";
import { type ForkFidelity, instancePrefix, isPlatformError, newInstanceId, PlatformError } from "@aenv/contract";
import { describeCut, type SandboxSnapshot } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { Quotas } from "../access/quotas.ts";
import type { EnvironmentVersion, Hub } from "../hub/hub.ts";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import { hasLink } from "../slots/platform-link.ts";
import type { Slot } from "../slots/slot.ts";
import type { Slots } from "../slots/slots.ts";
import { mergeVariables, platformVariables } from "../slots/variables.ts";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import { childGrants } from "./children.ts";
import { assertRemembered, type Idempotency } from "./idempotency.ts";
import type { InstanceTable } from "./instance-table.ts";
import { newForkRow } from "./new-row.ts";
import type { RequestContext } from "./request-context.ts";
import { type InstanceRow, isSettled, slotOf, withEvent } from "./row.ts";
import { hideIn, type Starter } from "./starter.ts";
import type { Trees } from "./trees.ts";

export interface ForksOptions {
  readonly table: InstanceTable;
  readonly starter: Starter;
  readonly slots: Slots;
  readonly tasks: TaskSandboxes;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly idempotency: Idempotency;
  readonly trees: Trees;
  readonly serverId: string;
  readonly now: () => Date;
}

/** Forks of instances. In a shared process they run beside their parent, else each gets a process of its own. */
export class Forks {
  readonly #options: ForksOptions;

  constructor(options: ForksOptions) {
    this.#options = options;
  }

  /** Without a fidelity, the copies continue with what is usual for the instance. */
  async fork(parent: InstanceRow, count: number, wanted: ForkFidelity | undefined, context: RequestContext): Promise<InstanceRow[]> {
    const { idempotency, now } = this.#options;
    const ids = Array.from({ length: count }, () => newInstanceId(parent.environment.name));
    const { idempotencyKey: key } = context;
    if (key === undefined) return this.#make(parent, ids, wanted, context);

    const reserved = await idempotency.reserve(
      parent.owner,
      key,
      { fork: parent.id, count, ...(wanted !== undefined && wanted !== "state" && { fidelity: wanted }) },
      ids,
    );
    for (;;) {
      const known = await this.#known(reserved.instanceIds, context.signal);
      if (known !== null) return known;
      assertRemembered(reserved, now());
      try {
        // A repeated request finds the forks of the first one, so they are made even if the first client has gone.
        return await this.#make(parent, reserved.instanceIds, wanted, { ...context, signal: new AbortController().signal });
      } catch (error) {
        // Another request with the same key came first.
        if (!isPlatformError(error, "instance.exists")) throw error;
      }
    }
  }

  /** The forks that a request with the same key has made; null if there was none. */
  async #known(ids: readonly string[], signal: AbortSignal): Promise<InstanceRow[] | null> {
    for (;;) {
      const rows = (await Promise.all(ids.map((id) => this.#options.table.find(id)))).filter((row) => row !== null);
      if (rows.length === 0) return null;
      const failed = rows.find(({ reasonCode }) => reasonCode !== null);
      if (failed !== undefined) throw new PlatformError(failed.reasonCode ?? "instance.start_failed", failed.reason ?? "the fork failed");
      if (!rows.every(isSettled)) await pause(POLL_MS, undefined, { signal });
      else if (rows.length === ids.length) return rows;
      else throw new PlatformError("instance.gone", "some of the forks that this idempotency key has made have ended and were deleted");
    }
  }

  async #make(
    parent: InstanceRow,
    ids: readonly string[],
    wanted: ForkFidelity | undefined,
    context: RequestContext,
  ): Promise<InstanceRow[]> {
    const { quotas, serverId, now, starter, slots, trees } = this.#options;
    const slot = slotOf(parent);
    const fidelity = wanted ?? (await slots.sandboxCopies.usualFidelity(slot, context.signal));
    assertForkable(parent, fidelity);
    await slots.sandboxCopies.assertCopyable(parent.id, slot, fidelity, "forked", context.signal);
    const environment = parent.hasChildren === true ? await this.#environmentOf(parent, context.caller) : null;
    const [first = ""] = ids;
    const group = ids.length > 1 || environment !== null ? first : null;
    const { tokenId } = context.caller;
    const rows = ids.map((id) => {
      const fork = newForkRow(parent, id, { group, fidelity, now: now(), serverId });
      const row = tokenId === null ? fork : { ...fork, tokenId };
      // Stored before the fork exists: if the shared process ends meanwhile, its server finds all its instances.
      return slot.isOwnSandbox ? row : { ...row, slot: { ...slot, prefix: instancePrefix(id) } };
    });
    const below = environment === null ? [] : (await Promise.all(rows.map((row) => trees.rowsBelow(row, environment)))).flat();
    quotas.admitCreate(parent.owner, rows.length + below.length);
    return starter.track(this.#start(parent, slot, rows, below, fidelity, context));
  }

  async #start(
    parent: InstanceRow,
    slot: Slot,
    rows: readonly InstanceRow[],
    below: readonly InstanceRow[],
    fidelity: ForkFidelity,
    context: RequestContext,
  ): Promise<InstanceRow[]> {
    const { table, quotas, starter, slots } = this.#options;
    const { caller } = context;
    const max = Math.min(quotas.instanceLimit(parent.owner), caller.maxInstances ?? Number.MAX_SAFE_INTEGER);
    const [first, ...others] = rows as [InstanceRow, ...InstanceRow[]];
    // The first is inserted alone: of two requests with the same key, one fails here.
    await table.insert(first, max);
    let taken: readonly Slot[] = [];
    try {
      await all([...others, ...below].map((row) => table.insert(row, max)));
      taken = await this.#occupy(parent, slot, rows, fidelity, context);
      // All have a slot before the first becomes `Running`, so that recovery after a crash here finds the group incomplete.
      const change = slot.isOwnSandbox ? {} : { server: parent.server };
      return await all(rows.map((row, at) => starter.becomeRunning(row.id, taken[at] as Slot, change)));
    } catch (error) {
      for (const { id } of below) await table.fail(id, error, true);
      for (const [at, { id }] of rows.entries()) {
        const own = taken[at];
        if (own !== undefined) await slots.release(own, id);
        await table.fail(id, error, true);
      }
      throw error;
    }
  }

  #occupy(
    parent: InstanceRow,
    slot: Slot,
    rows: readonly InstanceRow[],
    fidelity: ForkFidelity,
    context: RequestContext,
  ): Promise<readonly Slot[]> {
    const { slots } = this.#options;
    if (fidelity === "memory")
      return slots.sandboxCopies.withSnapshot(parent.id, slot, fidelity, context.signal, (snapshot) =>
        this.#copy(parent, slot, rows, snapshot, context),
      );
    if (fidelity === "files")
      return slots.sandboxCopies.withSnapshot(parent.id, slot, fidelity, context.signal, (snapshot) =>
        this.#occupyOwn(parent, slot, rows, context, snapshot.id),
      );
    if (slot.isOwnSandbox) return this.#occupyOwn(parent, slot, rows, context);
    return this.#forkInSandbox(parent, slot, rows, context.signal);
  }

  async #copy(
    parent: InstanceRow,
    slot: Slot,
    rows: readonly InstanceRow[],
    { id: snapshot, cut = [] }: SandboxSnapshot,
    { caller, signal }: RequestContext,
  ): Promise<Slot[]> {
    const { slots, starter, table } = this.#options;
    const lost = describeCut(cut);
    if (lost !== null) await all(rows.map(({ id }) => table.change(id, (row, now) => withEvent(row, lost, now))));
    // A fork needs no bundle, so the version may be deleted. Only a program has to be looked up.
    const resolved = this.#environmentOf(parent, caller);
    const environment = slot.program === undefined ? await resolved.catch(() => null) : await resolved;
    return this.#allOrNone(rows, ({ id }) =>
      starter.admit(
        id,
        parent.owner,
        (stop) => slots.occupyCopy(parent, id, { id: snapshot, isTemporary: true }, environment, stop),
        signal,
      ),
    );
  }

  #environmentOf({ environment: { name, version } }: InstanceRow, caller: Caller): Promise<EnvironmentVersion> {
    return this.#options.hub.resolve(`${name}@${version}`, caller);
  }

  async #forkInSandbox(parent: InstanceRow, slot: Slot, rows: readonly InstanceRow[], signal: AbortSignal): Promise<Slot[]> {
    const ids = rows.map(({ id }) => id);
    await this.#options.slots.forkInSandbox(parent.id, slot, ids, signal);
    return ids.map((id) => ({ ...slot, prefix: instancePrefix(id) }));
  }

  async #occupyOwn(
    parent: InstanceRow,
    slot: Slot,
    rows: readonly InstanceRow[],
    { caller, signal }: RequestContext,
    sandboxSnapshot?: string,
  ): Promise<Slot[]> {
    const { slots, starter, tasks } = this.#options;
    const environment = await this.#environmentOf(parent, caller);
    const reported =
      slot.program === undefined
        ? await slots.sandboxCopies.readInitialState(parent.id, slot, signal)
        : await slots.sandboxCopies.readProgramState(parent, slot);
    // Without a snapshot of its sandbox, a program continues from its own.
    const state = slot.program !== undefined && sandboxSnapshot === undefined;
    const stored = state ? await slots.sandboxCopies.storeProgram(parent.id, slot, signal) : {};
    const variables = mergeVariables(ownVariables(environment), reported.variables, platformVariables(parent));
    const initial = {
      ...reported,
      ...stored,
      variables,
      sandboxOptions: parent.sandboxOptions,
      egress: parent.egress?.agent,
      taskSandboxes: parent.taskSandboxes,
      platformLink: hasLink(parent),
      models: parent.models,
      children: await childGrants(environment, this.#options.hub),
      sandboxSnapshot,
      ttl: parent.ttl,
      labels: parent.labels,
    };
    const hidden = (parent.secretVariables ?? []).flatMap((name) => reported.variables[name] || []);
    try {
      return await this.#allOrNone(rows, ({ id }) => starter.occupy(environment, parent.owner, { ...initial, id, together: rows.length }));
    } catch (error) {
      throw hideIn(error, hidden);
    } finally {
      for (const { snapshot } of reported.taskCopies ?? []) await tasks.removeSnapshot(snapshot);
    }
  }

  /** Slots for all rows; if one fails, the others are released. */
  async #allOrNone(rows: readonly InstanceRow[], occupy: (row: InstanceRow) => Promise<Slot>): Promise<Slot[]> {
    const { slots } = this.#options;
    const placed: { slot: Slot; id: string }[] = [];
    try {
      return await all(
        rows.map(async (row) => {
          const own = await occupy(row);
          placed.push({ slot: own, id: row.id });
          return own;
        }),
      );
    } catch (error) {
      for (const one of placed) await slots.release(one.slot, one.id);
      throw error;
    }
  }
}

/** The sandboxes of a fork's parent are copied with their files, and nothing else of the parent's second container. */
function assertForkable({ id, taskSandboxes, hasChildren }: InstanceRow, fidelity: ForkFidelity): void {
  const unsupported = (why: string) => new PlatformError("instance.unsupported", `instance '${id}' cannot be forked: ${why}`);
  if (taskSandboxes?.hasSharedFolder === true)
    throw unsupported('it shares the folder /shared with its second container; set deployConfig.isolation to "shared", which has none');
  if (hasChildren === true && fidelity !== "state") throw unsupported(`its children are not copied with its ${fidelity}; fork its state`);
  if (taskSandboxes !== undefined && fidelity === "memory")
    throw unsupported("its code opens sandboxes, whose memory is not copied; fork its state");
}

const POLL_MS = 100;

/** Settles only when all work has settled, so that a cleanup after a failure misses nothing. */
async function all<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

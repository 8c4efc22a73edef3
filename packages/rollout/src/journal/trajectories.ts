import { rename, rm } from "node:fs/promises";
import { isObject, PlatformError, type Trajectory, trajectory } from "@aenv/contract";
import { z } from "zod";
import { digestOf } from "./digest.ts";
import { Journal, readJournal } from "./journal.ts";

/** The part of a trajectory that its forks have in common. */
type Prefix = Pick<Trajectory, "messages" | "steps" | "turns">;

/** A trajectory as its line has it: what it shares with others is named, not written out. */
export type StoredTrajectory = Omit<Trajectory, (typeof SHARED)[number]> & Readonly<Record<string, unknown>>;

/** Fields that many trajectories of a run have alike; each value is stored once and named by its digest. */
const SHARED = ["tools", "offered_tools", "provenance"] as const;

const sharedRecord = z.object({ type: z.literal("shared"), digest: z.string(), value: z.unknown() });
const prefixRecord = z.object({ type: z.literal("prefix"), id: z.string(), value: z.unknown() });
const trajectoryRecord = z.object({ type: z.literal("trajectory"), value: z.custom<StoredTrajectory>(isObject) });
const record = z.discriminatedUnion("type", [sharedRecord, prefixRecord, trajectoryRecord]);

/** Appends trajectories to a journal. What they share is written before the first that needs it. */
export class TrajectoryWriter implements AsyncDisposable {
  readonly #journal: Journal;
  readonly #written: Set<string>;
  /** The digest of the last prefix with an id. */
  readonly #prefixes: Map<string, string>;

  private constructor(journal: Journal, written: Set<string>, prefixes: Map<string, string>) {
    this.#journal = journal;
    this.#written = written;
    this.#prefixes = prefixes;
  }

  /** `onTrajectory` is called for each trajectory that is there already, with its id and whatever else is in its line. */
  static async open(path: string, onTrajectory: (stored: StoredTrajectory) => void = () => {}): Promise<TrajectoryWriter> {
    const written = new Set<string>();
    const prefixes = new Map<string, string>();
    const journal = await Journal.open(path, (raw) => {
      const one = parseRecord(raw, path);
      if (one.type === "trajectory") onTrajectory(one.value);
      else if (one.type === "shared") written.add(one.digest);
      else prefixes.set(one.id, digestOf(one.value));
    });
    return new TrajectoryWriter(journal, written, prefixes);
  }

  /**
   * Takes whole trajectories. What the forks of one episode have in common is written once, before the first of them. All lines of a
   * trajectory are queued in one step: no other trajectory with another prefix can come between them.
   */
  add(one: Trajectory): Promise<void> {
    const value: Record<string, unknown> = { ...one };
    const { parent } = one;
    const lines: Record<string, unknown>[] = [];
    if (parent !== null) {
      const prefix = partOf(one, (all, count) => all.slice(0, count));
      lines.push(...this.#newPrefix(parent.id, prefix));
      Object.assign(
        value,
        partOf(one, (all, count) => all.slice(count)),
      );
    }
    for (const field of SHARED) {
      if (one[field] === undefined) continue;
      const digest = digestOf(one[field]);
      value[field] = digest;
      if (!this.#written.has(digest)) lines.push({ type: "shared", digest, value: one[field] });
      this.#written.add(digest);
    }
    const written = [...lines, { type: "trajectory", value }].map((line) => this.#journal.append(line));
    return Promise.all(written).then(() => {});
  }

  /** The line of a prefix, unless it is the last one with this id. */
  #newPrefix(id: string, prefix: Prefix): Record<string, unknown>[] {
    // An agent may go on from the fork with the same conversation in other words. A reader takes the last prefix before a trajectory.
    const digest = digestOf(prefix);
    if (this.#prefixes.get(id) === digest) return [];
    this.#prefixes.set(id, digest);
    return [{ type: "prefix", id, value: prefix }];
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function partOf({ messages, steps, turns, parent }: Trajectory, take: <T>(all: readonly T[], count: number) => T[]): Prefix {
  const { messages: ofMessages = 0, steps: ofSteps = 0, turns: ofTurns = 0 } = parent ?? {};
  return { messages: take(messages, ofMessages), steps: take(steps, ofSteps), turns: take(turns, ofTurns) };
}

/** The trajectories of a journal, whole: with what they share, and forks with what came before the fork. */
export async function* readTrajectories(path: string): AsyncGenerator<Trajectory> {
  const shared = new Map<string, unknown>();
  const prefixes = new Map<string, Prefix>();
  for await (const entry of readJournal(path)) {
    const one = parseRecord(entry.record, path);
    if (one.type === "shared") shared.set(one.digest, one.value);
    else if (one.type === "prefix") prefixes.set(one.id, one.value as Prefix);
    else yield whole(one.value, shared, prefixes, path);
  }
}

export async function countTrajectories(path: string, isCounted: (stored: StoredTrajectory) => boolean): Promise<number> {
  let count = 0;
  for await (const { record: raw } of readJournal(path)) {
    const one = parseRecord(raw, path);
    if (one.type === "trajectory" && isCounted(one.value)) count++;
  }
  return count;
}

/** Replaces a journal by one without some of its trajectories. A crash leaves the one or the other. */
export async function rewriteTrajectories(path: string, isKept: (stored: StoredTrajectory) => boolean): Promise<void> {
  const part = `${path}.part`;
  await rm(part, { force: true });
  const journal = await Journal.open(part);
  try {
    for await (const { record: raw } of readJournal(path)) {
      const one = parseRecord(raw, path);
      if (one.type !== "trajectory" || isKept(one.value)) await journal.append(raw);
    }
  } finally {
    await journal.close();
  }
  await rename(part, path);
  // Only now: as long as there is no other file, the compressed one is the journal.
  await rm(`${path}.gz`, { force: true });
}

function whole(
  stored: Readonly<Record<string, unknown>>,
  shared: ReadonlyMap<string, unknown>,
  prefixes: ReadonlyMap<string, Prefix>,
  path: string,
): Trajectory {
  const value: Record<string, unknown> = { ...stored };
  for (const field of SHARED) if (field in stored) value[field] = shared.get(String(stored[field]));
  const parsed = trajectory.safeParse(value);
  if (!parsed.success) throw unreadable(path, `trajectory '${String(stored.id)}': ${z.prettifyError(parsed.error)}`);
  const { parent } = parsed.data;
  if (parent === null) return parsed.data;
  const prefix = prefixes.get(parent.id);
  if (prefix === undefined) throw unreadable(path, `trajectory '${parsed.data.id}' is a fork of '${parent.id}', which is not in the file`);
  return {
    ...parsed.data,
    messages: [...prefix.messages, ...parsed.data.messages],
    steps: [...prefix.steps, ...parsed.data.steps],
    turns: [...prefix.turns, ...parsed.data.turns],
  };
}

function parseRecord(raw: unknown, path: string): z.infer<typeof record> {
  const parsed = record.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw unreadable(path, `a line is no record that this version knows: ${z.prettifyError(parsed.error)}`);
}

function unreadable(path: string, reason: string): PlatformError {
  return new PlatformError("store.damaged", `${path} cannot be read: ${reason}`);
}

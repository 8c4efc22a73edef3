import { PlatformError, type Trajectory, trajectory } from "@aenv/contract";
import { z } from "zod";
import { digestOf } from "./digest.ts";
import { Journal, readJournal } from "./journal.ts";

/** The part of a trajectory that its forks have in common. */
export type Prefix = Pick<Trajectory, "messages" | "steps" | "turns">;

/** Fields that many trajectories of a run have alike; each value is stored once and named by its digest. */
const SHARED = ["tools", "offered_tools", "provenance"] as const;

const sharedRecord = z.object({ type: z.literal("shared"), digest: z.string(), value: z.unknown() });
const prefixRecord = z.object({ type: z.literal("prefix"), id: z.string(), value: z.unknown() });
const trajectoryRecord = z.object({ type: z.literal("trajectory"), value: z.record(z.string(), z.unknown()) });
const record = z.discriminatedUnion("type", [sharedRecord, prefixRecord, trajectoryRecord]);

/** Appends trajectories to a journal. What they share is written before the first that needs it. */
export class TrajectoryWriter implements AsyncDisposable {
  readonly #journal: Journal;
  readonly #written: Set<string>;

  private constructor(journal: Journal, written: Set<string>) {
    this.#journal = journal;
    this.#written = written;
  }

  /** `onTrajectory` is called for each trajectory that is there already, with its id and whatever else is in its line. */
  static async open(path: string, onTrajectory: (stored: Readonly<Record<string, unknown>>) => void = () => {}): Promise<TrajectoryWriter> {
    const written = new Set<string>();
    const journal = await Journal.open(path, (raw) => {
      const one = parseRecord(raw, path);
      if (one.type === "trajectory") onTrajectory(one.value);
      else written.add(one.type === "shared" ? one.digest : one.id);
    });
    return new TrajectoryWriter(journal, written);
  }

  async add(one: Trajectory): Promise<void> {
    const value: Record<string, unknown> = { ...one };
    for (const field of SHARED) if (one[field] !== undefined) value[field] = await this.#share(one[field]);
    await this.#journal.append({ type: "trajectory", value });
  }

  /** Stores what the forks of one trajectory have in common; each then holds only what came after, and names it as its parent. */
  async addPrefix(id: string, prefix: Prefix): Promise<void> {
    if (this.#written.has(id)) return;
    this.#written.add(id);
    await this.#journal.append({ type: "prefix", id, value: prefix });
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #share(value: unknown): Promise<string> {
    const digest = digestOf(value);
    if (!this.#written.has(digest)) {
      this.#written.add(digest);
      await this.#journal.append({ type: "shared", digest, value });
    }
    return digest;
  }
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

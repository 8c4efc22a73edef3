import { type CommandEnding, PlatformError } from "@aenv/contract";
import type { RemoteProcess } from "@aenv/sandbox";
import { BoundedOutput } from "./bounded-output.ts";
import { fromInit } from "./init-failure.ts";

export interface FinishedCommand extends CommandEnding {
  readonly process: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** A part of a command's output. */
export interface OutputPart {
  readonly channel: "stdout" | "stderr";
  readonly data: Buffer;
}

/** Both outputs in the order in which they arrive, then how the command ended. Null if nothing happened for `quietMs`. */
export async function* outputOf(
  process: RemoteProcess,
  quietMs: number,
): AsyncGenerator<OutputPart | CommandEnding | null, void, undefined> {
  const outputs = (["stdout", "stderr"] as const).map((channel) => ({ channel, from: process[channel][Symbol.asyncIterator]() }));
  const next = async (one: (typeof outputs)[number]) => ({ one, result: (await one.from.next()) as IteratorResult<Buffer> });
  const waiting = new Map(outputs.map((one) => [one, next(one)]));
  try {
    while (waiting.size > 0) {
      const quiet = Promise.withResolvers<null>();
      const timer = setTimeout(() => quiet.resolve(null), quietMs);
      const first = await Promise.race([...waiting.values(), quiet.promise]).finally(() => clearTimeout(timer));
      if (first === null) {
        yield null;
        continue;
      }
      const { one, result } = first;
      if (result.done) waiting.delete(one);
      else {
        waiting.set(one, next(one));
        yield { channel: one.channel, data: result.value };
      }
    }
    yield await process.exited;
  } catch (error) {
    for (const rest of waiting.values()) rest.catch(() => {});
    throw fromInit(error);
  }
}

/** Waits for the end of a command. `onKept` is told how many bytes more are kept of its output. */
export async function finished(
  process: RemoteProcess,
  maxOutputBytes: number,
  onKept: (bytes: number) => void = () => {},
): Promise<FinishedCommand> {
  const kept = { stdout: new BoundedOutput(maxOutputBytes), stderr: new BoundedOutput(maxOutputBytes) };
  for await (const part of outputOf(process, 2 ** 31 - 1)) {
    if (part === null) continue;
    if ("channel" in part) {
      const before = kept[part.channel].keptBytes;
      kept[part.channel].push(part.data);
      const more = kept[part.channel].keptBytes - before;
      if (more > 0) onKept(more);
    } else {
      const droppedBytes = part.droppedBytes + kept.stdout.droppedBytes + kept.stderr.droppedBytes;
      return { ...part, process: process.id, droppedBytes, stdout: kept.stdout.bytes(), stderr: kept.stderr.bytes() };
    }
  }
  throw new PlatformError("sandbox.lost", `the end of command ${process.id} was not reported`);
}

import { once } from "node:events";
import { PlatformError } from "@aenv/contract";
import type { FastifyReply } from "fastify";
import type { Slots } from "../slots/slots.ts";
import type { InstanceRow } from "./row.ts";

/** The output of an instance's sandbox. Instances in a shared process have the same owner and share its output. */
export class InstanceLogs {
  readonly #slots: Slots;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  async answer(row: InstanceRow, tail: number, isFollowing: boolean, reply: FastifyReply, signal: AbortSignal): Promise<unknown> {
    const sandbox = row.slot === null ? null : await this.#slots.find(row.slot.sandboxId);
    if (sandbox === null) {
      throw new PlatformError(
        "instance.gone",
        `instance '${row.id}' has no sandbox here any more${row.reason === null ? "" : `: ${row.reason}`}; see its events`,
      );
    }
    const lines = tail === 0 ? [] : await sandbox.tail(tail);
    if (!isFollowing) return reply.type("text/plain; charset=utf-8").send(lines.map((line) => `${line}\n`).join(""));
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform" });
    raw.flushHeaders();
    const ping = setInterval(() => raw.write(": ping\n\n"), 15_000);
    try {
      for (const line of lines) raw.write(toEvent(line));
      for await (const line of sandbox.follow(signal)) {
        // Not faster than the client reads; the output is kept in a file.
        if (!raw.write(toEvent(line))) await once(raw, "drain", { signal }).catch(() => {});
      }
    } finally {
      clearInterval(ping);
      raw.end();
    }
    return undefined;
  }
}

/** One event per line. A carriage return would end the field, and the rest could pose as another field. */
function toEvent(line: string): string {
  return `data: ${line.replaceAll("\r", " ")}\n\n`;
}

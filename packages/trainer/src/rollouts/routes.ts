import { Readable } from "node:stream";
import { constants, createGzip } from "node:zlib";
import {
  MAX_ROLLOUTS,
  rolloutId,
  rolloutPage,
  rolloutResult,
  rolloutsAccepted,
  rolloutsRequest,
  TimedSignal,
  rolloutRoutes as table,
} from "@aenv/contract";
import { type ApiRequest, type ApiRoute, bodyLimits, endpointOf, route } from "@aenv/server/trainer-services";
import { z } from "zod";
import { Delivered } from "./delivered.ts";
import { parseFields } from "./result.ts";
import { streamResults } from "./results-stream.ts";
import type { Rollouts } from "./rollouts.ts";
import { type RolloutRow, statusOf } from "./row.ts";

export interface RolloutRouteOptions {
  readonly rollouts: Rollouts;
  readonly pingMs?: number;
  readonly pollMs?: number;
}

type Ask = ApiRequest<unknown, unknown, unknown>;

const PING_MS = 15_000;
const POLL_MS = 1_000;
const LONGEST_WAIT_SECONDS = 60;
/** A page ends when its results are larger than this. */
const PAGE_BYTES = 16 * 1024 ** 2;
/** Fifty for each rollout of the largest request. Reading so many takes about half a second. */
const MAX_FIELDS = 50 * MAX_ROLLOUTS;
/** Ids in one line of the audit log. */
const AUDITED_IDS = 100;

const id = z.object({ id: rolloutId });
const fields = { fields: z.string().max(1_000).optional().describe("names of the fields of a result to return, separated by commas") };
/** Characters that are sent at once. */
const CHUNK = 64 * 1024;

export function rolloutRoutes({ rollouts, pingMs = PING_MS, pollMs = POLL_MS }: RolloutRouteOptions): ApiRoute[] {
  const trainer = ["trainer", "publisher"] as const;
  const common = { tag: "rollouts", roles: trainer, isRaw: true } as const;

  return [
    route({
      ...endpointOf(table.createRollouts),
      ...common,
      summary: "Play episodes against the caller's model; with `stream` their results follow, else the ids that were accepted",
      answer: { type: "application/json", alsoType: "application/x-ndjson", schema: rolloutsAccepted },
      audited: { event: "rollout.created", of: (_, { body }) => body.rollouts.slice(0, AUDITED_IDS).map((one) => one.id) },
      query: z.object(fields),
      body: rolloutsRequest,
      maxBodyBytes: bodyLimits.snapshot,
      maxBodyFields: MAX_FIELDS,
      handle: async (ask) => {
        const selected = parseFields(ask.query.fields);
        const isSse = /\btext\/event-stream\b/.test(ask.request.headers.accept ?? "");
        const last = ask.request.headers["last-event-id"];
        const delivered = Delivered.parse(typeof last === "string" ? last : undefined, ask.body.rollouts.length);
        const keys = await rollouts.submit(ask.body, ask.caller);
        if (!ask.body.stream && !isSse) return ask.reply.code(202).send({ accepted: ask.body.rollouts.map((one) => one.id) });
        const signal = AbortSignal.any([ask.signal, rollouts.closing]);
        const items = streamResults({ rollouts, keys, delivered: delivered.positions(), signal, pingMs, pollMs });
        const lines = async function* () {
          // At once, so that the client has the status and knows that its rollouts were accepted.
          yield isSse ? ": accepted\n\n" : `${JSON.stringify({ type: "ping" })}\n`;
          for await (const item of items) {
            if (item.kind === "ping") yield isSse ? ": ping\n\n" : `${JSON.stringify({ type: "ping" })}\n`;
            else {
              delivered.add(item.at);
              const head = isSse ? `id: ${delivered}\nevent: result\ndata: ` : "";
              yield* inChunks(around(head, item.result.texts(selected), isSse ? "\n\n" : "\n"));
            }
          }
          if (isSse && !signal.aborted) yield "event: end\ndata: {}\n\n";
        };
        return sendLines(ask, isSse ? "text/event-stream" : "application/x-ndjson", lines());
      },
    }),
    route({
      ...endpointOf(table.pageRollouts),
      ...common,
      summary: "List the caller's rollouts, by id, with the results of those that are done",
      answer: { type: "application/json", schema: rolloutPage },
      query: z.object({
        ...fields,
        run: rolloutId.optional(),
        after: rolloutId.optional(),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      handle: async (ask) => {
        const { limit } = ask.query;
        const selected = parseFields(ask.query.fields);
        const rows = await rollouts.list(ask.query, ask.caller);
        const page = firstBytes(rows, PAGE_BYTES);
        const isLast = page.length === rows.length && rows.length < limit;
        const next = isLast ? null : (page.at(-1)?.id ?? null);
        const texts = async function* () {
          let text = '{"rollouts":[';
          for (const row of page) {
            const result = await rollouts.resultOf(row);
            yield `${text}${JSON.stringify(statusOf(row)).slice(0, -1)},"result":`;
            if (result === null) yield "null";
            else yield* result.texts(selected);
            text = "},";
          }
          yield `${page.length === 0 ? text : "}"}],"next":${JSON.stringify(next)}}`;
        };
        return sendJson(ask, texts());
      },
    }),
    route({
      ...endpointOf(table.getRollout),
      ...common,
      summary: "Get the result of a rollout, or 202 and its status; `wait` delays the response up to so many seconds",
      answer: { type: "application/json", schema: rolloutResult.partial().required({ id: true }) },
      params: id,
      query: z.object({ ...fields, wait: z.coerce.number().min(0).default(0) }),
      handle: async (ask) => {
        const selected = parseFields(ask.query.fields);
        let row = await rollouts.get(ask.params.id, ask.caller);
        if (row.state !== "done" && ask.query.wait > 0) {
          await untilDone(rollouts, `${row.owner}/${row.id}`, Math.min(ask.query.wait, LONGEST_WAIT_SECONDS) * 1_000, pollMs, ask.signal);
          row = await rollouts.get(ask.params.id, ask.caller);
        }
        const result = await rollouts.resultOf(row);
        if (result === null) return ask.reply.code(202).send(statusOf(row));
        return sendJson(ask, result.texts(selected));
      },
    }),
    route({
      ...endpointOf(table.cancelRollout),
      ...common,
      summary: "Cancel a rollout at once; one that is done stays as it is",
      // 204 without a body.
      answer: { type: "text/plain" },
      audited: { event: "rollout.cancelled", of: (_, { params }) => [params.id] },
      params: id,
      handle: async (ask) => {
        await rollouts.cancel(ask.params.id, ask.caller);
        return ask.reply.code(204).send();
      },
    }),
  ];
}

/** Waits until the rollout is done, the time is over, or the client is gone. */
async function untilDone(rollouts: Rollouts, key: string, ms: number, pollMs: number, signal: AbortSignal): Promise<void> {
  using limit = new TimedSignal(ms, signal);
  const stop = AbortSignal.any([limit.signal, rollouts.closing]);
  const items = streamResults({ rollouts, keys: [key], delivered: new Set(), signal: stop, pingMs: ms, pollMs });
  for await (const item of items) if (item.kind === "result") return;
}

/** The first rows whose results are not larger than so many bytes together, and the one that exceeds them. */
function firstBytes(rows: readonly RolloutRow[], maxBytes: number): readonly RolloutRow[] {
  let bytes = 0;
  const end = rows.findIndex(({ done }) => {
    bytes += done?.bytes ?? 0;
    return bytes > maxBytes;
  });
  return end < 0 ? rows : rows.slice(0, end + 1);
}

async function* around(before: string, texts: AsyncIterable<string>, after: string): AsyncGenerator<string> {
  yield before;
  yield* texts;
  yield after;
}

/** Joins short texts: each that is sent costs a write. */
async function* inChunks(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let chunk = "";
  for await (const text of texts) {
    chunk += text;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}

function sendJson(ask: Ask, texts: AsyncIterable<string>): unknown {
  return sendTexts(ask, "application/json; charset=utf-8", inChunks(texts), constants.Z_NO_FLUSH);
}

function sendLines(ask: Ask, type: string, lines: AsyncIterable<string>): unknown {
  ask.reply.header("cache-control", "no-cache, no-transform").header("x-accel-buffering", "no");
  // Flushed after each line: a client must not wait for a result until the next ones fill a block.
  return sendTexts(ask, type, lines, constants.Z_SYNC_FLUSH);
}

/** Texts are taken as the client reads them, so one that does not read holds no more than one or two of them here. */
function sendTexts({ request, reply }: Ask, type: string, texts: AsyncIterable<string>, flush: number): unknown {
  const source = Readable.from(texts);
  reply.type(type).header("vary", "accept-encoding");
  if (!acceptsGzip(request.headers["accept-encoding"])) return reply.send(source);
  const zipped = createGzip({ flush });
  source.on("error", (error) => zipped.destroy(error));
  zipped.on("close", () => source.destroy());
  return reply.header("content-encoding", "gzip").send(source.pipe(zipped));
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? "")
    .split(",")
    .some((one) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$))?/i.test(one) && !/;\s*q=0(\.0*)?\s*$/.test(one));
}

import { once } from "node:events";
import { Readable } from "node:stream";
import { fileRoutes, PlatformError } from "@aenv/contract";
import type { FileInfo } from "@aenv/sandbox";
import { z } from "zod";
import type { FileContext, Files } from "../commands/files.ts";
import * as answers from "./answers.ts";
import { type ApiRequest, type ApiRoute, bodyLimits, endpointOf, enveloped, route } from "./route.ts";

export interface FileRouteOptions {
  readonly files: Files;
}

const params = z.object({ id: z.string().min(1).max(128) });
const path = z.string().min(1).max(4_096).describe("a relative path begins at the sandbox's working directory");
const yes = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true");
const mode = z
  .string()
  .regex(/^0?[0-7]{3}$/, "must be octal, such as 0644")
  .transform((text) => Number.parseInt(text, 8))
  .optional();
const MAX_LISTED = 100_000;

type Ask = ApiRequest<{ id: string }, unknown, unknown>;

/** Files in the sandbox of an instance. They are for its owner; an agent has no access to the control port. */
export function fileApi({ files }: FileRouteOptions): ApiRoute[] {
  const common = { tag: "sandboxes", roles: ["trainer", "publisher"], params } as const;
  const reads = {
    event: "files.read",
    of: (_: unknown, { params, query }: { params: { id: string }; query: { path: string } }) => [`${params.id}:${query.path}`],
  } as const;
  const changes = { ...reads, event: "files.changed" } as const;
  const changesBody = {
    event: "files.changed",
    of: (_: unknown, { params, body }: { params: { id: string }; body: { path: string } }) => [`${params.id}:${body.path}`],
  } as const;
  return [
    route({
      ...common,
      ...endpointOf(fileRoutes.readFile),
      summary: "Read a file, or with a Range header a part of it; its permissions are in X-File-Mode",
      answer: { type: "application/octet-stream" },
      audited: reads,
      query: z.object({ path }),
      isRaw: true,
      handle: async (ask) => {
        const { range } = ask.request.headers;
        const { info, content, offset, length } = await files.read(contextOf(ask), ask.query.path, range);
        void ask.reply
          .type("application/octet-stream")
          .header("x-file-mode", octal(info.mode))
          .header("last-modified", new Date(info.modifiedMs).toUTCString())
          .header("accept-ranges", "bytes");
        if (length !== null) void ask.reply.header("content-length", length);
        if (length !== null && length < info.size)
          void ask.reply.code(206).header("content-range", `bytes ${offset}-${offset + length - 1}/${info.size}`);
        return ask.reply.send(content);
      },
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.writeFile),
      summary:
        "Write a file: the body is its content. It appears at once when all of it has arrived; an existing file keeps its owner and mode",
      answer: enveloped(answers.done),
      audited: changes,
      query: z.object({ path, mode, mkdirs: yes, append: yes, user: z.string().optional() }),
      maxBodyBytes: bodyLimits.file,
      isRaw: true,
      handle: async (ask) => {
        const { path: to, mode, mkdirs, append, user } = ask.query;
        const options = { mkdirs, append, ...(mode !== undefined && { mode }), ...(user !== undefined && { user }) };
        await files.write(contextOf(ask), to, bodyOf(ask), options);
        return ask.reply.send(DONE);
      },
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.removeFile),
      summary: "Remove a file or an empty folder, or with `recursive` a folder and all that is in it",
      answer: answers.done,
      audited: changes,
      query: z.object({ path, recursive: yes }),
      handle: async (ask) => {
        await files.remove(contextOf(ask), ask.query.path, ask.query.recursive);
        return true;
      },
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.listFiles),
      summary: "List a folder in the order of names; links are not followed",
      answer: answers.files.list,
      audited: reads,
      query: z.object({ path, recursive: yes, limit: z.coerce.number().int().min(1).max(MAX_LISTED).default(10_000) }),
      handle: async (ask) => {
        const { path: from, recursive, limit } = ask.query;
        const { files: found, isTruncated } = await files.list(contextOf(ask), from, { recursive, limit });
        return { files: found.map(infoFields), truncated: isTruncated };
      },
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.statFile),
      summary: "Type, size, permissions and time of a file or folder; of a link itself, unless `follow`",
      answer: answers.files.one,
      audited: reads,
      query: z.object({ path, follow: yes }),
      handle: async (ask) => infoFields(await files.stat(contextOf(ask), ask.query.path, ask.query.follow)),
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.makeFolder),
      summary: "Create a folder; with `parents` also those above it, and an existing one is no error",
      answer: answers.done,
      audited: changesBody,
      body: z.strictObject({ path, mode, parents: z.boolean().default(false) }),
      maxBodyBytes: bodyLimits.fields,
      handle: async (ask) => {
        const { path: at, mode, parents } = ask.body;
        await files.mkdir(contextOf(ask), at, { parents, ...(mode !== undefined && { mode }) });
        return true;
      },
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.renameFile),
      summary: "Rename a file or folder; a file at the new path is replaced",
      answer: answers.done,
      audited: changesBody,
      body: z.strictObject({ path, to: path }),
      maxBodyBytes: bodyLimits.fields,
      handle: async (ask) => {
        await files.rename(contextOf(ask), ask.body.path, ask.body.to);
        return true;
      },
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.watchFiles),
      summary: "Changes in a folder as server-sent events; the first event, `ready`, says that changes are recorded",
      answer: { type: "text/event-stream" },
      audited: reads,
      query: z.object({ path, recursive: yes }),
      isRaw: true,
      handle: async (ask) => {
        const changed = await files.watch(contextOf(ask), ask.query.path, ask.query.recursive);
        void streamChanges(changed, ask);
        return ask.reply.hijack();
      },
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.packFiles),
      summary: "Read a folder, or a file, as a tar archive",
      answer: { type: "application/x-tar" },
      audited: reads,
      query: z.object({ path }),
      isRaw: true,
      handle: async (ask) => ask.reply.type("application/x-tar").send(await files.pack(contextOf(ask), ask.query.path)),
    }),
    route({
      ...common,
      ...endpointOf(fileRoutes.unpackFiles),
      summary: "Unpack a tar archive into a folder, which is created; an entry that leads out of the folder is refused",
      answer: enveloped(answers.done),
      audited: changes,
      query: z.object({ path, user: z.string().optional() }),
      maxBodyBytes: bodyLimits.file,
      isRaw: true,
      handle: async (ask) => {
        await files.unpack(contextOf(ask), ask.query.path, bodyOf(ask), ask.query.user);
        return ask.reply.send(DONE);
      },
    }),
  ];
}

const DONE = { success: true, code: 0, message: "", data: true };

function contextOf({ params, caller, signal }: Ask): FileContext {
  return { id: params.id, caller, signal };
}

/** The bytes of the body, while they arrive. */
async function* bodyOf({ request }: Ask): AsyncGenerator<Uint8Array> {
  const body = request.body instanceof Readable ? request.body : request.raw;
  let received = 0;
  for await (const part of body) {
    received += part.length;
    if (received > bodyLimits.file) throw new PlatformError("request.too_large", `the body is larger than ${bodyLimits.file} bytes`);
    yield part;
  }
}

function octal(mode: number): string {
  return `0${mode.toString(8).padStart(3, "0")}`;
}

function infoFields({ modifiedMs, mode, ...info }: FileInfo) {
  return { ...info, mode: octal(mode), modified_at: new Date(modifiedMs).toISOString() };
}

async function streamChanges(changes: AsyncIterable<unknown>, { reply, signal, request }: Ask): Promise<void> {
  const { raw } = reply;
  raw.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform" });
  raw.write("event: ready\ndata: {}\n\n");
  const ping = setInterval(() => raw.write(": ping\n\n"), 15_000);
  try {
    for await (const change of changes) {
      if (!raw.write(`data: ${JSON.stringify(change)}\n\n`)) await once(raw, "drain", { signal });
    }
  } catch (error) {
    if (!signal.aborted) request.log.warn({ err: error }, "a watch of files was lost");
  } finally {
    clearInterval(ping);
    raw.end();
  }
}

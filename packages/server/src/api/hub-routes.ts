import type { Readable } from "node:stream";
import { environmentStatuses, fieldLimits, knownFields, PlatformError, text } from "@aenv/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Download, Hub } from "../hub/hub.ts";
import { toFullRecord, toRecord } from "../hub/versions/record.ts";
import * as answers from "./answers.ts";
import { type ApiRoute, bodyLimits, enveloped, route } from "./route.ts";

const version = z.object({ name: z.string(), version: z.string() });
const named = z.object({ name: z.string() });
const upsert = z.record(z.string(), z.unknown());
const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  offset: z.coerce.number().int().min(0).default(0),
  name: z.string().optional(),
  q: z.string().optional(),
  tag: z.string().optional(),
  tags: z.string().optional(),
});
const verify = z.object({ verify: z.enum(["true", "false"]).default("true") });

const readers = ["trainer", "publisher"] as const;
const publisher = ["publisher"] as const;

/** The hub: the original's routes, and new ones. */
export function hubRoutes(hub: Hub): ApiRoute[] {
  const tag = "environments" as const;
  const search = (query: z.infer<typeof pageQuery>) => ({
    limit: query.limit,
    offset: query.offset,
    ...(query.name !== undefined && { name: query.name }),
    ...(query.q !== undefined && { query: query.q }),
    ...((query.tag ?? query.tags) !== undefined && { tag: query.tag ?? query.tags?.split(",")[0] ?? "" }),
  });

  return [
    route({
      method: "POST",
      path: "/env",
      summary: "Publish a version; identical content again is a no-op, different content is refused",
      answer: answers.done,
      audited: { event: "environment.published", of: (_, { body }) => [`${body.name}@${body.version}`] },
      tag,
      roles: publisher,
      query: verify,
      body: upsert,
      maxBodyBytes: bodyLimits.config,
      handle: async ({ body, caller, query, signal }) => {
        await hub.publish(body, caller, { verify: query.verify === "true", signal });
        return true;
      },
    }),
    route({
      method: "GET",
      path: "/env",
      summary: "List environments by name, text and tag, a page at a time; the total is in X-Total-Count",
      answer: answers.environments.list,
      tag,
      roles: readers,
      query: pageQuery,
      handle: async ({ query, caller, reply }) => {
        const { items, total } = await hub.list(search(query), caller);
        void reply.header("x-total-count", String(total));
        return items.map(toRecord);
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/environments/search",
      summary: "List environments, at the path of the original's client",
      answer: answers.environments.search,
      tag,
      roles: readers,
      query: pageQuery,
      handle: async ({ query, caller }) => {
        const { items, total } = await hub.list(search(query), caller);
        return { environments: items.map(toRecord), total };
      },
    }),
    route({
      method: "GET",
      path: "/env/:name",
      summary: "The versions of a name, newest first, each with its history",
      answer: answers.environments.versions,
      tag,
      roles: readers,
      params: named,
      handle: async ({ params, caller }) => hub.versions(params.name, caller),
    }),
    route({
      method: "DELETE",
      path: "/env/:name",
      summary: "Delete all versions of a name, or none if one cannot be deleted",
      answer: answers.environments.deleted,
      audited: { event: "environment.deleted", of: (_, { params }) => [params.name] },
      tag,
      roles: publisher,
      params: named,
      handle: async ({ params, caller }) => hub.remove(params.name, null, caller),
    }),
    route({
      method: "GET",
      path: "/env/:name/:version",
      summary: "One version; `latest` and ranges such as `^1.2` are resolved",
      answer: answers.environments.one,
      tag,
      roles: readers,
      params: version,
      handle: async ({ params, caller }) => toFullRecord(await hub.resolve(`${params.name}@${params.version}`, caller)),
    }),
    route({
      method: "PUT",
      path: "/env/:name/:version",
      summary: "Change a version's status and visibility; its content stays",
      answer: answers.done,
      audited: { event: "environment.changed", of: (_, { params }) => [refOf(params)] },
      tag,
      roles: publisher,
      params: version,
      body: upsert,
      maxBodyBytes: bodyLimits.config,
      handle: async ({ params, body, caller }) => {
        await hub.update(params.name, params.version, body, caller);
        return true;
      },
    }),
    route({
      method: "DELETE",
      path: "/env/:name/:version",
      summary: "Delete a version that is neither released nor in use",
      answer: answers.environments.deleted,
      audited: { event: "environment.deleted", of: (_, { params }) => [refOf(params)] },
      tag,
      roles: publisher,
      params: version,
      handle: async ({ params, caller }) => hub.remove(params.name, params.version, caller),
    }),
    route({
      method: "GET",
      path: "/env/:name/:version/exists",
      summary: "Whether a version exists",
      answer: answers.environments.exists,
      tag,
      roles: readers,
      params: version,
      handle: async ({ params, caller }) => {
        const found = await hub.exists(params.name, params.version, caller);
        return found.exists ? { exists: true, status: environmentStatuses.indexOf(found.status) } : { exists: false };
      },
    }),
    route({
      method: "GET",
      path: "/env/:name/:version/status",
      summary: "A version's status by name",
      answer: answers.environments.status,
      tag,
      roles: readers,
      params: version,
      handle: async ({ params, caller }) => ({ status: await hub.status(params.name, params.version, caller) }),
    }),
    route({
      method: "POST",
      path: "/env/:name/:version/release",
      summary: "Release a version; a released version cannot be deleted",
      answer: answers.done,
      audited: { event: "environment.changed", of: (_, { params }) => [refOf(params)] },
      tag,
      roles: publisher,
      params: version,
      handle: async ({ params, caller }) => {
        await hub.release(params.name, params.version, caller);
        return true;
      },
    }),
    route({
      method: "POST",
      path: "/env/:name/:version/aci_trigger",
      summary: "The original's build callback: sets the image of a version; a different image is refused",
      answer: z.null(),
      tag,
      roles: publisher,
      params: version,
      body: z.object({ image: text(fieldLimits.referenceLength).min(1) }),
      maxBodyBytes: bodyLimits.fields,
      handle: async ({ params, body, caller }) => {
        const { artifacts } = await hub.get(params.name, params.version, caller);
        const image = { id: "", type: "image", content: body.image };
        await hub.update(params.name, params.version, { artifacts: [...artifacts.filter((one) => one.type !== "image"), image] }, caller);
        return null;
      },
    }),
    route({
      method: "GET",
      path: "/data",
      summary: "The image of a data set's instance; always null, because this server has no data sets",
      answer: z.null(),
      tag,
      roles: readers,
      query: z.object({ scenario: z.string().min(1), instance: z.string().min(1) }),
      handle: async () => null,
    }),
    route({
      method: "POST",
      path: "/env/:name/:version/visibility",
      summary: "Set a version's visibility: private, public, or shared with named owners",
      answer: answers.done,
      audited: { event: "environment.changed", of: (_, { params }) => [refOf(params)] },
      tag,
      roles: publisher,
      params: version,
      body: knownFields({ visibility: z.string().optional(), sharedWith: z.array(z.string()).optional() }),
      maxBodyBytes: bodyLimits.fields,
      handle: async ({ params, body, caller }) => {
        await hub.setVisibility(params.name, params.version, body, caller);
        return true;
      },
    }),
    route({
      method: "POST",
      path: "/env/:name/:version/sign",
      summary: "Create a one-time link to upload a project's files, or with style=read to download them; the link needs no token",
      answer: answers.environments.link,
      tag,
      roles: readers,
      params: version,
      query: z.object({ style: z.string().optional() }),
      handle: async ({ params, query, caller, request }) => {
        const direction = query.style === "read" ? "download" : "upload";
        const { ticket } = await hub.transfers.sign(params.name, params.version, direction, caller);
        return `${originOf(request)}/transfer/${ticket}`;
      },
    }),
    route({
      method: "PUT",
      path: "/transfer/:ticket",
      summary: "Upload through a link",
      answer: enveloped(answers.done),
      maxBodyBytes: bodyLimits.archive,
      tag,
      roles: null,
      params: z.object({ ticket: z.string() }),
      isRaw: true,
      handle: async ({ params, request, reply, signal }) => {
        await hub.transfers.receive(params.ticket, streamOf(request.body), signal);
        return reply.code(200).send({ success: true, code: 0, message: "", data: true });
      },
    }),
    route({
      method: "GET",
      path: "/transfer/:ticket",
      summary: "Download through a link",
      answer: { type: "application/gzip" },
      tag,
      roles: null,
      params: z.object({ ticket: z.string() }),
      isRaw: true,
      handle: async ({ params, reply }) => sendDownload(reply, await hub.transfers.send(params.ticket)),
    }),
    route({
      method: "PUT",
      path: "/bundle/:digest",
      summary: "Upload a bundle under its digest, before publishing it",
      answer: enveloped(answers.environments.uploaded),
      maxBodyBytes: bodyLimits.archive,
      tag,
      roles: publisher,
      params: z.object({ digest: z.string() }),
      isRaw: true,
      handle: async ({ params, request, reply, caller, signal }) => {
        const blob = await hub.transfers.upload(params.digest, streamOf(request.body), caller, signal);
        return reply.send({ success: true, code: 0, message: "", data: { digest: blob.digest } });
      },
    }),
    route({
      method: "GET",
      path: "/bundle/:digest",
      summary: "Whether the caller has uploaded this bundle",
      answer: answers.environments.isUploaded,
      tag,
      roles: publisher,
      params: z.object({ digest: z.string() }),
      handle: async ({ params, caller }) => ({ exists: await hub.transfers.has(params.digest, caller) }),
    }),
    route({
      method: "GET",
      path: "/env/:name/:version/bundle",
      summary: "Download a version's archive",
      answer: { type: "application/gzip" },
      tag,
      roles: readers,
      params: version,
      isRaw: true,
      handle: async ({ params, caller, reply }) => sendDownload(reply, await hub.transfers.download(params.name, params.version, caller)),
    }),
  ];
}

function refOf({ name, version }: { name: string; version: string }): string {
  return `${name}@${version}`;
}

/** This server's origin, from the caller's own request. */
function originOf({ headers, protocol, host }: FastifyRequest): string {
  return `${headers["x-forwarded-proto"] === "https" ? "https" : protocol}://${host}`;
}

function sendDownload(reply: FastifyReply, { blob, fileName, stream }: Download): FastifyReply {
  return reply
    .type("application/gzip")
    .header("content-disposition", `attachment; filename="${fileName}"`)
    .header("x-digest", blob.digest)
    .send(stream);
}

/** A body that is not JSON arrives as a stream. */
function streamOf(body: unknown): Readable {
  if (typeof body === "object" && body !== null && "pipe" in body) return body as Readable;
  throw new PlatformError("request.invalid", "send the archive as the body, with content-type application/gzip");
}

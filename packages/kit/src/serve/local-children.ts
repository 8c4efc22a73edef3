import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { request as send } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ChildGrant,
  controlEnvelope,
  fillPath,
  hostRoutes,
  isErrorCode,
  isReexported,
  messageOf,
  newInstanceId,
  type OpenedChild,
  PlatformError,
  parseBoundedJson,
  readBoundedText,
  type ToolDescriptor,
  toolDescriptor,
} from "@aenv/contract";
import * as z from "zod";
import type { ChildAnswer, ChildHost, ChildRequest, ChildSpec } from "../children/backend.ts";
import type { LocalChild, LocalEnvironment } from "../definition/local-child.ts";

/** Serves the environment of a child in this process, without an instance. */
export type ServeChild = (environment: LocalEnvironment, socketPath: string) => Promise<{ close(): Promise<void> }>;

interface Place {
  readonly use: LocalChild;
  readonly target: { readonly socketPath: string } | { readonly url: string };
  readonly environment: string;
}

const MAX_ANSWER_BYTES = 64 * 1_024 ** 2;
const description = z.object({ name: z.string(), version: z.string(), tools: z.array(toolDescriptor) });

/** Children of an environment that is served without a platform. Their environments are served in the same process, or elsewhere. */
export class LocalChildren implements ChildHost {
  readonly ownGrants: readonly ChildGrant[];
  readonly #places: ReadonlyMap<string, Place>;
  readonly #close: () => Promise<void>;

  private constructor(places: readonly Place[], grants: readonly ChildGrant[], close: () => Promise<void>) {
    this.#places = new Map(places.map((place) => [place.use.name, place]));
    this.ownGrants = grants;
    this.#close = close;
  }

  static async open(uses: readonly LocalChild[], serveChild: ServeChild): Promise<LocalChildren> {
    const folder = await mkdtemp(join(tmpdir(), "aenv-"));
    const served: { close(): Promise<void> }[] = [];
    const close = async () => {
      await Promise.all(served.map((one) => one.close()));
      await rm(folder, { recursive: true, force: true });
    };
    try {
      const places: Place[] = [];
      const grants: ChildGrant[] = [];
      for (const [at, use] of uses.entries()) {
        const { environment } = use;
        const isElsewhere = "url" in environment;
        const socketPath = process.platform === "win32" ? `\\\\.\\pipe\\aenv-${randomUUID()}` : join(folder, `${at}.sock`);
        if (!isElsewhere) served.push(await serveChild(environment, socketPath));
        const target = isElsewhere ? { url: environment.url.replace(/\/$/, "") } : { socketPath };
        const { name, version, tools } = await describe(use.name, target);
        places.push({ use, target, environment: `${name}@${version}` });
        grants.push(grantOf(use, tools));
      }
      return new LocalChildren(places, grants, close);
    } catch (error) {
      await close();
      throw error;
    }
  }

  async open(_: string, { name, seed, task, snapshot }: ChildSpec, signal: AbortSignal | undefined): Promise<OpenedChild> {
    const { use, target, environment } = this.#placeOf(name);
    const id = newInstanceId(environment.split("@")[0] ?? name);
    const body = {
      id,
      seed,
      ...(task !== null && { task }),
      ...(snapshot !== undefined && { snapshot }),
      ...(use.variables !== undefined && { environment_variables: use.variables }),
    };
    const { method, path } = hostRoutes.create;
    await manage(target, { method, path, body }, signal);
    return { id: `${name}/${id}`, environment, digest: "" };
  }

  async request(_: string, { child, method, path, body }: ChildRequest, signal: AbortSignal | undefined): Promise<ChildAnswer> {
    const [name = "", id = ""] = child.split("/");
    return ask(this.#placeOf(name).target, { method, path: `${fillPath(hostRoutes.get, { id })}${path}`, body }, signal);
  }

  async close(_: string, child: string): Promise<void> {
    const [name = "", id = ""] = child.split("/");
    const { method } = hostRoutes.delete;
    await manage(this.#placeOf(name).target, { method, path: fillPath(hostRoutes.delete, { id }) });
  }

  /** Ends what is served for the children. */
  end(): Promise<void> {
    return this.#close();
  }

  #placeOf(name: string): Place {
    const place = this.#places.get(name);
    if (place === undefined) throw new PlatformError("instance.not_found", `there is no child '${name}'`);
    return place;
  }
}

function grantOf(use: LocalChild, tools: readonly ToolDescriptor[]): ChildGrant {
  const { name, task = "none", when = "start" } = use;
  return { name, task, when, reexport: tools.filter((tool) => isReexported(use, tool.name)) };
}

async function describe(name: string, target: Place["target"]): Promise<z.infer<typeof description>> {
  const { method, path } = hostRoutes.describe;
  const described = description.safeParse(await manage(target, { method, path }));
  if (described.success) return described.data;
  const where = "url" in target ? ` at ${target.url}` : "";
  throw new PlatformError(
    "environment.invalid",
    `the child '${name}'${where} does not describe itself as an environment does; serve it with 'aenv run'`,
  );
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

/** Asks the process of a child to create or delete an instance. */
async function manage(target: Place["target"], request: Request, signal?: AbortSignal): Promise<unknown> {
  const { status, text } = await ask(target, request, signal);
  const answer = controlEnvelope.safeParse(parseBoundedJson(text));
  if (answer.success && answer.data.success && status < 400) return answer.data.data;
  const { error, message } = answer.success ? answer.data : {};
  throw new PlatformError(isErrorCode(error?.code) ? error.code : "instance.start_failed", message ?? `it answered with ${status}`);
}

function ask(target: Place["target"], { method, path, body }: Request, signal?: AbortSignal): Promise<ChildAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { accept: "application/json, text/event-stream", ...(body !== undefined && { "content-type": "application/json" }) };
    const options = { method, headers, ...(signal !== undefined && { signal }) };
    const fail = (error: unknown) =>
      reject(
        signal?.aborted ? signal.reason : new PlatformError("sandbox.lost", `it does not answer: ${messageOf(error)}`, { cause: error }),
      );
    const onAnswer = (answer: import("node:http").IncomingMessage) => {
      const type = String(answer.headers["content-type"] ?? "");
      readBoundedText(answer, { maxBytes: MAX_ANSWER_BYTES }).then((text) => resolve({ status: answer.statusCode ?? 0, type, text }), fail);
    };
    const sent =
      "url" in target
        ? send(`${target.url}${path}`, options, onAnswer)
        : send({ ...options, socketPath: target.socketPath, path, headers: { ...headers, host: "localhost" } }, onAnswer);
    sent.on("error", fail).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

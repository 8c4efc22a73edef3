import { Readable } from "node:stream";
import { messageOf, PlatformError, parseBoundedJson, readBoundedText } from "@aenv/contract";
import { routeRuleFor } from "../gateway/route-rule.ts";
import type { Instances } from "../instances/instances.ts";
import { type InstanceRow, isLive, slotOf } from "../instances/row.ts";
import { receivedContent } from "../link/content.ts";
import { answerContent, type Handlers, type LinkRequest, type LinkTools } from "../link/link-request.ts";
import type { SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";

export type ChildPath = "/child/open" | "/child/request" | "/child/close";

export interface ChildRequestsOptions {
  readonly instances: Pick<Instances, "find" | "openChild" | "end">;
  readonly clients: SandboxClients;
  /** Whether an instance that still starts has its slot in this sandbox. */
  readonly isOccupant: (sandboxId: string, instanceId: string) => boolean;
}

const routes = routeRuleFor();

/** Answers the requests of instances about their children. An instance reaches its own children only, by the routes that agents and trainers have. */
export function childHandlers(options: ChildRequestsOptions, { idleMs }: LinkTools): Pick<Handlers, ChildPath> {
  const { instances, clients, isOccupant } = options;

  /** The instance for which the process asks. A process may act for its own instances only. */
  async function parentOf({ hostId, instanceId }: Pick<LinkRequest<ChildPath>, "hostId" | "instanceId">): Promise<InstanceRow> {
    const row = await instances.find(instanceId);
    if (row !== null && isLive(row) && (row.slot?.sandboxId === hostId || isOccupant(hostId, instanceId))) return row;
    throw new PlatformError("instance.not_found", `instance '${instanceId}' does not run in this process`);
  }

  /** Whether another instance exists is not told. */
  async function childOf(call: LinkRequest<"/child/request" | "/child/close">): Promise<InstanceRow> {
    const parent = await parentOf(call);
    const { child } = call.given;
    const row = await instances.find(child);
    if (row !== null && row.parent === parent.id) return row;
    throw new PlatformError("instance.not_found", `instance '${parent.id}' has no child '${child}'`);
  }

  return {
    "/child/open": async (call) => {
      const parent = await parentOf(call);
      const { name, episode, seed, task = null, has_snapshot: hasSnapshot } = call.given;
      const snapshot = hasSnapshot ? await snapshotIn(call, idleMs) : undefined;
      const { row, contentDigest } = await instances.openChild(parent, { name, episode, seed, task, snapshot }, call.signal);
      return { id: row.id, environment: `${row.environment.name}@${row.environment.version}`, digest: contentDigest };
    },
    "/child/request": async (call) => {
      const { method, path } = call.given;
      routes.check(path);
      const row = await childOf(call);
      if (row.status !== "Running") throw lost(row, row.reason ?? "it does not run");
      const { sandboxId, address, prefix } = slotOf(row);
      const hasBody = method !== "GET" && method !== "DELETE";
      const response = await clients
        .pool(sandboxId, address)
        .request({
          method,
          path: `${prefix}${path}`,
          signal: call.signal,
          headers: { accept: "application/json, text/event-stream", ...(hasBody && { "content-type": "application/json" }) },
          ...(hasBody && { body: Readable.from(receivedContent(call, idleMs)) }),
        })
        .catch((error: unknown) => {
          if (call.signal.aborted) throw call.signal.reason;
          throw lost(row, `it does not answer: ${messageOf(error)}`, error);
        });
      const type = response.headers["content-type"];
      return answerContent(call, answerOf(response.statusCode, String(type ?? ""), response.body), { idleMs, readsRequest: hasBody });
    },
    "/child/close": async (call) => {
      const row = await childOf(call);
      await instances.end(row.id, "the episode of its parent has ended");
    },
  };
}

/** The status and the content type in one line, then the body. */
async function* answerOf(status: number, type: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify({ status, type })}\n`);
  yield* body;
}

async function snapshotIn(call: LinkRequest<"/child/open">, idleMs: number): Promise<unknown> {
  const text = await readBoundedText(receivedContent(call, idleMs), { maxBytes: responseLimits.state });
  return parseBoundedJson(text);
}

function lost({ path = "" }: InstanceRow, why: string, cause?: unknown): PlatformError {
  return new PlatformError("sandbox.lost", `the child '${path}' is lost: ${why}`, { cause });
}

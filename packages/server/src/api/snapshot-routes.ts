import { isSnapshotId, type SnapshotRecord, snapshotRoutes as table } from "@aenv/contract";
import { z } from "zod";
import { bytesOf, isReady, type SnapshotRow } from "../snapshots/row.ts";
import type { Snapshots } from "../snapshots/snapshots.ts";
import * as answers from "./answers.ts";
import { type ApiRequest, type ApiRoute, endpointOf, route } from "./route.ts";

export interface SnapshotRouteOptions {
  readonly snapshots: Snapshots;
}

const params = z.object({ id: z.string().min(1).max(128).describe("the id, or the name of one of the caller's own") });

export function snapshotApi({ snapshots }: SnapshotRouteOptions): ApiRoute[] {
  const trainer = ["trainer", "publisher"] as const;
  const common = { tag: "snapshots", roles: trainer } as const;
  const find = ({ params, caller }: ApiRequest<{ id: string }, unknown, unknown>) =>
    snapshots.get(isSnapshotId(params.id) ? { id: params.id } : { name: params.id }, caller.owner, caller);

  return [
    route({
      ...endpointOf(table.pageSnapshots),
      ...common,
      summary: "List stored snapshots by name, a page at a time",
      answer: answers.snapshots.page,
      query: z.object({
        owner: z.string().optional().describe("for administrators"),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
        after: z.string().optional().describe("`next` of the page before"),
      }),
      handle: async (ask) => {
        const page = await snapshots.page(ask.query, ask.caller);
        return { items: page.rows.map(toRecord), next: page.next };
      },
    }),
    route({
      ...endpointOf(table.getSnapshot),
      ...common,
      summary: "Get a stored snapshot, by id or name",
      answer: answers.snapshots.one,
      params,
      handle: async (ask) => toRecord(await find(ask)),
    }),
    route({
      ...endpointOf(table.deleteSnapshot),
      ...common,
      summary: "Delete a stored snapshot, by id or name; instances that were started from it go on",
      answer: answers.deleted,
      audited: { event: "snapshot.deleted", of: (_, { params }) => [params.id] },
      params,
      handle: async (ask) => {
        await snapshots.remove(await find(ask));
        return "Deleted successfully";
      },
    }),
  ];
}

export function toRecord(row: SnapshotRow): SnapshotRecord {
  const { id, name, owner, fidelity, environment, instance, digest, createdAt, cut } = row;
  return {
    id,
    name,
    owner,
    fidelity,
    status: isReady(row) ? "Ready" : "Creating",
    bytes: bytesOf([row]),
    digest,
    environment: `${environment.name}@${environment.version}`,
    instance,
    created_at: createdAt,
    ...(fidelity === "memory" && { cut: [...cut] }),
  };
}

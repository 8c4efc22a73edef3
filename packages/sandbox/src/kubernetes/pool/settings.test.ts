import { expect, it, onTestFinished } from "vitest";
import type { KubernetesApi } from "../api/client.ts";
import { POOL_LABEL, WAITING_LABEL } from "../pod/names.ts";
import type { Pod } from "../pod/types.ts";
import { PodTable } from "../pods.ts";
import { scriptedApi } from "../testing/scripted-api.ts";
import type { PoolLimits } from "./plan.ts";
import { PodPool } from "./pool.ts";

/** A pod that another server keeps waiting. */
const theirs: Pod = {
  metadata: { name: "pool-one-1", uid: "uid-1", resourceVersion: "1", labels: { [POOL_LABEL]: "one", [WAITING_LABEL]: "true" } },
  spec: { containers: [{ name: "main", image: "any" }] },
  status: { phase: "Running", podIP: "127.0.0.1", containerStatuses: [{ name: "main", state: { running: {} } }] },
};

function openPool(api: KubernetesApi, limits: Pick<PoolLimits, "min" | "idleMs">): PodPool {
  const table = new PodTable(api, { namespace: "n", selector: "any", onChange: () => undefined, onGone: () => undefined });
  const options = { namespace: "n", unschedulableMs: 5_000, isShared: true, roundMs: 3_600_000 };
  const pool = new PodPool(api, table, { ...options, limits: { ...limits, max: limits.min, total: 8 } });
  onTestFinished(async () => {
    await pool.close();
    await table.close();
  });
  return pool;
}

/** What a server removes that wants no pods to wait itself. */
async function removedBy(idleMs: number): Promise<string[]> {
  await using scripted = await scriptedApi(({ method, path, query }) => {
    if (query.has("watch")) return null;
    if (method === "DELETE") return { status: 200, body: { kind: "Status", status: "Success" } };
    return { status: 200, body: { metadata: { resourceVersion: "2" }, items: path.endsWith("/pods") ? [theirs] : [] } };
  });
  await openPool(scripted.api, { min: 0, idleMs }).fill();
  return scripted.requests.filter(({ method }) => method === "DELETE").map(({ path }) => path.slice(path.lastIndexOf("/") + 1));
}

it("a server that wants no waiting pods leaves those of others that use them", async () => {
  expect(await removedBy(60_000)).toEqual([]);
});

it("any server removes waiting pods that nobody has used for long", async () => {
  expect(await removedBy(0)).toEqual(["pool-one-1"]);
});

it("pods that another server was faster to create count, so that none is created beyond the target", async () => {
  const named = (name: string): Pod => ({ ...theirs, metadata: { ...theirs.metadata, name, uid: name } });
  await using scripted = await scriptedApi(({ method, path, query }) => {
    if (query.has("watch")) return null;
    if (method === "POST") return { status: 409, body: { kind: "Status", reason: "AlreadyExists" } };
    const name = path.slice(path.lastIndexOf("/") + 1);
    return { status: 200, body: name === "pods" ? { metadata: { resourceVersion: "1" }, items: [] } : named(name) };
  });
  const pool = openPool(scripted.api, { min: 2, idleMs: 60_000 });
  expect(await pool.claim({ digest: "one", waiting: named }, named("sandbox"), new AbortController().signal)).toBeNull();
  await pool.fill();
  const created = scripted.requests.filter(({ method }) => method === "POST").map(({ body }) => (body as Pod).metadata.name);
  expect(created).toEqual(["pool-one-1", "pool-one-2"]);
});

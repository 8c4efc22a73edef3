import { expect, it, onTestFinished } from "vitest";
import { POOL_LABEL, WAITING_LABEL } from "../pod/names.ts";
import type { Pod } from "../pod/types.ts";
import { PodTable } from "../pods.ts";
import { scriptedApi } from "../testing/scripted-api.ts";
import { PodPool } from "./pool.ts";

/** A pod that another server keeps waiting. */
const theirs: Pod = {
  metadata: { name: "pool-one-1", uid: "uid-1", resourceVersion: "1", labels: { [POOL_LABEL]: "one", [WAITING_LABEL]: "true" } },
  spec: { containers: [{ name: "main", image: "any" }] },
  status: { phase: "Running", podIP: "127.0.0.1", containerStatuses: [{ name: "main", state: { running: {} } }] },
};

/** What a server removes that wants no pods to wait itself. */
async function removedBy(idleMs: number): Promise<string[]> {
  await using scripted = await scriptedApi(({ method, path, query }) => {
    if (query.has("watch")) return null;
    if (method === "DELETE") return { status: 200, body: { kind: "Status", status: "Success" } };
    return { status: 200, body: { metadata: { resourceVersion: "2" }, items: path.endsWith("/pods") ? [theirs] : [] } };
  });
  const { api } = scripted;
  const table = new PodTable(api, { namespace: "n", selector: "any", onChange: () => undefined, onGone: () => undefined });
  const limits = { min: 0, max: 0, total: 8, idleMs };
  const pool = new PodPool(api, table, { namespace: "n", limits, unschedulableMs: 5_000, isShared: true, roundMs: 3_600_000 });
  onTestFinished(async () => {
    await pool.close();
    await table.close();
  });
  await pool.fill();
  return scripted.requests.filter(({ method }) => method === "DELETE").map(({ path }) => path.slice(path.lastIndexOf("/") + 1));
}

it("a server that wants no waiting pods leaves those of others that use them", async () => {
  expect(await removedBy(60_000)).toEqual([]);
});

it("any server removes waiting pods that nobody has used for long", async () => {
  expect(await removedBy(0)).toEqual(["pool-one-1"]);
});

import type { ServiceReplica } from "@aenv/sandbox";
import type { Target } from "../instances/targets.ts";
import type { ServiceRow } from "./row.ts";

/** A call's target in a replica that the engine runs. It is no instance: no row in the store has its id. */
export function targetIn(row: ServiceRow, { id, address }: ServiceReplica): Extract<Target, { kind: "ready" }> {
  const slot = { sandboxId: id, address, prefix: "", isOwnSandbox: true, program: { hasServer: true, healthPath: null } };
  return {
    kind: "ready",
    instanceId: id,
    sandboxId: id,
    address,
    prefix: "",
    owner: row.owner,
    row: {
      id,
      agentKey: "",
      owner: row.owner,
      environment: row.environment,
      digest: "",
      status: "Running",
      reason: null,
      reasonCode: null,
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
      expiresAt: row.createdAt,
      lastUsedAt: row.updatedAt,
      ttl: "",
      idleSeconds: null,
      labels: {},
      task: null,
      seed: 0,
      datasource: "",
      image: null,
      slot,
      server: "",
      group: null,
      events: [],
      service: row.id,
    },
  };
}

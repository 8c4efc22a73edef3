import { noAbilities, type SandboxSpec } from "@aenv/sandbox";
import { expect, it } from "vitest";
import { readServerConfig } from "../config/config.ts";
import { SandboxClients } from "../sandboxes/client.ts";
import { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { openPool } from "./open.ts";

/** What the engine is asked for when the pool is filled, by a server that reports to this collector. */
async function specFor(otlpUrl: string): Promise<SandboxSpec> {
  const specs: SandboxSpec[] = [];
  const create = async (spec: SandboxSpec) => {
    specs.push(spec);
    throw new Error("this engine starts nothing");
  };
  const { pool } = openPool({
    config: readServerConfig({ flags: { otlpUrl, poolMin: 1 }, variables: {} }),
    engine: { name: "none", can: noAbilities, create } as never,
    space: new SnapshotSpace(),
    clients: new SandboxClients(),
    runner: ["runner"],
    serverId: "r-1",
    versionStatus: async () => "newest",
    onFillFailure: () => {},
  });
  await pool.warmUp();
  await pool.close();
  return specs[0] as SandboxSpec;
}

it("variables of a process are not shown by its engine if the URL of the collector has a password or a token", async () => {
  expect(await specFor("http://collector:4318")).toHaveProperty("startsEarly", true);
  for (const url of ["http://team:secret@collector:4318", "http://token@collector:4318", "http://collector:4318/?key=secret"]) {
    const spec = await specFor(url);
    expect(spec.variables).toMatchObject({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
    expect(spec).not.toHaveProperty("startsEarly");
  }
});

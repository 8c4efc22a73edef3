import { defineEnvironment } from "@aenv/kit";
import { MemoryEngine } from "@aenv/sandbox";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parsePublication } from "../hub/publishing/publication.ts";
import { kitRunner } from "../instances/fixtures/runner.ts";
import { SandboxClients } from "../sandboxes/client.ts";
import { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { Pool } from "./pool.ts";
import { RuntimePolicy } from "./runtimes.ts";
import { Scheduler, type WorkLimits } from "./scheduler.ts";
import { Verifier, WAITING_VERIFICATIONS } from "./verifier.ts";

const publication = parsePublication({ name: "a", version: "1.0.0", artifacts: [{ type: "bundle", content: `sha256:${"0".repeat(64)}` }] });
const of = (owner: string) => ({ owner, variables: {}, publication });

/** A verifier whose verifications wait at a gate, so that a test decides how many run. */
function openVerifier({ waitTimeoutMs = 5_000, ...limits }: Partial<WorkLimits> & { waitTimeoutMs?: number } = {}) {
  const tree = temporaryTree();
  const gate = Promise.withResolvers<void>();
  const program = kitRunner(defineEnvironment({ tools: [] }), tree.path);
  const engine = new MemoryEngine({
    start: async (spec, self) => {
      const answer = await program(spec, self);
      return (request, response) => void gate.promise.then(() => answer(request, response));
    },
  });
  // The start of a process does not wait at the gate.
  const create = engine.create.bind(engine);
  const started: string[] = [];
  engine.create = (spec, signal) => {
    started.push(spec.id);
    return create(spec, signal);
  };
  const clients = new SandboxClients();
  const scheduler = new Scheduler({ verifications: { atOnce: 3, atOncePerOwner: 2, ...WAITING_VERIFICATIONS, ...limits } });
  const pool = new Pool({
    engine,
    space: new SnapshotSpace(),
    clients,
    runner: ["runner"],
    variables: {},
    serverId: "r-1",
    min: 0,
    limits: { each: 0, perOwner: 0, total: 0 },
    scheduler,
    refillAfterMs: 0,
    startTimeoutMs: 5_000,
    resources: { memoryMb: 64 },
    versionStatus: async () => "newest",
    onFillFailure: () => {},
    now: () => 0,
  });
  const runtimes = new RuntimePolicy({ engine, runtime: "runc", runcOwners: [] });
  const verifier = new Verifier({ engine, pool, clients, runtimes, startTimeoutMs: 5_000, waitTimeoutMs, scheduler });
  onTestFinished(async () => {
    gate.resolve();
    await verifier.close();
    await pool.close();
    await clients.close();
    await engine.close();
    tree[Symbol.dispose]();
  });
  return { verifier, engine, started, open: gate.resolve };
}

describe("verification", () => {
  it("runs up to the limits at once, in total and per owner; the others wait, and each gets its result", async () => {
    const { verifier, started, open } = openVerifier();
    const asked = ["ada", "ada", "ada", "ada", "bob", "bob"].map((owner, n) => verifier.verify(`/bundles/${n}`, of(owner)));
    await vi.waitFor(() => expect(started).toHaveLength(3));
    expect([verifier.running, verifier.waiting]).toEqual([3, 3]);
    open();
    expect(await Promise.all(asked)).toHaveLength(6);
    expect([verifier.running, verifier.waiting]).toEqual([0, 0]);
  });

  it("refuses one more when too many of an owner are waiting, and says when to retry", async () => {
    const { verifier, open } = openVerifier({ atOnce: 1 });
    const asked = Array.from({ length: 17 }, (_, n) => verifier.verify(`/bundles/${n}`, of("ada")));
    await expect(verifier.verify("/bundles/more", of("ada"))).rejects.toMatchObject({
      code: "quota.exceeded",
      details: { retryAfterSeconds: 1 },
    });
    const other = verifier.verify("/bundles/other", of("bob"));
    open();
    await Promise.all([...asked, other]);
  });

  it("refuses a verification that has waited too long, and says when to retry", async () => {
    const { verifier, open } = openVerifier({ atOnce: 1, waitTimeoutMs: 20 });
    const first = verifier.verify("/bundles/1", of("ada"));
    await expect(verifier.verify("/bundles/2", of("bob"))).rejects.toMatchObject({
      code: "quota.exceeded",
      details: { retryAfterSeconds: 10 },
    });
    expect(verifier.waiting).toBe(0);
    open();
    await first;
  });

  it("leaves no process when it is closed, and starts none that waited", async () => {
    const { verifier, engine, started, open } = openVerifier({ atOnce: 2 });
    const asked = Promise.allSettled(["ada", "bob", "eve"].map((owner) => verifier.verify(`/bundles/${owner}`, of(owner))));
    await vi.waitFor(() => expect(started).toHaveLength(2));
    await verifier.close();
    for (const { status } of await asked) expect(status).toBe("rejected");
    open();
    expect(await engine.list()).toEqual([]);
    expect(started).toHaveLength(2);
  });
});

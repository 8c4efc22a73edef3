import { defineEnvironment } from "@aenv/kit";
import { MemoryEngine } from "@aenv/sandbox";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { kitRunner } from "../instances/fixtures/runner.ts";
import { SandboxClients } from "../sandboxes/client.ts";
import { Pool } from "./pool.ts";
import { Verifier, type VerifierOptions } from "./verifier.ts";

const of = (owner: string) => ({ owner, variables: {} });

/** An verifier whose verifications wait at a gate, so that a test decides how many run. */
function openVerifier(options: Partial<VerifierOptions> = {}) {
  const tree = temporaryTree();
  const gate = Promise.withResolvers<void>();
  const program = kitRunner(defineEnvironment({ tools: [] }), tree.path);
  const engine = new MemoryEngine({
    start: async (spec, self) => {
      const answer = await program(spec, self);
      return (request, response) => void gate.promise.then(() => answer(request, response));
    },
  });
  // Whether a process answers at all is not what waits here.
  const create = engine.create.bind(engine);
  const started: string[] = [];
  engine.create = (spec, signal) => {
    started.push(spec.id);
    return create(spec, signal);
  };
  const clients = new SandboxClients();
  const pool = new Pool({
    engine,
    clients,
    runner: ["runner"],
    variables: {},
    serverId: "r-1",
    min: 0,
    limits: { each: 0, perOwner: 0, total: 0 },
    startsAtOnce: 10,
    refillAfterMs: 0,
    startTimeoutMs: 5_000,
    memoryMb: 64,
    standingOf: async () => "newest",
    onTrouble: () => {},
    now: () => 0,
  });
  const verifier = new Verifier({ pool, clients, startTimeoutMs: 5_000, waitTimeoutMs: 5_000, atOnce: 3, atOncePerOwner: 2, ...options });
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
  it("runs so many at once, in all and of one owner; the others wait, and each gets its answer", async () => {
    const { verifier, started, open } = openVerifier();
    const asked = ["ada", "ada", "ada", "ada", "bob", "bob"].map((owner, n) => verifier.inspect(`/bundles/${n}`, of(owner)));
    await vi.waitFor(() => expect(started).toHaveLength(3));
    expect([verifier.running, verifier.waiting]).toEqual([3, 3]);
    open();
    expect(await Promise.all(asked)).toHaveLength(6);
    expect([verifier.running, verifier.waiting]).toEqual([0, 0]);
  });

  it("refuses one more at once when too many of an owner wait, with when to come again", async () => {
    const { verifier, open } = openVerifier({ atOnce: 1 });
    const asked = Array.from({ length: 17 }, (_, n) => verifier.inspect(`/bundles/${n}`, of("ada")));
    await expect(verifier.inspect("/bundles/more", of("ada"))).rejects.toMatchObject({
      code: "quota.exceeded",
      details: { retryAfterSeconds: 1 },
    });
    const other = verifier.inspect("/bundles/other", of("bob"));
    open();
    await Promise.all([...asked, other]);
  });

  it("tells whoever has waited too long for a turn to come again", async () => {
    const { verifier, open } = openVerifier({ atOnce: 1, waitTimeoutMs: 20 });
    const first = verifier.inspect("/bundles/1", of("ada"));
    await expect(verifier.inspect("/bundles/2", of("bob"))).rejects.toMatchObject({
      code: "quota.exceeded",
      details: { retryAfterSeconds: 10 },
    });
    expect(verifier.waiting).toBe(0);
    open();
    await first;
  });

  it("leaves no process when it is closed, and begins none that waited", async () => {
    const { verifier, engine, started, open } = openVerifier({ atOnce: 2 });
    const asked = Promise.allSettled(["ada", "bob", "eve"].map((owner) => verifier.inspect(`/bundles/${owner}`, of(owner))));
    await vi.waitFor(() => expect(started).toHaveLength(2));
    await verifier.close();
    for (const { status } of await asked) expect(status).toBe("rejected");
    open();
    expect(await engine.list()).toEqual([]);
    expect(started).toHaveLength(2);
  });
});

import { PlatformError } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DELEGATE, Delegates } from "../access/delegates.ts";
import { Tokens, tokenRows } from "../access/tokens.ts";
import { type InstanceRow, instanceRows } from "../instances/row.ts";
import { Targets } from "../instances/targets.ts";
import { MemoryStore } from "../stores/memory/store.ts";
import { Channel } from "./channel.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { RemoteDelegates } from "./remote-delegates.ts";
import { RemoteStore } from "./remote-store.ts";
import { type LinkMessage, WorkerLink } from "./worker-link.ts";

const slot = { sandboxId: "b", address: { kind: "unix", path: "/s" }, prefix: "/env-instance/i", isOwnSandbox: true };
const common = { agentKey: "k", owner: "ada", environment: { name: "shop", version: "1.0.0" }, group: null, server: "r", idleSeconds: 5 };
const running = (id: string) => ({ ...common, id, status: "Running", slot }) as unknown as InstanceRow;
const ended = (id: string) => ({ ...running(id), status: "Terminated", slot: null, reason: "deleted" }) as InstanceRow;

/** A server and a worker in one process. `deliver` decides when a message arrives; each direction keeps its order. */
function connect(deliver: (work: () => void) => void = (work) => queueMicrotask(work)) {
  const store = new MemoryStore();
  const rows = instanceRows(store);
  const delegates = new Delegates((token) => link.delegateEnded(token));
  const uses: string[] = [];
  const toWorker = ordered<ToWorker>(deliver, (message) => {
    if (message.type === "answer" || message.type === "error") channel.onAnswer(message);
    else if (message.type === "row") targets.note(message.row);
    else if (message.type === "token revoked") tokens.forgetVerified();
    else if (message.type === "delegate ended") remoteDelegates.end(message.token);
    else if (message.type === "confirm") channel.send({ type: "confirmed", id: message.id });
  });
  const link = new WorkerLink(
    {
      store,
      delegates,
      rewardPhases: { enter: async () => () => uses.push("left reward"), left: () => null },
      onUse: ({ id }) => uses.push(`used ${id}`),
      onUsed: ({ id }) => uses.push(`unused ${id}`),
    },
    toWorker,
  );
  const channel = new Channel(ordered<FromWorker>(deliver, (message) => link.onMessage(message as LinkMessage)));
  const remote = new RemoteStore(channel);
  const targets = new Targets(instanceRows(remote));
  const tokens = new Tokens(tokenRows(remote), () => new Date());
  const remoteDelegates = new RemoteDelegates(channel);
  const serverTokens = new Tokens(tokenRows(store), () => new Date(), {
    onRevoked: () => {
      toWorker({ type: "token revoked" });
      return link.confirmed();
    },
  });
  /** Changes a row as the server does. */
  const change = async (row: InstanceRow) => {
    await rows.update(row.id, () => row);
    link.note(row);
  };
  return { store, rows, link, channel, targets, tokens, serverTokens, delegates, remoteDelegates, uses, change };
}

function ordered<T>(deliver: (work: () => void) => void, receive: (message: T) => void): (message: T) => void {
  const queue: T[] = [];
  return (message) => {
    queue.push(structuredClone(message));
    deliver(() => receive(queue.shift() as T));
  };
}

describe("a worker", () => {
  it("does not use an instance any more when its server has confirmed the end, whatever it reads meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(fc.constantFrom("id", "key"), { minLength: 1, maxLength: 4 }), async (scheduler, reads) => {
        const { rows, link, targets, change } = connect((work) => void scheduler.schedule(Promise.resolve()).then(work));
        await rows.insert("i", running("i"));
        const reading = reads.map((by) => (by === "id" ? targets.find("i") : targets.findByAgentKey("k")));
        let isConfirmed = false;
        const ending = scheduler
          .schedule(Promise.resolve())
          .then(() => change(ended("i")))
          .then(() => link.confirmed())
          .then(() => {
            isConfirmed = true;
            expect(targets.peek("i")).toBeNull();
          });
        await scheduler.waitFor(Promise.all([...reading, ending]));
        expect(isConfirmed).toBe(true);
        expect(targets.peek("i")).toBeNull();
        expect(await scheduler.waitFor(targets.find("i"))).toMatchObject({ kind: "gone" });
      }),
    );
  });

  it("does not accept a token any more when its revocation is done, whatever it verifies meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.nat(4), async (scheduler, checks) => {
        const { tokens, serverTokens } = connect((work) => void scheduler.schedule(Promise.resolve()).then(work));
        const { token, row } = await serverTokens.create({ owner: "ada", roles: ["trainer"] });
        const checking = Array.from({ length: checks }, () => tokens.verify(token));
        const revoking = scheduler.schedule(Promise.resolve()).then(() => serverTokens.revoke(row.id));
        await scheduler.waitFor(revoking);
        expect(await scheduler.waitFor(tokens.verify(token))).toBeNull();
        await scheduler.waitFor(Promise.all(checking));
        expect(await scheduler.waitFor(tokens.verify(token))).toBeNull();
      }),
    );
  });

  it("knows the tokens by which its server acts for callers until they end", async () => {
    const { delegates, remoteDelegates, link } = connect();
    const caller = { owner: "ada", roles: new Set(["trainer"] as const), tokenId: null, maxInstances: null };
    const { token, [Symbol.dispose]: end } = delegates.grant(caller);
    expect(await remoteDelegates.find(token)).toEqual(caller);
    expect(remoteDelegates.find(token)).toEqual(caller);
    end();
    await link.confirmed();
    expect(await remoteDelegates.find(token)).toBeNull();
    expect(remoteDelegates.find("aenv_0_1")).toBeNull();
  });

  // Before: the server remembered each invalid token that a client had sent to a worker, for as long as the worker lived.
  it("leaves nothing in its server's memory for tokens and instances that do not exist, or have ended", async () => {
    const { delegates, remoteDelegates, targets, rows, link } = connect();
    for (let n = 0; n < 20; n++) expect(await remoteDelegates.find(`${DELEGATE}${n}`)).toBeNull();
    await rows.insert("i", ended("i"));
    for (const id of ["i", "unknown"]) await targets.find(id);
    {
      using delegate = delegates.grant({ owner: "ada", roles: new Set(["trainer"] as const), tokenId: null, maxInstances: null });
      await remoteDelegates.find(delegate.token);
      expect(link.interests).toBe(1);
    }
    expect(link.interests).toBe(0);
  });

  it("gets the errors of the store with their codes", async () => {
    const { store, targets } = connect();
    store.get = () => Promise.reject(new PlatformError("store.unavailable", "cut"));
    await expect(targets.find("i")).rejects.toMatchObject({ code: "store.unavailable", message: "cut" });
  });
});

describe("the server of a worker", () => {
  it("tells it the changes of rows that it has read, and of no others", async () => {
    const { rows, link, targets, change } = connect();
    await rows.insert("i", running("i"));
    await rows.insert("j", running("j"));
    await targets.find("i");
    expect([link.note(running("i")), link.note(running("j"))]).toEqual([true, false]);
    await change(ended("i"));
    expect(link.note(ended("i"))).toBe(false);
  });

  it("ends its uses, its rewards and what it should confirm when it dies", async () => {
    const { link, channel, uses } = connect();
    channel.send({ type: "used", row: running("i") });
    channel.send({ type: "used", row: running("j") });
    channel.send({ type: "unused", instanceId: "j" });
    await channel.ask({ what: "enter reward", row: running("i") });
    expect(uses).toEqual(["used i", "used j", "unused j"]);
    const confirmed = link.confirmed();
    link.close();
    await confirmed;
    expect(uses.slice(3).sort()).toEqual(["left reward", "unused i"]);
    // A message may arrive after the exit.
    channel.send({ type: "used", row: running("i") });
    await new Promise(setImmediate);
    expect(uses).toHaveLength(5);
  });

  it("does not consider an instance idle between two reports of its use", async () => {
    const { link, channel, uses } = connect();
    channel.send({ type: "used", row: running("i") });
    channel.send({ type: "used", row: running("i") });
    await link.confirmed();
    await new Promise(setImmediate);
    expect(uses).toEqual(["used i", "used i", "unused i"]);
  });
});

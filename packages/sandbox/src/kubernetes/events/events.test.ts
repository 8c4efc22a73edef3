import { expect, it } from "vitest";
import type { Pod } from "../pod/types.ts";
import { scriptedApi } from "../testing/scripted-api.ts";
import { claimedNote, createdNote, type EventPlace, endedNote, eventOf, usedNote } from "./event.ts";
import { PodEvents } from "./events.ts";
import { TokenBucket } from "./token-bucket.ts";

const pod: Pod = { metadata: { name: "shop-abc123", uid: "u1" }, spec: { containers: [] } };
const spec = { id: "runner-1", command: [], variables: { TOKEN: "s3cret" }, labels: {}, startTimeoutMs: 1 };
const place: EventPlace = { namespace: "n", instance: "server-1", suffix: "ff", at: new Date("2026-11-17T09:00:00.123Z") };

it("an event says for which instance of which environment the pod is, and contains no variable", () => {
  const subject = { environment: "shop", version: "1.0.0", owner: "ada", instance: "shop-1" };
  const event = eventOf(pod, createdNote({ ...spec, subject }), place);
  expect(event).toMatchObject({
    metadata: { name: "shop-abc123.ff", namespace: "n" },
    involvedObject: { kind: "Pod", name: "shop-abc123", uid: "u1" },
    type: "Normal",
    reason: "Created",
    message: "Created for sandbox runner-1 for instance shop-1 of shop@1.0.0 (owner ada)",
    firstTimestamp: "2026-11-17T09:00:00Z",
  });
  expect(JSON.stringify(event)).not.toContain("s3cret");
  expect(claimedNote(spec).message).toBe("Waited, and was claimed for sandbox runner-1");
  expect(usedNote({ environment: "shop" }).message).toBe("Started ahead, and is used now for environment shop");
  expect(eventOf(pod, endedNote("x".repeat(5_000)), place).message).toHaveLength(1_024);
});

it("a bucket admits a burst, and then a rate", () => {
  const bucket = new TokenBucket({ size: 3, perSecond: 2, now: 0 });
  expect([0, 0, 0, 0, 400, 500, 999, 1_000].map((now) => bucket.take(now))).toEqual([true, true, true, false, false, true, false, true]);
});

it("too many events are left out, and those of an account that may not write them are tried once", { timeout: 60_000 }, async () => {
  await using ready = await scriptedApi(() => ({ status: 201, body: {} }));
  const events = new PodEvents(ready.api, { namespace: "n" });
  for (let at = 0; at < 200; at++) events.note(pod, endedNote("any"));
  await events.close();
  expect(ready.requests).toHaveLength(20);
  events.note(pod, endedNote("late"));
  expect(ready.requests).toHaveLength(20);

  await using refusing = await scriptedApi(() => ({ status: 403, body: { reason: "Forbidden", message: "no right" } }));
  const lines: string[] = [];
  const refused = new PodEvents(refusing.api, { namespace: "n", log: (line) => lines.push(line) });
  refused.note(pod, endedNote("any"));
  await expect.poll(() => lines, { timeout: 30_000 }).toEqual([expect.stringContaining("allow 'create' of events in namespace n")]);
  refused.note(pod, endedNote("any"));
  await refused.close();
  expect(refusing.requests).toHaveLength(1);
});

it("a server that does not answer holds up neither the notes nor the end for long", { timeout: 60_000 }, async () => {
  await using silent = await scriptedApi(() => null);
  const events = new PodEvents(silent.api, { namespace: "n" });
  events.note(pod, endedNote("any"));
  const begun = Date.now();
  await events.close();
  expect(Date.now() - begun).toBeLessThan(20_000);
});

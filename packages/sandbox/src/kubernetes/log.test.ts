import { expect, it } from "vitest";
import { nanoseconds, PodLog } from "./log.ts";
import { type Answer, scriptedApi } from "./testing/scripted-api.ts";

const later = () => new Date(Date.now() + 5_000).toISOString();

it("a log whose stream is refused for a while is read when the server asks to, and pauses grow", { timeout: 30_000 }, async () => {
  const refusals: Answer[] = [
    { status: 429, body: {}, headers: { "retry-after": "1" } },
    { status: 500, body: {} },
  ];
  const times: number[] = [];
  await using scripted = await scriptedApi((_, response) => {
    times.push(Date.now());
    const refusal = refusals.shift();
    if (refusal !== undefined) return refusal;
    response.writeHead(200).end(`${later()} hello\n`);
    return null;
  });
  const stop = new AbortController();
  const lines: string[] = [];
  for await (const line of new PodLog(scripted.api, "/pods/a", "main").follow(stop.signal, () => false)) {
    lines.push(line);
    stop.abort();
  }
  expect(lines).toEqual(["hello"]);
  const [first = 0, second = 0, third = 0] = times;
  expect(second - first).toBeGreaterThanOrEqual(990);
  expect(third - second).toBeGreaterThanOrEqual(490);
});

it("a log that the account may not read ends, after the time in which an API server that starts may refuse", {
  timeout: 30_000,
}, async () => {
  await using scripted = await scriptedApi(() => ({ status: 403, body: { reason: "Forbidden" } }));
  const { signal } = new AbortController();
  const lines: string[] = [];
  for await (const line of new PodLog(scripted.api, "/pods/a", "main").follow(signal, () => false)) lines.push(line);
  expect(lines).toEqual([]);
  expect(scripted.requests.length).toBeLessThan(8);
});

it("times of log lines are compared to the nanosecond", () => {
  expect(nanoseconds("2026-11-17T06:00:00.12Z")).toBe((nanoseconds("2026-11-17T06:00:00Z") ?? 0n) + 120_000_000n);
  expect(nanoseconds("2026-11-17T06:00:00.000000001Z")).toBe((nanoseconds("2026-11-17T06:00:00Z") ?? 0n) + 1n);
  expect(nanoseconds("not a time")).toBeNull();
});

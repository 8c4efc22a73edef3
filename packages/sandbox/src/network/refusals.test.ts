import { expect, it } from "vitest";
import { parseRefused, type Refusal, Refusals } from "./refusals.ts";

it("passes on a refused destination once a minute, and at most twenty of one sandbox", () => {
  let now = 0;
  const reported: Refusal[] = [];
  const refusals = new Refusals(
    (refusal) => reported.push(refusal),
    () => now,
  );
  const add = (host: string, network = "one") => refusals.add({ network, host, port: 80 });
  for (let step = 0; step < 3; step++) add("a.com");
  expect(reported).toHaveLength(1);
  for (let step = 0; step < 100; step++) add(`${step}.com`);
  expect(reported).toHaveLength(20);
  add("a.com", "other");
  expect(reported).toHaveLength(21);
  now = 61_000;
  add("a.com");
  expect(reported).toHaveLength(22);
});

it("reads the elements of a set, and skips what it does not know", () => {
  const json = JSON.stringify({
    nftables: [
      { metainfo: {} },
      { set: { elem: [{ elem: { val: { concat: ["ae_1", "1.2.3.4", 80] }, timeout: 60 } }, "other", { elem: { val: 3 } }] } },
    ],
  });
  expect(parseRefused(json)).toEqual([{ network: "ae_1", host: "1.2.3.4", port: 80 }]);
  expect(parseRefused(JSON.stringify({ nftables: [{ set: {} }] }))).toEqual([]);
});

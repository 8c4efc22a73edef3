import { expect, it } from "vitest";
import { UnfinishedCapacity } from "./unfinished-capacity.ts";

const open = (count: number, bytes: number) =>
  new UnfinishedCapacity({ unfinishedOf: async () => ({ count, bytes }) }, { maxUnfinished: 10, maxRequestBytes: 1_000 });

it("refuses requests of more bytes than an owner may have unfinished, and says owner, bytes and limit", async () => {
  // Before: only the number of rollouts was limited, so 100,000 of any size were accepted.
  await expect(open(1, 800).reserve("ada", [100, 150])).rejects.toMatchObject({
    code: "quota.exceeded",
    message: expect.stringMatching(/'ada'.* 800 bytes, and 250 more .* limit of 1000 /),
    details: { owner: "ada", bytes: 800, moreBytes: 250, maxBytes: 1_000 },
  });
  await open(1, 800).reserve("ada", [100, 100]);
});

it("counts what the owner is just having accepted, and nothing of other owners", async () => {
  const room = open(0, 0);
  const reservations = ["ada", "ada", "bob"].map((owner) => room.reserve(owner, [600]));
  const [first, second, bobs] = await Promise.allSettled(reservations);
  expect([first?.status, second?.status, bobs?.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
  if (first?.status === "fulfilled") first.value.releaseAll();
  await room.reserve("ada", [600]);
});

it("refuses more rollouts than an owner may have unfinished", async () => {
  await expect(open(9, 0).reserve("ada", [1, 1])).rejects.toMatchObject({ code: "quota.exceeded", details: { maxUnfinished: 10 } });
});

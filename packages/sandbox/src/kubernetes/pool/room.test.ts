import { expect, it } from "vitest";
import { KubernetesError } from "../api/error.ts";
import { createWithRoom } from "./room.ts";

const { signal } = new AbortController();
const refusal = new KubernetesError(403, "Forbidden", "pods is forbidden: exceeded quota: few, requested: pods=1");

it("waiting pods make room one by one until the quota admits the pod", async () => {
  let waiting = 2;
  let tries = 0;
  const makeRoom = async () => waiting-- > 0;
  const create = async () => {
    tries++;
    if (waiting > 0) throw refusal;
    return "made";
  };
  let time = 0;
  // Each look at the clock is later than the quota is counted.
  expect(await createWithRoom(create, { makeRoom, signal, now: () => (time += 5_000) })).toBe("made");
  expect([waiting, tries]).toEqual([0, 3]);
});

it("the quota is given time to be counted before another pod has to go", async () => {
  let removed = 0;
  let tries = 0;
  const create = async () => {
    if (++tries < 4) throw refusal;
    return "made";
  };
  const makeRoom = async () => ++removed > 0;
  await createWithRoom(create, { makeRoom, signal, now: () => 1 });
  expect([removed, tries]).toEqual([1, 4]);
});

it("without a waiting pod the refusal is the error, and another error is not waited for", async () => {
  const makeRoom = async () => false;
  await expect(createWithRoom(() => Promise.reject(refusal), { makeRoom, signal })).rejects.toBe(refusal);
  const other = new KubernetesError(403, "Forbidden", "not allowed");
  const never = () => Promise.reject(new Error("not asked for"));
  await expect(createWithRoom(() => Promise.reject(other), { makeRoom: never, signal })).rejects.toBe(other);
});

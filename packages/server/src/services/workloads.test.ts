import type { ServiceEngine } from "@aenv/sandbox";
import { expect, it } from "vitest";
import { MemoryStore } from "../stores/memory/store.ts";
import { type ServiceRow, serviceRows } from "./row.ts";
import { Workloads } from "./workloads.ts";

it("asks the engine in every round only while it runs a service, and else once a minute", async () => {
  const rows = serviceRows(new MemoryStore());
  const clock = { now: 0 };
  let looks = 0;
  const services = {
    location: "here",
    look: async () => {
      looks++;
      return { ids: [], apply: () => Promise.reject(new Error("there is none")) };
    },
  } satisfies Partial<ServiceEngine>;
  const workloads = new Workloads({ services, rows, now: () => new Date(clock.now) } as never);
  const rounds = async (at: number, service?: string) => {
    clock.now = at;
    const row = { id: service, owner: "ada", environment: { name: "shop" }, workload: { location: service } };
    if (service !== undefined) await rows.insert(service, row as unknown as ServiceRow);
    const before = looks;
    for (let round = 0; round < 3; round++) await workloads.look();
    return looks - before;
  };
  expect(await rounds(0)).toBe(1);
  expect(await rounds(59_999, "elsewhere")).toBe(0);
  expect(await rounds(60_000)).toBe(1);
  expect(await rounds(70_000, "here")).toBe(3);
});

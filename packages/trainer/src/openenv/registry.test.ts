import { ada, bob, MemoryStore } from "@aenv/server/testing";
import type { EnvironmentVersion } from "@aenv/server/trainer-services";
import { expect, it } from "vitest";
import { Registry, type RegistryOptions } from "./registry.ts";
import { IDLE_MS, openEnvRows, type Playing } from "./row.ts";

const version = { name: "echo", version: "1.0.0" } as EnvironmentVersion;

/** Servers on one store, whose sessions are not played. */
function openServers(limit = 10) {
  const rows = openEnvRows(new MemoryStore());
  let ms = 0;
  const options = { rows, limitOf: () => limit, now: () => new Date(ms), monotonicMs: () => ms } as unknown as RegistryOptions;
  return {
    here: new Registry(options),
    there: new Registry(options),
    rows,
    stored: () => rows.list({ limit: 100 }),
    pass: (more: number) => {
      ms += more;
    },
  };
}

it("finds a named episode at every server, for its owner only", async () => {
  const { here, there } = openServers();
  const { session, isNew } = await here.openEpisode(version, ada, "a");
  expect(isNew).toBe(true);
  expect((await there.openEpisode(version, ada, "a")).isNew).toBe(false);
  expect((await there.findEpisode(version, ada, "a"))?.id).toBe(session.id);
  expect(await there.findEpisode(version, bob, "a")).toBeNull();
  expect(await there.find(session.id, version, bob)).toBeNull();
  expect(await there.find(session.id, { ...version, version: "2.0.0" }, ada)).toBeNull();
  await there.end(session);
  expect(await here.findEpisode(version, ada, "a")).toBeNull();
});

it("makes one session of a name for requests at the same time", async () => {
  const { here, there, stored } = openServers();
  const opened = await Promise.all([here, here, there, there].map((server) => server.openEpisode(version, ada, "a")));
  expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1);
  expect(await stored()).toHaveLength(1);
});

it("forgets a session that no server has used for too long, and lets its name be used again", async () => {
  const { here, there, stored, pass } = openServers();
  await here.openEpisode(version, ada, "a");
  pass(IDLE_MS + 1);
  expect(await there.findEpisode(version, ada, "a")).toBeNull();
  expect((await there.openEpisode(version, ada, "a")).isNew).toBe(true);
  pass(IDLE_MS + 1);
  await here.sweep();
  expect(await stored()).toEqual([]);
});

it("counts the shared sessions of an owner at every server, beside its own", async () => {
  const { here, there } = openServers(2);
  await here.openShared(version, ada);
  await there.open(version, ada, { isAttached: true });
  await expect(there.openShared(version, ada)).rejects.toMatchObject({ name: "CapacityError", max: 2 });
  await expect(there.open(version, ada, { isAttached: true })).rejects.toMatchObject({ active: 2, max: 2 });
  await there.openShared(version, bob);
});

it("leaves shared sessions to other servers when it is closed, and ends its own", async () => {
  const { here, there, stored } = openServers();
  const shared = await here.openShared(version, ada);
  const own = await here.open(version, ada, { isAttached: true });
  await here.close();
  expect(await stored()).toHaveLength(1);
  expect((await there.find(shared.id, version, ada))?.id).toBe(shared.id);
  await expect(own.listTools()).rejects.toMatchObject({ code: "request.cancelled" });
});

it("keeps the episode that another server has begun when the one that made its session fails", async () => {
  const { here, there, rows } = openServers();
  const { session, isNew } = await here.openEpisode(version, ada, "a");
  expect(isNew).toBe(true);
  const row = await rows.find(session.id);
  if (row === null) throw new Error("the session is not stored");
  await rows.swap(row, { ...row.value, episodes: 1, playing: { session: "begun-there" } as Playing });
  await here.endUnused(session);
  expect(await there.findEpisode(version, ada, "a")).not.toBeNull();
  const unused = await here.openEpisode(version, ada, "b");
  await here.endUnused(unused.session);
  expect(await there.findEpisode(version, ada, "b")).toBeNull();
});

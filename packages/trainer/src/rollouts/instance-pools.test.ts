import { projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";
import { Loopback } from "../loopback/loopback.ts";
import { InstancePools } from "./instance-pools.ts";

it("ends the instances of a token that was revoked", async () => {
  await using platform = await startPlatform({ flags: { access: "on" } });
  const admin = await platform.token("root", "admin");
  const environment = await publish(platform, projects.echo, { headers: await platform.token("ada", "publisher") });
  const { access, delegates } = platform.server;
  const loopback = new Loopback(delegates, () => platform);
  const { token, row } = await access.tokens.create({ owner: "ada", roles: ["trainer"] });
  const caller = await access.identify(`Bearer ${token}`);
  const pools = new InstancePools({ loopback, serverId: "s" });
  using pool = pools.hold({ caller, environment, environmentDigest: null, variables: {} }, 60_000);
  const task = { id: null, split: null, index: null };
  const episode = { id: "e", run: null, attempt: 0, task, group: null, seed: 1, metadata: {} };
  const lease = await pool.acquire(episode, undefined, new AbortController().signal);
  await lease.release(true);
  const running = async () =>
    ((await platform.demand("GET", "/env-instance/list?status=Running", undefined, admin)) as { items: unknown[] }).items.length;
  expect(await running()).toBe(1);
  await access.tokens.revoke(row.id);
  await pools.close();
  expect(await running()).toBe(0);
});

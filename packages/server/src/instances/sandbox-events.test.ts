import { defineEnvironment, type EnvironmentDefinition } from "@aenv/kit";
import { expect, it } from "vitest";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";

const environment = defineEnvironment({
  setup: async ({ sandboxes }) => void (await sandboxes.open({ image: "team/one:1" })),
}) as EnvironmentDefinition;

it("what happens to a sandbox is in the events of its instance, also to one that its code has opened", async () => {
  const world = openWorld({ images: true, egress: true, reportsRefused: true }, environment);
  const server = openTestServer(world);
  const row = await server.create(await world.publish(ada, "shop", { taskSandboxes: { images: ["team/*"] } }));
  const own = row.slot?.sandboxId ?? "";
  const opened = (await world.engine.list()).find(({ id }) => id !== own)?.id ?? "";
  for (const sandboxId of [own, opened]) {
    await server.instances.sandboxEvents.reachedLimit({ sandboxId, limit: "disk", reason: "its disk is full" });
    await server.instances.sandboxEvents.refused({ sandboxId, host: "pypi.org", port: 443 });
  }
  const { events } = await server.instances.get(row.id, ada);
  expect(events.map(({ what }) => what).filter((what) => /^(limit|egress)/.test(what))).toEqual([
    "limit: its disk is full",
    "egress: refused a connection to pypi.org:443; the environment allows it with deployConfig.egress",
    "limit: its disk is full, in a sandbox that its code has opened",
    "egress: refused a connection to pypi.org:443; the environment allows it with deployConfig.taskSandboxes.egress",
  ]);
});

import { expect, it } from "vitest";
import { ada, bob, openTestServer, openWorld } from "./fixtures/test-server.ts";

const root = { ...ada, owner: "root" };

it("an environment starts with the template that it names only if its publisher may use the template", async () => {
  const world = openWorld();
  const owners: Readonly<Record<string, readonly string[]>> = { privileged: [], gpu: ["ada"], spot: ["*"] };
  const engine = Object.assign(world.engine, { templates: { owners: (name: string) => owners[name] ?? [] } });
  const server = openTestServer(world, { engine });
  const start = async (publisher: typeof ada, podTemplate: string, caller = publisher) => {
    const ref = await world.publish(publisher, `${publisher.owner}-${podTemplate}`.toLowerCase(), { podTemplate });
    return server.create(ref, {}, caller).then(
      ({ status }) => status,
      (error: { code: string }) => error.code,
    );
  };
  expect([await start(ada, "gpu"), await start(ada, "spot"), await start(bob, "spot")]).toEqual(["Running", "Running", "Running"]);
  // The publisher counts: whose code runs in the pod.
  expect([await start(ada, "privileged"), await start(bob, "gpu"), await start(bob, "privileged", root)]).toEqual([
    "access.denied",
    "access.denied",
    "access.denied",
  ]);
  expect([await start(root, "privileged", ada), await start(bob, "singleContainer")]).toEqual(["Running", "Running"]);
});

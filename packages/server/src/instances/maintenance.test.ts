import { setImmediate } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";

it("close waits until crashed sandboxes are destroyed: an earlier exit of the process would leave their files", async () => {
  const world = openWorld();
  const server = openTestServer(world);
  const { slot } = await server.create(await world.publish(ada, "probe", { isolation: "instance" }));
  const [sandbox] = await world.engine.list();
  if (sandbox === undefined) throw new Error("the instance has no sandbox");
  const gate = Promise.withResolvers<void>();
  const destroy = sandbox.destroy.bind(sandbox);
  let isAsked = false;
  sandbox.destroy = () => {
    isAsked = true;
    return gate.promise.then(destroy);
  };
  await world.engine.crash(String(slot?.sandboxId), "out of memory");
  await vi.waitFor(() => expect(isAsked).toBe(true));

  let isClosed = false;
  const closing = server.maintenance.close(0).then(() => {
    isClosed = true;
  });
  // Far more event loop turns than a close without waiting takes.
  for (let turn = 0; turn < 200; turn++) await setImmediate();
  expect(isClosed).toBe(false);
  gate.resolve();
  await closing;
});

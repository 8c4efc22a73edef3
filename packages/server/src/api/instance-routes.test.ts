import { once } from "node:events";
import { describe, it } from "vitest";
import { ada, openTestServer, openWorld } from "../instances/fixtures/test-server.ts";
import { startApp } from "./fixtures/app.ts";
import { instanceRoutes } from "./instance-routes.ts";

describe("a client that disconnects before the response", () => {
  it.each([
    ["reset", "/task/reset"],
    ["snapshot", "/state/snapshot"],
  ])("ends its %s: the sandbox sees its request aborted", async (verb, path) => {
    const world = openWorld();
    const server = openTestServer(world);
    const { id } = await server.create(await world.publish(ada, "shop", {}));
    const routes = instanceRoutes({
      ...server,
      hub: world.hub,
      dataUrl: () => "http://127.0.0.1",
      shown: (text) => text,
      dataAccess: null,
      runtime: { engine: "memory", isolated: false, version: "0" },
    });
    await using app = await startApp(routes);
    const { token } = await app.tokens.create({ owner: "ada", roles: ["trainer"] });
    const asked = world.hold(path);
    const head = [`POST /env-instance/${id}/${verb} HTTP/1.1`, "host: 127.0.0.1", `authorization: Bearer ${token}`];
    const client = app.connect().send(...head, "content-type: application/json", "content-length: 2", "", "{}");
    const closed = once(await asked, "close");
    client.socket.destroy();
    await closed;
  });
});

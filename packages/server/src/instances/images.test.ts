import { expect, it } from "vitest";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";

async function publishImage(world: ReturnType<typeof openWorld>, image: string, deployConfig: object): Promise<string> {
  const publication = { name: "shop", version: "1.0.0", artifacts: [{ type: "image", content: image }], deployConfig };
  await world.hub.publish(publication, ada, {});
  return "shop@1.0.0";
}

it("an environment with an image and a port runs the image's own server, and gets all requests as they are", async () => {
  const world = openWorld({ images: true });
  const { create } = openTestServer(world);
  const ref = await publishImage(world, "registry.example/team/shop:1", { port: 9000 });
  const row = await create(ref, { environment_variables: { GREETING: "hello" } });
  expect(row).toMatchObject({ status: "Running", slot: { prefix: "", isOwnSandbox: true } });
  expect(world.started).toEqual([
    expect.objectContaining({
      image: "registry.example/team/shop:1",
      command: [],
      listening: { kind: "port", port: 9000, healthPath: null },
      variables: expect.objectContaining({ GREETING: "hello" }),
    }),
  ]);
});

it("an environment with an image and no port is a sandbox for commands only", async () => {
  const world = openWorld({ images: true });
  const { create } = openTestServer(world);
  await create(await publishImage(world, "team/shop", {}));
  expect(world.started).toEqual([expect.objectContaining({ image: "team/shop", listening: { kind: "none" } })]);
});

it("an instance of an image survives a restart of the server", async () => {
  const world = openWorld({ images: true });
  const first = openTestServer(world);
  const row = await first.create(await publishImage(world, "team/shop", { port: 9000 }));
  first.maintenance.abandon();
  const second = openTestServer(world);
  expect(await second.maintenance.open()).toMatchObject({ adopted: 1, failed: 0 });
  expect(await second.instances.get(row.id, ada)).toMatchObject({ status: "Running" });
});

it.each([
  [false, "team/shop", "cannot run; start the server with --engine oci or docker"],
  [true, "oci:/home/ada/layout", "is not a name in a registry"],
  [true, "docker-daemon:secret:latest", "is not a name in a registry"],
])("an image that cannot run here is refused with the reason (images: %s, %s)", async (images, image, message) => {
  const world = openWorld({ images });
  const { create } = openTestServer(world);
  const creating = create(await publishImage(world, image, { port: 9000 }));
  await expect(creating).rejects.toMatchObject({ code: "instance.unsupported", message: expect.stringContaining(message) });
});

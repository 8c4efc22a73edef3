import type { ServerResponse } from "node:http";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { KubernetesEngine } from "./engine.ts";
import { ID_ANNOTATION, READY_ANNOTATION, STATE_ANNOTATION } from "./pod/names.ts";
import type { PodState } from "./pod/state.ts";
import type { Pod } from "./pod/types.ts";
import { scriptedApi } from "./testing/scripted-api.ts";

function podOf(id: string, resourceVersion: string): Pod {
  // Without an init: nothing connects to the address.
  const state: PodState = { format: 1, port: 8080, hasInit: false, memoryMb: null, attempt: id, startsUntil: Date.now() };
  const annotations = { [ID_ANNOTATION]: id, [READY_ANNOTATION]: "{}", [STATE_ANNOTATION]: JSON.stringify(state) };
  return {
    metadata: { name: id, uid: `uid-${id}`, resourceVersion, annotations },
    spec: { containers: [{ name: "main", image: "any" }] },
    status: { phase: "Running", podIP: "127.0.0.1" },
  };
}

it("the end of another server's sandbox is reported by that server only, unless it was taken over", async () => {
  using home = temporaryTree();
  const watching = Promise.withResolvers<ServerResponse>();
  const events: { readonly involvedObject: { readonly name: string }; readonly message: string }[] = [];
  await using scripted = await scriptedApi(({ path, query, body }, response) => {
    if (path.endsWith("/events")) events.push(body as (typeof events)[number]);
    if (path.endsWith("/events")) return { status: 201, body };
    if (!query.has("watch"))
      return { status: 200, body: { metadata: { resourceVersion: "10" }, items: [podOf("theirs", "8"), podOf("taken", "9")] } };
    response.writeHead(200).flushHeaders();
    watching.resolve(response);
    return null;
  });
  const access = { server: `http://127.0.0.1:${scripted.port}` };
  const engine = new KubernetesEngine({ home: home.path, access, namespace: "n", baseImage: "base", networkPolicies: false });
  try {
    const [theirs, taken] = await engine.list();
    expect([theirs?.id, taken?.id]).toEqual(["theirs", "taken"]);
    taken?.shared?.takeOver();
    const stream = await watching.promise;
    for (const [at, id] of ["theirs", "taken"].entries())
      stream.write(`${JSON.stringify({ type: "DELETED", object: podOf(id, String(11 + at)) })}\n`);
    expect((await theirs?.exited)?.reason).toMatch(/deleted by another client/);
    await taken?.exited;
    expect(await engine.list()).toEqual([]);
  } finally {
    await engine.close();
  }
  expect(events.map(({ involvedObject, message }) => [involvedObject.name, message])).toEqual([
    ["taken", "The sandbox ended: the pod was deleted by another client of the cluster"],
  ]);
});

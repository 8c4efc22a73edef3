import { once } from "node:events";
import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { instanceRoutes } from "@aenv/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";
import { fill, routesOf } from "./routes.ts";

type Token = { readonly authorization: string };

let platform: Platform;
let ada: Token;
let eve: Token;
let agent: Token;
let ref: string;
let instance: Awaited<ReturnType<Platform["create"]>>;

beforeAll(async () => {
  platform = await startPlatform({ flags: { access: "on" } });
  ada = await platform.token("ada", "publisher", "trainer");
  eve = await platform.token("eve", "publisher", "trainer");
  agent = await platform.token("ada", "agent");
  ref = await publish(platform, projects.probe, { headers: ada });
  instance = await platform.create(ref, {}, ada);
});
afterAll(() => platform?.close());

/** Valid bodies, for routes that refuse an empty one. */
const bodies: Readonly<Record<string, unknown>> = {
  "POST /env-instance/{id}/renew": { ttl: "1h" },
  "POST /env-instance/{id}/fork": { count: 1 },
  "POST /env-instance/{id}/presign-url": { port: 80 },
  "POST /env-instance/{id}/exec": { command: "true" },
  "POST /env-instance/{id}/commands/{command}/signal": { signal: "SIGTERM" },
  "POST /env-instance/{id}/files/mkdir": { path: "x" },
  "POST /env-instance/{id}/files/rename": { path: "x", to: "y" },
  "POST /env/{name}/{version}/aci_trigger": { image: "docker.io/eve/probe:1.0.0" },
  "POST /env/{name}/{version}/visibility": { visibility: "shared", sharedWith: ["bob"] },
  "PUT /env/{name}/{version}": { status: "Failed" },
  "POST /sessions/{id}/step": { text: "hello" },
};

/** Requests of another owner, for routes where the default request has another meaning (an upload checks whether a name is free). */
const queryOf = (key: string): string => {
  if (key === "POST /env/{name}/{version}/sign") return "?style=read";
  return key.includes("/files") ? "?path=x" : "";
};

/** The status for another owner instead of 404, for routes that are allowed to any owner. */
const harmless: Readonly<Record<string, unknown>> = {
  "GET /env-service/{id}/list": [],
  // Deleting what does not exist succeeds, as in the original.
  "DELETE /env-service/{id}": "Deleted successfully",
  "GET /env-instance/{id}/list": [],
  "GET /env/{name}/{version}/exists": { exists: false },
  "GET /bundle/{digest}": { exists: false },
};

const send = (token: Token | undefined, method: string, path: string, body?: unknown) =>
  platform.ask(method, path, method === "GET" ? undefined : body, { ...token });

const fixedRoutes = Object.values(instanceRoutes).filter(({ method }) => method !== "*");

describe("every route of the control port", () => {
  it("requires a valid token, unless it is public", async () => {
    const routes = await routesOf(platform);
    expect(routes.length).toBeGreaterThan(30);
    for (const { method, path, roles } of routes) {
      if (roles === null) continue;
      for (const token of [
        undefined,
        { authorization: "Bearer aenv_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAA" },
        { authorization: "Basic YTpi" },
      ]) {
        const answer = await send(token, method, fill(path, { id: instance.id }), {});
        expect([method, path, answer.status]).toEqual([method, path, 401]);
        expect(answer.error?.code).toBe("access.unauthenticated");
      }
    }
  });

  it("refuses an agent's token, except for its own name", async () => {
    const opened: string[] = [];
    for (const { method, path, roles } of await routesOf(platform)) {
      if (roles === null) continue;
      const { status } = await send(agent, method, fill(path, { id: instance.id }), bodies[`${method} ${path}`] ?? {});
      if (status !== 403) opened.push(`${method} ${path} ${status}`);
    }
    expect(opened).toEqual(["GET /whoami 200"]);
  });

  it("reports what belongs to another owner as not found", async () => {
    const [name = "", version = ""] = ref.split("@");
    const { artifacts } = (await platform.demand("GET", `/env/${name}/${version}`, undefined, ada)) as { artifacts: { content: string }[] };
    const digest = artifacts[0]?.content ?? "";
    await platform.demand("POST", "/env-service", { envName: ref, service_name: "service-of-hers" }, ada);
    const begun = await send(ada, "POST", "/sessions", { environment: ref });
    const { session } = begun as unknown as { session: string };
    await send(ada, "POST", "/rollouts", { rollouts: [{ id: "rollout-of-hers", environment: ref, agent: { kind: "noop" } }] });
    const stored = (await platform.demand("POST", `/env-instance/${instance.id}/snapshot`, { name: "hers" }, ada)) as { id: string };
    const idFor = (path: string, id: string) => {
      if (path.startsWith("/snapshots/")) return stored.id;
      if (path.startsWith("/sessions/")) return session;
      if (path.startsWith("/rollouts/")) return "rollout-of-hers";
      return path.startsWith("/env-service/") ? "service-of-hers" : id;
    };
    const before = await platform.demand("GET", `/env/${name}/${version}`, undefined, ada);
    const routes = (await routesOf(platform)).filter(({ path, roles }) => path.includes("{") && roles?.includes("admin") === false);
    expect(routes.length).toBeGreaterThan(20);
    // Deletions come last, so that the owner's calls below find the objects.
    routes.sort((a, b) => Number(a.method === "DELETE") - Number(b.method === "DELETE"));

    for (const { method, path } of routes) {
      const key = `${method} ${path}`;
      if (key === "PUT /bundle/{digest}") continue;
      const values = { id: idFor(path, instance.id), name, version, digest, ref, command: "1" };
      const answer = await send(eve, method, fill(path, values) + queryOf(key), bodies[key] ?? {});
      if (key in harmless) expect([key, answer.data]).toEqual([key, harmless[key]]);
      else expect([key, answer.status]).toEqual([key, 404]);
      expect(JSON.stringify(answer.data ?? null)).not.toContain("ada");
    }
    expect(await platform.demand("GET", `/env/${name}/${version}`, undefined, ada)).toEqual(before);
    expect((await callTool(urlOf(platform, instance.id), "count")).status).toBe(200);

    // The same request of the owner succeeds, so the request itself was valid. It changes a separate version.
    await publish(platform, projects.probe, { version: "2.0.0", headers: ada });
    const mine = await platform.create("probe@2.0.0", {}, ada);
    for (const { method, path } of routes) {
      const key = `${method} ${path}`;
      if (key === "PUT /bundle/{digest}" || key === "POST /env/{name}/{version}/release" || key === "DELETE /env/{name}") continue;
      const values = { id: idFor(path, mine.id), name, version: "2.0.0", digest, ref };
      const { status } = await send(ada, method, fill(path, values), bodies[key] ?? {});
      expect([key, status]).not.toEqual([key, 404]);
    }
  });

  it("lists nothing of another owner", async () => {
    for (const path of [
      "/env",
      "/env-instance/list",
      "/snapshots",
      "/env-instance/*/list",
      "/env-instance/list?owner=ada",
      "/api/v1/environments/search?q=probe",
    ]) {
      const answer = await send(eve, "GET", path);
      expect(answer.status).toBe(200);
      expect(JSON.stringify(answer.data)).not.toMatch(/ada|probe/);
    }
  });

  it("starts no environment of another owner, and does not publish under its name", async () => {
    expect(await send(eve, "POST", "/env-instance", { envName: ref })).toMatchObject({
      status: 404,
      error: { code: "environment.not_found" },
    });
    const batch = await send(eve, "POST", "/env-instance/batch", { envName: ref, count: 2 });
    expect(batch.data).toMatchObject({ created: 0, failed: 2 });
    const own = await send(eve, "POST", "/env", { name: "probe", version: "1.0.0", artifacts: [{ type: "image", content: "evil" }] });
    expect(own).toMatchObject({ success: false, status: 403 });
    expect(await send(eve, "POST", "/env/probe/9.0.0/sign")).toMatchObject({ success: false, status: 403 });
    expect(await platform.demand("GET", "/env/probe/1.0.0", undefined, ada)).toMatchObject({ publisher: "ada" });
  });

  it("takes the owner from the token, not from the request", async () => {
    const stolen = await platform.create(await publish(platform, projects.tally, { headers: eve }), { owner: "ada" }, eve);
    expect(stolen.owner).toBe("eve");
    expect((await send(ada, "GET", `/env-instance/${stolen.id}`)).status).toBe(404);
    await send(eve, "DELETE", `/env-instance/${stolen.id}`);
  });
});

describe("the data port", () => {
  it("reports another owner's instance as not found to a caller with a token", async () => {
    for (const { method, path } of fixedRoutes) {
      const url = urlOf(platform, instance.id, path.replace(":name", "count"));
      expect([path, (await fetch(url, { method, headers: eve })).status]).toEqual([path, 404]);
    }
  });

  it("accepts no guess: similar ids, parts of an id, and other spellings", async () => {
    const { id } = instance;
    const near = [...Array(20).keys()].map(
      (at) => id.slice(0, at - 20) + (id.at(at - 20) === "a" ? "b" : "a") + (at === 19 ? "" : id.slice(at - 19)),
    );
    const guesses = [
      ...near,
      id.slice(0, -1),
      `${id}a`,
      id.toUpperCase(),
      `${id}.`,
      ` ${id}`,
      `${id}%00`,
      "*",
      "default",
      "list",
      "probe",
      "probe-*",
      "",
    ];
    for (const guess of guesses) {
      const answer = await fetch(urlOf(platform, guess), { method: "POST", body: "{}" });
      expect([guess, answer.status]).toEqual([guess, 404]);
    }
    const asHost = await fetch(`${platform.dataUrl}/mcp`, { headers: { "AEnvCore-MCPProxy-URL": `http://${id}.:8081` } });
    expect(asHost.status).toBe(404);
  });

  it("uses ids of a hundred random bits, each once", async () => {
    const items = await platform.demand(
      "POST",
      "/env-instance/batch",
      { envName: await publish(platform, projects.probe, { isolation: "shared", headers: ada }), count: 50 },
      ada,
    );
    const ids = (items as { items: { data: { id: string; agent_url: string } }[] }).items.flatMap(({ data }) => [
      data.id.slice(-20),
      /agent\/(\w+)\//.exec(data.agent_url)?.[1] ?? "",
    ]);
    expect(new Set(ids).size).toBe(100);
    for (const one of ids) expect(one).toMatch(/^[a-z2-7]{20}$/);
    // About all 32 letters occur at each of the 20 positions: none of them is fixed.
    for (let at = 0; at < 20; at++) expect(new Set(ids.map((one) => one[at])).size).toBeGreaterThan(20);
  });
});

describe("the routes that create and delete slots in a sandbox", () => {
  it("are reserved for the platform, in every spelling", async () => {
    const shared = await publish(platform, projects.probe, { isolation: "shared", headers: ada });
    const { id } = await platform.create(shared, { environment_variables: { KEY: "hidden" } }, ada);
    const { hostname, port } = new URL(platform.dataUrl);
    const ask = async (method: string, path: string, headers: Record<string, string> = {}) => {
      const sent = request({ hostname, port, path, method, headers: { "content-type": "application/json", ...headers }, agent: false });
      sent.end(method !== "POST" ? undefined : JSON.stringify({ count: 1, ids: ["stray"], id: "stray" }));
      const [response] = await once(sent, "response");
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      expect([method, path, response.statusCode]).toEqual([method, path, 404]);
      expect(text).not.toContain("hidden");
    };
    const byHeader = { "AEnvCore-EnvInstance-ID": id };
    for (const verb of [
      "",
      "/",
      "//",
      "/fork",
      "/fork/",
      "/%66ork",
      "/fork-spec",
      "/fork-spec/",
      "/./fork-spec",
      "/list",
      "/../../env-instance",
      "/..%2f..%2fbind",
    ]) {
      for (const method of ["GET", "POST", "DELETE"]) {
        await ask(method, `/env-instance/${id}${verb}`);
        if (verb !== "") await ask(method, verb, byHeader);
      }
    }
    for (const path of ["/env-instance", "/env-instance/", "/env-instance/list", "/env-instance/*/list", "/bind", "/stop"]) {
      await ask("GET", path, byHeader);
      await ask("POST", path, byHeader);
    }
    expect((await callTool(urlOf(platform, id), "variable", { name: "KEY" })).text).toBe("hidden");
    expect((await fetch(urlOf(platform, "stray"), { method: "POST" })).status).toBe(404);
    await send(ada, "DELETE", `/env-instance/${id}`);
  });
});

describe("an agent's token on the data port", () => {
  it("gives access to the tools of its owner's instances, and nothing else", async () => {
    const rpc = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const headers = { ...agent, "content-type": "application/json", accept: "application/json, text/event-stream" };
    const listed = await fetch(urlOf(platform, instance.id), { method: "POST", headers, body: JSON.stringify(rpc) });
    expect(listed.status).toBe(200);
    for (const { method, path, api } of fixedRoutes) {
      if (api === "agent") continue;
      const answer = await fetch(urlOf(platform, instance.id, path.replace(":name", "count")), { method, headers: agent });
      expect([method, path, answer.status]).toEqual([method, path, 403]);
    }
  });
});

describe("an agent link", () => {
  const linkOf = () => String(instance.agent_url).replace(/\/mcp$/, "");
  const tricks = [
    "/mcp/../task/reward",
    "/mcp/..%2ftask/reward",
    "/%6dcp",
    "//mcp",
    "/mcp//",
    "/mcp;/task/reward",
    "/a2a/../task/reward",
    "/a2a/..%2ftask/reward",
    "/a2a//tasks",
    "/.well-known/../task/reward",
    "/./mcp",
    "",
    "/",
    "/fork-spec",
    "/fork",
    "/list",
    "/logs",
  ];

  it("gives access to the tools", async () => {
    expect((await callTool(`${linkOf()}/mcp`, "variable", { name: "X" })).status).toBe(200);
  });

  it("is refused with 403 on every trainer route", async () => {
    for (const { method, path, api } of fixedRoutes) {
      if (api === "agent") continue;
      const answer = await fetch(linkOf() + path.replace(":name", "count"), { method, headers: ada });
      expect([method, path, answer.status]).toEqual([method, path, 403]);
      expect(await answer.json()).toMatchObject({ errorInfo: { code: "access.denied" } });
    }
  });

  it("is refused on trainer routes in every spelling of the path, and with any headers", async () => {
    const { hostname, port } = new URL(platform.dataUrl);
    const key = new URL(linkOf()).pathname;
    for (const trick of tricks) {
      // Not with fetch, which would normalize the path.
      const sent = request({ hostname, port, path: key + trick, method: "POST", agent: false });
      sent.end("{}");
      const [response] = await once(sent, "response");
      response.resume();
      expect([trick, response.statusCode]).toEqual([trick, 403]);
    }
    const headers = { "AEnvCore-EnvInstance-ID": instance.id, "x-original-url": "/task/reward", "x-http-method-override": "DELETE" };
    expect((await fetch(`${linkOf()}/task/reward`, { method: "POST", headers })).status).toBe(403);
  });

  it("is not accepted as an id, as a name on the control port, or as a token", async () => {
    const key = new URL(linkOf()).pathname.split("/").at(-1) as string;
    expect((await fetch(urlOf(platform, key, "/task/reward"), { method: "POST" })).status).toBe(404);
    expect((await fetch(`${platform.dataUrl}/mcp`, { headers: { "AEnvCore-EnvInstance-ID": key } })).status).toBe(404);
    expect((await send(ada, "GET", `/env-instance/${key}`)).status).toBe(404);
    expect((await send({ authorization: `Bearer ${key}` }, "GET", "/whoami")).status).toBe(401);
  });

  it("does not expose tasks, rewards and functions as tools", async () => {
    for (const name of ["reward", "counted", "waits", "reset", "task/reward", "../task/reward"])
      expect((await callTool(`${linkOf()}/mcp`, name)).text ?? "").not.toMatch(/^\d|begun/);
  });
});

describe("a header that names an address", () => {
  it("is never connected to, in any form", async () => {
    const seen: string[] = [];
    const trap = createServer((socket) => {
      seen.push(String(socket.remotePort));
      socket.on("error", () => {}).end("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrap");
    });
    trap.listen(0, "127.0.0.1");
    await once(trap, "listening");
    try {
      const { port } = trap.address() as AddressInfo;
      const addresses = [
        `http://127.0.0.1:${port}`,
        `http://localhost:${port}/mcp`,
        `HTTP://127.1:${port}`,
        `http://0x7f000001:${port}`,
        `http://[::ffff:127.0.0.1]:${port}`,
        `http://${instance.id}@127.0.0.1:${port}`,
        `http://127.0.0.1:${port}#${instance.id}`,
        `https://127.0.0.1:${port}`,
        `//127.0.0.1:${port}`,
        `127.0.0.1:${port}`,
        `ftp://127.0.0.1:${port}`,
        `http://${instance.id}:${port}`,
      ];
      const { hostname, port: dataPort } = new URL(platform.dataUrl);
      for (const address of addresses) {
        for (const path of ["/mcp", "/sse", "/health", "/message", "/functions/list", `${address}/mcp`]) {
          for (const named of [{}, { "AEnvCore-EnvInstance-ID": instance.id }, { "AEnvCore-EnvInstance-ID": `127.0.0.1:${port}` }]) {
            const headers = {
              "AEnvCore-MCPProxy-URL": address,
              "x-forwarded-host": `127.0.0.1:${port}`,
              forwarded: `host=127.0.0.1:${port}`,
              ...named,
            };
            const sent = request({ hostname, port: dataPort, path, method: "POST", headers, agent: false });
            sent.end("{}");
            const [response] = await once(sent, "response");
            let text = "";
            for await (const piece of response.setEncoding("utf8")) text += piece;
            expect(text).not.toContain("trap");
          }
        }
      }
    } finally {
      trap.close();
    }
    expect(seen).toEqual([]);
  });
});

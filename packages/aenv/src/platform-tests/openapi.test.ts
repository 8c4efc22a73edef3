import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, type Platform, projects, publish, startPlatform } from "./platform.ts";

interface Operation {
  readonly responses: Record<string, { readonly content: Record<string, { readonly schema?: object }> }>;
}

let platform: Platform;
let paths: Record<string, Record<string, Operation>>;
let schemaOf: (method: string, path: string, status: string) => ValidateFunction;

beforeAll(async () => {
  platform = await startPlatform();
  const description = (await (await fetch(`${platform.controlUrl}/openapi.json`)).json()) as { paths: typeof paths };
  ({ paths } = description);
  // Formats are annotations; only the structure is checked.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ $id: "api", ...description });
  const pointer = (part: string) => part.replaceAll("~", "~0").replaceAll("/", "~1");
  schemaOf = (method, path, status) => {
    const found = ajv.getSchema(
      `api#/paths/${encodeURIComponent(pointer(path))}/${method.toLowerCase()}/responses/${status}/content/${encodeURIComponent("application~1json")}/schema`,
    );
    if (found === undefined) throw new Error(`no schema for ${status} of ${method} ${path}`);
    return found;
  };
});
afterAll(() => platform?.close());

/** Sends a request, and validates the response against the description. */
async function ask(method: string, path: string, values: Record<string, string> = {}, body?: unknown, query = ""): Promise<Answer> {
  const target = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const isArchive = body instanceof Uint8Array;
  const response = await fetch(`${platform.controlUrl}${target}${query}`, {
    method,
    ...(body !== undefined && {
      headers: { "content-type": isArchive ? "application/gzip" : "application/json" },
      body: isArchive ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body),
    }),
  });
  const answer = (await response.json()) as Answer;
  const validate = schemaOf(method, path, response.ok ? "200" : "default");
  const isValid = validate(answer);
  expect([method, path, isValid ? null : validate.errors, answer.message]).toEqual([method, path, null, answer.message]);
  return answer;
}

describe("the OpenAPI description", () => {
  it("has a response schema and an error schema for every route", () => {
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => ({ method, path, one })),
    );
    expect(routes.length).toBeGreaterThan(40);
    for (const { method, path, one } of routes) {
      const content = Object.entries(one.responses["200"]?.content ?? {});
      expect([method, path, content.length > 0]).toEqual([method, path, true]);
      for (const [type, { schema }] of content)
        if (type === "application/json") expect([method, path, schema]).not.toEqual([method, path, undefined]);
      if (content.some(([type]) => type === "application/json")) expect(schemaOf(method, path, "200")({ success: false })).toBe(false);
      expect(schemaOf(method, path, "default")({ success: true })).toBe(false);
    }
  });

  it("matches real responses: environments", async () => {
    const ref = await publish(platform, projects.probe);
    const [name = "", version = ""] = ref.split("@");
    const one = { name, version };
    for (const path of ["/env", "/api/v1/environments/search"]) await ask("GET", path);
    await ask("GET", "/env/{name}", one);
    const { data } = await ask("GET", "/env/{name}/{version}", one);
    expect(data.metadata.tools.length).toBeGreaterThan(0);
    for (const path of ["exists", "status"]) await ask("GET", `/env/{name}/{version}/${path}`, one);
    await ask("GET", "/env/{name}/{version}/exists", { name: "none", version });
    await ask("GET", "/env/{name}/{version}", { name: "none", version });
    await ask("POST", "/env/{name}/{version}/visibility", one, { visibility: "public" });
    await ask("POST", "/env/{name}/{version}/sign", one, {});
    await ask("GET", "/bundle/{digest}", { digest: data.bundle_digest });
    await ask("PUT", "/bundle/{digest}", { digest: `sha256:${"0".repeat(64)}` }, Buffer.from("x"));
    await ask("GET", "/data", {}, undefined, "?scenario=a&instance=b");
    await ask("POST", "/env", {}, { name: "image", version: "1.0.0", artifacts: [{ type: "image", content: "x" }] });
    await ask("PUT", "/env/{name}/{version}", { name: "image", version: "1.0.0" }, { status: "Ready" });
    await ask("GET", "/env/{name}/{version}", { name: "image", version: "1.0.0" });
    await ask("POST", "/env/{name}/{version}/release", { name: "image", version: "1.0.0" });
    await ask("DELETE", "/env/{name}/{version}", { name: "image", version: "1.0.0" });
  });

  it("matches real responses: instances and services", async () => {
    const ref = await publish(platform, projects.probe);
    const { id } = (await ask("POST", "/env-instance", {}, { envName: ref, datasource: "a/b:c", labels: { a: "b" } })).data;
    const { data } = await ask("POST", "/env-instance/batch", {}, { requests: [{ envName: ref }, { envName: "nowhere" }] });
    expect(data).toMatchObject({ created: 1, failed: 1 });
    await ask("POST", "/env-instance", {}, { envName: 5 });
    await ask("GET", "/env-instance/list", {}, undefined, "?limit=1");
    await ask("GET", "/env-instance/{id}/list", { id: "*" });
    await ask("GET", "/env-instance/{id}", { id });
    await ask("GET", "/env-instance/{id}", { id: "none" });
    await ask("GET", "/env-instance/{id}/events", { id });
    await ask("POST", "/env-instance/{id}/renew", { id }, { ttl: "1h" });
    await ask("POST", "/env-instance/{id}/reset", { id }, {});
    await ask("POST", "/env-instance/{id}/snapshot", { id }, {});
    const stored = (await ask("POST", "/env-instance/{id}/snapshot", { id }, { name: "stored" })).data;
    await ask("POST", "/env-instance", {}, { snapshot: "stored" });
    await ask("GET", "/snapshots", {}, undefined, "?limit=1");
    await ask("GET", "/snapshots/{id}", { id: stored.id });
    await ask("DELETE", "/snapshots/{id}", { id: "stored" });
    await ask("GET", "/snapshots/{id}", { id: stored.id });
    await ask("POST", "/env-instance/{id}/fork", { id }, { count: 2 });
    await ask("POST", "/env-instance/{id}/presign-url", { id }, { port: 3_000 });
    await ask("DELETE", "/env-instance/{id}", { id });
    const service = (await ask("POST", "/env-service", {}, { envName: ref, replicas: 1 })).data.id;
    await ask("GET", "/env-service/{id}/list", { id: "*" });
    await ask("GET", "/env-service/{id}", { id: service });
    await ask("PUT", "/env-service/{id}", { id: service }, { replicas: 2 });
    await ask("GET", "/env-instance/list");
    await ask("DELETE", "/env-service/{id}", { id: service });
    await ask("GET", "/env-service/{id}", { id: service });
  });

  it("matches real responses: tokens and the server itself", async () => {
    const { id } = (await ask("POST", "/token", {}, { owner: "ada", expiresAt: "2099-01-01T00:00:00Z", maxInstanceCount: 3 })).data;
    await ask("GET", "/token");
    await ask("DELETE", "/token/{id}", { id });
    await ask("DELETE", "/token/{id}", { id });
    for (const path of ["/whoami", "/health", "/ready", "/config", "/openapi.json"]) await ask("GET", path);
  });
});

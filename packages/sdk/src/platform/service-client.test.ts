import { describe, expect, it } from "vitest";
import { httpServer, type Seen, sendJson } from "../../fixtures/http-server.ts";
import { ServiceClient } from "./service-client.ts";

// As the original's services answer.
const record = {
  id: "myapp-svc-x9y8z7",
  env: null,
  status: "Running",
  created_at: "2026-01-19 10:30:00",
  updated_at: "",
  replicas: 1,
  available_replicas: 1,
  service_url: "myapp-svc-x9y8z7.aenv-sandbox.svc.cluster.local:8081",
  owner: "jun",
  environment_variables: null,
  pvc_name: "",
};

function answering(answer: (seen: Seen) => unknown) {
  return httpServer((seen, response) => sendJson(response, { success: true, code: 0, message: "", data: answer(seen) }));
}

describe("ServiceClient", () => {
  it("creates, gets, changes and deletes a service", async () => {
    await using server = await answering(({ method }) => (method === "DELETE" ? "Deleted successfully" : record));
    const services = new ServiceClient(server.url, { apiKey: "k" });
    expect(await services.create({ envName: "myapp@1.0.0", replicas: 2, service_name: "s" })).toMatchObject({ id: record.id });
    expect(await services.get("a/b")).toMatchObject({ status: "Running" });
    await services.update("a", { replicas: 3, environment_variables: { A: "1" } });
    expect(await services.delete("a", { deleteStorage: true })).toBe(true);
    const sent = server.requests.map(({ method, path, query }) => `${method} ${path}?${query}`);
    expect(sent).toEqual([
      "POST /env-service?",
      "GET /env-service/a%2Fb?",
      "PUT /env-service/a?",
      "DELETE /env-service/a?deleteStorage=true",
    ]);
    expect(server.requests[0]?.json).toEqual({ envName: "myapp@1.0.0", replicas: 2, service_name: "s" });
    expect(server.requests[2]?.json).toEqual({ replicas: 3, environment_variables: { A: "1" } });
    expect(server.requests[0]?.headers.authorization).toBe("Bearer k");
  });

  it("lists services of an environment or all, and accepts null as an empty list", async () => {
    await using server = await answering(({ path }) => (path.includes("none") ? null : [record]));
    const services = new ServiceClient(server.url);
    expect(await services.list()).toHaveLength(1);
    expect(await services.list({ ref: "none" })).toEqual([]);
    expect(server.requests.map(({ path }) => path)).toEqual(["/env-service/*/list", "/env-service/none/list"]);
  });

  it("rejects a response that is not a service", async () => {
    await using server = await answering(() => ({ id: "a" }));
    await expect(new ServiceClient(server.url).get("a")).rejects.toThrow("unexpected shape");
  });
});

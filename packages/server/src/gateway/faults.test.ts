import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { AGENT_KEY, ID, openGateway, paths, responseOf, textOf } from "./fixtures/gateway.ts";

const PATH = `/env-instance/${ID}/mcp`;
const headers = { "x-request-id": "mine" };

describe.each(Object.entries(paths))("the gateway reports, on the %s path", (_, open) => {
  it("a lost sandbox, with the ids of the request and the instance and the cause", async () => {
    await using gateway = await openGateway((_, response) => void response.end());
    await gateway.killSandbox();
    const sent = open(gateway.url + PATH, { headers });
    sent.end();
    expect((await responseOf(sent)).statusCode).toBe(502);
    expect(gateway.faults).toMatchObject([
      { of: "sandbox", code: "sandbox.lost", requestId: "mine", instanceId: ID, api: "trainer", error: { code: "ECONNREFUSED" } },
    ]);
  });

  it("a sandbox that disconnects within its response", async () => {
    await using gateway = await openGateway((_, response) => {
      response.writeHead(200, { "content-length": 10 }).write("half", () => response.destroy());
    });
    const sent = open(gateway.url + PATH, { headers });
    sent.end();
    await expect(textOf(await responseOf(sent))).rejects.toThrow();
    await vi.waitUntil(() => gateway.faults.length === 1);
    expect(gateway.faults).toMatchObject([{ of: "sandbox", requestId: "mine", instanceId: ID, error: expect.any(Error) }]);
  });

  it("a sandbox that does not speak HTTP, called through an agent link, without the link's key", async () => {
    await using gateway = await openGateway(() => {});
    const sandbox = createServer((socket) => void socket.on("error", () => {}).end("220 ready for mail\r\n\r\n")).listen(0, "127.0.0.1");
    await once(sandbox, "listening");
    const { port } = sandbox.address() as AddressInfo;
    const slot = { sandboxId: "odd", address: { kind: "tcp" as const, host: "127.0.0.1", port }, prefix: "", isOwnSandbox: true };
    await gateway.put({ id: "shop-odd", agentKey: "cccccccccccccccccccc", slot });
    const sent = open(`${gateway.url}/agent/cccccccccccccccccccc/mcp`, { headers });
    sent.end();
    expect((await responseOf(sent)).statusCode).toBe(502);
    expect(gateway.faults).toMatchObject([{ of: "sandbox", instanceId: "shop-odd", api: "agent", error: expect.any(Error) }]);
    expect(JSON.stringify(gateway.faults)).not.toContain("cccccccccccccccccccc");
    sandbox.close();
  });

  it("an unexpected error, and gives the client the request's id", async () => {
    await using gateway = await openGateway(() => {});
    gateway.breakStore(new Error("the disk is on fire"));
    const sent = open(`${gateway.url}/agent/${AGENT_KEY}/mcp`, { headers });
    sent.end();
    const answer = await responseOf(sent);
    const text = await textOf(answer);
    expect([answer.statusCode, text]).toEqual([500, expect.stringContaining("the server's log has the details under request mine")]);
    expect(text).not.toContain("fire");
    expect(gateway.faults).toMatchObject([
      { of: "platform", code: "internal", requestId: "mine", error: { message: "the disk is on fire" } },
    ]);
  });

  it("neither clients that disconnect nor refused calls", async () => {
    let begun = 0;
    await using gateway = await openGateway(() => void begun++);
    const gone = open(gateway.url + PATH);
    gone.end();
    await vi.waitUntil(() => begun === 1);
    gone.destroy();
    await vi.waitUntil(() => gateway.calls.length === 1);
    const unknown = open(`${gateway.url}/env-instance/nobody/mcp`);
    unknown.end();
    expect((await responseOf(unknown)).statusCode).toBe(404);
    expect(gateway.faults).toEqual([]);
  });
});

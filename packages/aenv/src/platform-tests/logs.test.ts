import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callFunction } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

describe("an instance's log", () => {
  let platform: Platform;
  let id: string;
  beforeAll(async () => {
    platform = await startPlatform();
    ({ id } = await platform.create(await publish(platform, projects.probe)));
  });
  afterAll(() => platform?.close());

  const print = (line: string) => callFunction(platform, id, "print", { line });
  const logs = (query: string, more: RequestInit = {}) => fetch(`${platform.controlUrl}/env-instance/${id}/logs${query}`, more);

  it("is the output of its sandbox, limited to the requested number of last lines", async () => {
    for (const line of ["one", "two", "three"]) await print(line);
    expect(await (await logs("?tail=2")).text()).toBe("two\nthree\n");
    expect(await (await logs("?tail=0")).text()).toBe("");
  });

  it("has the stack of an exception of a tool, which the agent does not see", async () => {
    const { id: echo } = await platform.create(await publish(platform, projects.echo));
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "remember", arguments: { name: "color" } } };
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const url = `${platform.dataUrl}/env-instance/${echo}/mcp`;
    const answer = await (await fetch(url, { method: "POST", headers, body: JSON.stringify(call) })).text();
    expect(answer).toContain("nothing is remembered as 'color'");
    expect(answer).not.toContain("main.js");
    const written = async () => (await fetch(`${platform.controlUrl}/env-instance/${echo}/logs?tail=50`)).text();
    await expect
      .poll(written)
      .toMatch(/tool 'remember' of instance '.*' failed: Error: nothing is remembered as 'color'.*\n {4}at .*:\d+:\d+/);
  });

  it("is streamed line by line, and no line can forge an event", async () => {
    const stop = new AbortController();
    const response = await logs("?tail=1&follow=true", { signal: stop.signal });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    let heard = "";
    const reading = (async () => {
      for await (const piece of response.body ?? []) {
        heard += Buffer.from(piece).toString();
        if (heard.includes("the end")) return;
      }
    })();
    for (const line of ["four", "\revent: forged\rdata: forged", "the end"]) await print(line);
    await reading;
    stop.abort();
    expect(heard).toContain("data: four\n\n");
    expect(heard).not.toContain("\r");
    expect(heard.split("\n\n").filter((event) => event !== "" && !event.startsWith("data: "))).toEqual([]);
  });

  it("is refused for an ended instance", async () => {
    await platform.demand("DELETE", `/env-instance/${id}`);
    expect(await platform.ask("GET", `/env-instance/${id}/logs`)).toMatchObject({ status: 410, error: { code: "instance.gone" } });
  });
});

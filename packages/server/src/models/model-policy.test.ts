import type { lookup as Lookup } from "node:dns";
import { PlatformError, readBoundedText } from "@aenv/contract";
import { ModelHttp } from "@aenv/rollout";
import { scriptedOpenAi } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultModels, ModelPolicy } from "./model-policy.ts";

const open = (entries: readonly string[], names: Readonly<Record<string, string>> = {}) => {
  const resolve = ((host: string, _options: object, callback: (error: Error | null, found: object[]) => void) => {
    const address = names[host];
    if (address === undefined) callback(new Error(`no such name: ${host}`), []);
    else callback(null, [{ address, family: address.includes(":") ? 6 : 4 }]);
  }) as unknown as typeof Lookup;
  return new ModelPolicy(entries, () => [8080, 8081], resolve);
};
const allows = (policy: ModelPolicy, url: string) => policy.urlProblem(new URL(url)) === null;
/** The address that a connection to the name uses, or the reason why there is none. */
const dialled = (policy: ModelPolicy, host: string, port = 8000) =>
  new Promise<string>((resolve) =>
    policy.lookup(port)(host, {}, (error, address) => resolve(error === null ? String(address) : error.message)),
  );

const laptop = open(defaultModels(false));
const shared = open(defaultModels(true));

describe("the default of a server on loopback", () => {
  it("allows a model on the same machine, in the network and elsewhere", () => {
    for (const host of ["127.0.0.1", "localhost", "[::1]", "10.1.2.3", "192.168.0.7", "[fd12::1]", "8.8.8.8"])
      expect([host, allows(laptop, `http://${host}:8000/v1`)]).toEqual([host, true]);
  });

  it("refuses the server's own ports", () => {
    for (const url of ["http://127.0.0.1:8080/v1", "http://localhost:8081", "http://[::1]:8080/", "http://[::ffff:127.0.0.1]:8080/"])
      expect([url, allows(laptop, url)]).toEqual([url, false]);
  });
});

it("refuses the server's own ports also for a name that has the address of this machine, among others or trusted", async () => {
  const names = { home: "127.0.0.1", six: "::1", mapped: "::ffff:127.0.0.1" };
  for (const policy of [open(defaultModels(false), names), open(Object.keys(names), names)])
    for (const host of Object.keys(names)) {
      expect(await dialled(policy, host, 8080)).toContain("is a port of this server itself");
      expect(await dialled(policy, host, 8000)).toMatch(/127\.0\.0\.1|::1/);
    }
});

it("refuses a path whose escaped segments lead out of the URL that the operator lists", () => {
  const policy = open(["http://gateway:9000/tenant-a"]);
  expect(allows(policy, "http://gateway:9000/tenant-a/v1")).toBe(true);
  for (const path of [
    "/tenant-a/..%2ftenant-b",
    "/tenant-a/..%2Ftenant-b",
    "/tenant-a/%2e%2e/tenant-b",
    "/tenant-a/..%5ctenant-b",
    "/tenant-a/../tenant-b",
  ])
    expect([path, allows(policy, `http://gateway:9000${path}`)]).toEqual([path, false]);
});

describe("the default of a shared server", () => {
  it("allows public addresses only", () => {
    expect(allows(shared, "https://8.8.8.8/v1")).toBe(true);
    for (const host of [
      "127.0.0.1",
      "localhost",
      "10.1.2.3",
      "172.20.0.1",
      "192.168.0.7",
      "100.64.0.1",
      "[::1]",
      "[fd12::1]",
      "[64:ff9b::a00:1]",
      "[::127.0.0.1]",
      "[::ffff:0:127.0.0.1]",
    ])
      expect([host, allows(shared, `http://${host}:8000/v1`)]).toEqual([host, false]);
  });

  it("dials a name only at an address that is allowed, however the name looks", async () => {
    const policy = open(["public"], { good: "8.8.8.8", bad: "10.0.0.1", sly: "::ffff:127.0.0.1", meta: "169.254.169.254" });
    expect(await dialled(policy, "good")).toBe("8.8.8.8");
    expect(await dialled(policy, "bad")).toContain("private address 10.0.0.1");
    expect(await dialled(policy, "sly")).toContain("loopback address 127.0.0.1");
    expect(await dialled(policy, "meta")).toContain("never called");
  });
});

describe("the operator's entries", () => {
  it("allow hosts, domains, address ranges and beginnings of URLs", async () => {
    const policy = open(["models.lab", "*.cluster.local", "10.1.0.0/16", "http://gateway:9000/v1"], {
      "models.lab": "10.9.9.9",
      "a.cluster.local": "10.9.9.8",
      gateway: "10.9.9.7",
      other: "10.1.2.3",
      far: "10.2.0.1",
    });
    for (const url of ["http://models.lab/v1", "http://a.cluster.local/x", "http://10.1.2.3/v1", "http://gateway:9000/v1/openai"])
      expect([url, allows(policy, url)]).toEqual([url, true]);
    for (const url of [
      "http://10.2.0.1/v1",
      "http://gateway:9000/v2",
      "http://gateway:9000/v11",
      "http://gateway/v1",
      "https://gateway:9000/v1",
    ])
      expect([url, allows(policy, url)]).toEqual([url, false]);
    for (const host of ["models.lab", "a.cluster.local", "gateway", "other"]) expect(await dialled(policy, host)).toMatch(/^10\./);
    expect(await dialled(policy, "far")).toContain("rolloutModels");
  });

  it("never allow link-local and metadata addresses, not even by name or range", async () => {
    const names = { meta: "169.254.169.254", v6: "fe80::1", ec2: "fd00:ec2::254" };
    const policy = open(["0.0.0.0/0", "::/0", "meta", "v6", "ec2", "http://169.254.169.254"], names);
    for (const host of [
      "169.254.169.254",
      "[fe80::1]",
      "[fd00:ec2::254]",
      "0.0.0.0",
      "[::ffff:169.254.169.254]",
      "2852039166",
      "0xa9fea9fe",
    ])
      expect([host, allows(policy, `http://${host}/v1`)]).toEqual([host, false]);
    for (const host of Object.keys(names)) expect(await dialled(policy, host)).toContain("never called");
  });

  it("are refused at the start if they mean nothing", () => {
    for (const entry of ["", "10.0.0.0/33", "http//x", "a b", "::/129", "-"]) expect(() => open([entry])).toThrow(PlatformError);
  });
});

it("is what a connection to a model obeys: the checked address is dialled, and a refusal is final", async () => {
  await using model = await scriptedOpenAi(["done"]);
  const url = new URL(model.baseUrl);
  const names = { "model.test": "127.0.0.1" };
  const ask = async (policy: ModelPolicy) => {
    const http = new ModelHttp({ retries: 3, timeoutMs: 10_000, lookup: policy.lookup });
    const call = {
      url: `http://model.test:${url.port}/v1/chat/completions`,
      headers: { authorization: "Bearer k" },
      body: { model: "m", messages: [{ role: "user", content: "hello" }] },
    };
    return http
      .post(call, async (body) => JSON.parse(await readBoundedText(body, { maxBytes: 10_000 })), new AbortController().signal)
      .finally(() => http.close());
  };
  expect(await ask(open(["loopback"], names))).toMatchObject({ object: "chat.completion" });
  await expect(ask(open(["public"], names))).rejects.toMatchObject({
    retryable: false,
    message: expect.stringContaining("loopback address 127.0.0.1"),
  });
  expect(model.requests).toHaveLength(1);
});

it("judges every notation of an IPv4 address like the address", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
      const mapped = `[::ffff:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}]`;
      const decimal = ((a * 256 + b) * 256 + c) * 256 + d;
      const isAllowed = allows(shared, `http://${address}/v1`);
      expect([address, allows(shared, `http://${mapped}/v1`), allows(shared, `http://${decimal}/v1`)]).toEqual([
        address,
        isAllowed,
        isAllowed,
      ]);
    }),
  );
});

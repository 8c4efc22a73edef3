import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { bundleOf, chunked, packed } from "../fixtures/archives.ts";
import { ada, bob, openTestHub, root, stores, tim } from "../fixtures/hub.ts";

const project = (text: string) => packed(Buffer.from(`the project's files: ${text}`.padEnd(2_000)));

async function textOf(download: { stream: NodeJS.ReadableStream }): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of download.stream) chunks.push(chunk as Buffer);
  return gunzipSync(Buffer.concat(chunks)).toString().trim();
}

describe.each(stores)("push and pull with the original client, with the store in %s", (store) => {
  it("requests a link, uploads the project, publishes, and downloads through another link", async () => {
    const { hub } = openTestHub(store);
    const { transfers } = hub;
    const { ticket } = await transfers.sign("weather-demo", "1.0.0", "upload", ada);
    expect(ticket).toMatch(/^[0-9a-f]{40}$/);
    const { digest, bytes } = project("one");
    await transfers.receive(ticket, chunked(bytes));
    const { environment } = await hub.publish({ name: "weather-demo", version: "1.0.0", codeUrl: "aenv/weather-demo-1.0.0.tar" }, ada);
    expect(environment.sourceDigest).toBe(digest);
    const reading = await transfers.sign("weather-demo", "1.0.0", "download", ada);
    const download = await transfers.send(reading.ticket);
    expect(download).toMatchObject({ fileName: "weather-demo-1.0.0.tar.gz", blob: { size: bytes.length } });
    expect(await textOf(download)).toBe("the project's files: one");
  });

  it("is a no-op for identical files, and is refused if the files have changed", async () => {
    const { hub } = openTestHub(store);
    const upsert = { name: "a", version: "1.0.0", codeUrl: "x" };
    const send = async (text: string) =>
      hub.transfers.receive((await hub.transfers.sign("a", "1.0.0", "upload", ada)).ticket, chunked(project(text).bytes));
    await send("one");
    const { environment } = await hub.publish(upsert, ada);
    await send("one");
    expect(await hub.update("a", "1.0.0", upsert, ada)).toEqual(environment);
    await send("one");
    expect((await hub.publish(upsert, ada)).isNew).toBe(false);
    expect((await hub.publish(upsert, ada)).isNew).toBe(false);
    await send("two");
    await expect(hub.update("a", "1.0.0", upsert, ada)).rejects.toMatchObject({ code: "environment.exists" });
    await send("two");
    await expect(hub.publish(upsert, ada)).rejects.toMatchObject({ code: "environment.exists" });
    expect((await hub.publish(upsert, ada)).environment).toEqual(environment);
  });

  it("accepts a link once, for its direction, until it expires", async () => {
    const { hub, later } = openTestHub(store);
    const { transfers } = hub;
    await hub.publish({ name: "a", version: "1.0.0" }, ada);
    const sign = async (direction: "upload" | "download") => (await transfers.sign("a", "1.0.0", direction, ada)).ticket;
    const bytes = () => chunked(project("x").bytes);
    const one = await sign("upload");
    const settled = await Promise.allSettled(Array.from({ length: 5 }, () => transfers.receive(one, bytes())));
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    await expect(transfers.send(await sign("upload"))).rejects.toMatchObject({ code: "ticket.not_found" });
    await expect(transfers.receive(await sign("download"), bytes())).rejects.toMatchObject({ code: "ticket.not_found" });
    const old = await sign("upload");
    later(16 * 60_000);
    await expect(transfers.receive(old, bytes())).rejects.toMatchObject({ code: "ticket.not_found" });
    for (const guess of ["", "x", "0".repeat(40), "../../x"])
      await expect(transfers.send(guess)).rejects.toMatchObject({ code: "ticket.not_found" });
  });

  it("stores no link in plain text", async () => {
    const { hub, store: rows } = openTestHub(store);
    const { ticket } = await hub.transfers.sign("a", "1.0.0", "upload", ada);
    expect(JSON.stringify(await rows.list("ticket", { limit: 10 }))).not.toContain(ticket);
  });

  it("limits the unused links of one owner until old ones expire", async () => {
    const { hub, later } = openTestHub(store);
    const sign = () => hub.transfers.sign("a", "1.0.0", "upload", ada);
    for (let at = 0; at < 200; at += 1) await sign();
    await expect(sign()).rejects.toMatchObject({ code: "quota.exceeded", details: { retryAfterSeconds: 60 } });
    await hub.transfers.sign("b", "1.0.0", "upload", bob);
    later(16 * 60_000);
    await sign();
  });
});

describe("an upload", () => {
  it("needs the role publisher, and for a link a name without another owner", async () => {
    const { hub } = openTestHub();
    const { digest, bytes } = bundleOf({ "main.js": "x" });
    await expect(hub.transfers.upload(digest, chunked(bytes), tim)).rejects.toMatchObject({ code: "access.denied" });
    await expect(hub.transfers.sign("a", "1.0.0", "upload", tim)).rejects.toMatchObject({ code: "access.denied" });
    await hub.publish({ name: "a", version: "1.0.0" }, ada);
    await expect(hub.transfers.sign("a", "1.0.0", "upload", bob)).rejects.toMatchObject({ code: "access.denied" });
    for (const [name, version] of [
      ["../a", "1"],
      ["a", "../1"],
      ["", "1"],
      ["b", "latest"],
    ] as const) {
      await expect(hub.transfers.sign(name, version, "upload", ada)).rejects.toMatchObject({ code: "request.invalid" });
    }
    await hub.transfers.sign("a", "1.0.0", "upload", root);
  });

  it("belongs to the owner that uploaded it", async () => {
    const { hub } = openTestHub();
    const { digest, bytes } = bundleOf({ "main.js": "x" });
    expect(await hub.transfers.has(digest, ada)).toBe(false);
    await hub.transfers.upload(digest, chunked(bytes), ada);
    expect(await hub.transfers.has(digest, ada)).toBe(true);
    expect(await hub.transfers.has(digest, bob)).toBe(false);
    expect(await hub.transfers.has(digest, root)).toBe(true);
    await expect(hub.transfers.has("../x", ada)).rejects.toThrow("not a digest");
  });

  it("of one owner never becomes part of another's version", async () => {
    const { hub } = openTestHub();
    const { ticket } = await hub.transfers.sign("a", "1.0.0", "upload", bob);
    await hub.transfers.receive(ticket, chunked(project("bob's").bytes));
    expect((await hub.publish({ name: "a", version: "1.0.0" }, ada)).environment.sourceDigest).toBeNull();
  });

  it("is deleted after a day if it is not published", async () => {
    const { hub, later, blobs } = openTestHub();
    const { ticket } = await hub.transfers.sign("a", "1.0.0", "upload", ada);
    const { digest, bytes } = project("x");
    await hub.transfers.receive(ticket, chunked(bytes));
    later(23 * 3_600_000);
    expect(await hub.collect()).toEqual(new Set());
    later(2 * 3_600_000);
    expect(await hub.collect()).toEqual(new Set([digest]));
    expect(await blobs.ownership.usedBy("ada")).toBe(0);
  });

  it("is refused above the quota, also through a link, while a smaller one is accepted", async () => {
    const { hub } = openTestHub("memory", { quotaBytes: 1_000 });
    const large = packed(Buffer.from(Array.from({ length: 4_000 }, (_, at) => (at * 7919) % 251)));
    const { ticket } = await hub.transfers.sign("a", "1.0.0", "upload", ada);
    const random = packed(crypto.getRandomValues(new Uint8Array(2_000)));
    await expect(hub.transfers.receive(ticket, chunked(random.bytes))).rejects.toMatchObject({ code: "quota.exceeded" });
    await hub.transfers.upload(large.digest, chunked(large.bytes), ada);
  });
});

describe("a download", () => {
  it("is the bundle, for every caller that may see the version", async () => {
    const { hub, push } = openTestHub();
    await push(ada, "a", "1.0.0", { sharedWith: ["tim"] });
    const download = await hub.transfers.download("a", "1.0.0", tim);
    expect(await textOf(download)).toContain("run()");
    await expect(hub.transfers.download("a", "1.0.0", bob)).rejects.toMatchObject({ code: "environment.not_found" });
    const { ticket } = await hub.transfers.sign("a", "1.0.0", "download", tim);
    expect(await textOf(await hub.transfers.send(ticket))).toContain("run()");
  });

  it("is refused with the reason if there is no archive", async () => {
    const { hub } = openTestHub();
    await hub.publish({ name: "a", version: "1.0.0", artifacts: [{ type: "image", content: "x" }] }, ada);
    await expect(hub.transfers.download("a", "1.0.0", ada)).rejects.toMatchObject({
      code: "bundle.not_found",
      message: expect.stringContaining("as an image"),
    });
  });

  it("fails through a link after the version was deleted", async () => {
    const { hub, push } = openTestHub();
    await push(ada, "a", "1.0.0");
    const { ticket } = await hub.transfers.sign("a", "1.0.0", "download", ada);
    await hub.remove("a", "1.0.0", ada);
    await expect(hub.transfers.send(ticket)).rejects.toMatchObject({ code: "environment.not_found" });
  });
});

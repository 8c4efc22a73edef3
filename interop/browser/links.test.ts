import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { chromiumPath, describeNeeding } from "@aenv/testing";
import { freePort, type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { pagesOf } from "./fixtures/linked/pages.ts";

const project = fileURLToPath(new URL("fixtures/linked", import.meta.url));

describeNeeding("browser", "the page of a link to a port, in Chromium", () => {
  let platform: Platform;
  let browser: Browser;
  beforeAll(async () => {
    platform = await startPlatform();
    const { chromium } = await import("playwright-core");
    // Chromium's sandbox does not work for root in a container. The pages are those of this test.
    browser = await chromium.launch({ executablePath: chromiumPath() as string, args: ["--no-sandbox"] });
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await platform?.close();
  });

  /** A page as its user sees it, and what it reads of the other one. */
  async function attack(own: string, victim: string) {
    await using context = await browser.newContext();
    // Where the browser is sent on to: an attacker who knows the link knows that address too.
    const page = await context.newPage();
    await page.goto(victim);
    const address = page.url();
    await page.goto(own);
    const read = (await page.evaluate(`attack(${JSON.stringify(address)})`)) as Record<string, string>;
    await page.goto(victim);
    const hasWorker = await page.evaluate("navigator.serviceWorker.controller !== null");
    return { address, read, hasWorker, text: await page.locator("p").innerText() };
  }

  async function openLink(secret: string): Promise<string> {
    const port = await freePort();
    const version = `1.0.${port}`;
    const ref = await publish(platform, project, { ports: [port], version });
    const { id } = await platform.create(ref, { environment_variables: { LISTEN: String(port), SECRET: secret } });
    const { url } = (await platform.demand("POST", `/env-instance/${id}/presign-url`, { port })) as { url: string };
    return `${url}/`;
  }

  it("reads no page of another link by requests, frames or service workers", async () => {
    const [own, victim] = [await openLink("the attacker's"), await openLink("the other owner's")];
    const { address, read, hasWorker, text } = await attack(own, victim);
    expect(address).toMatch(/^http:\/\/[\w-]+\.localhost:\d+\/$/);
    expect(read).toEqual({
      "a request": "TypeError",
      "a request without CORS": "",
      "a frame": "TypeError",
      // Its script is refused.
      "a service worker for the whole host": "TypeError",
      "a service worker for the other page": "SecurityError",
    });
    expect([hasWorker, text]).toEqual([false, "the other owner's"]);
  }, 60_000);

  it("would read it by each of these, if both were on one host and their headers were passed on", async () => {
    const [one, other] = [pagesOf("the attacker's"), pagesOf("the other owner's")];
    const server = createServer((request, response) => (request.url?.startsWith("/one/") ? one : other)(request, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const host = `http://localhost:${(server.address() as AddressInfo).port}`;
    try {
      const { read, hasWorker } = await attack(`${host}/one/`, `${host}/other/`);
      expect(Object.values(read).filter((text) => !text.includes("the other owner's"))).toEqual(["registered"]);
      expect(hasWorker).toBe(true);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }, 60_000);
});

import { readServerConfig } from "@aenv/server";
import { expect, it } from "vitest";
import { type Platform, startPlatform } from "./platform.ts";

const metricsToken = "zq-metrics-token-0123456789";
const scraper = { authorization: `Bearer ${metricsToken}` };

/** The statuses of requests, as a process of this machine sends them; an environment of the engine `process` is one. */
async function statuses(urls: readonly string[], headers: Readonly<Record<string, string>> = {}): Promise<readonly number[]> {
  return Promise.all(urls.map(async (url) => (await fetch(url, { headers })).status));
}

const urls = ({ server: { adminUrl, controlUrl } }: Platform, path: string) => [`${adminUrl}${path}`, `${controlUrl}${path}`];

// Before: 200 without a token for both on the admin port.
it("asks for a token for metrics and configuration on the admin port too, and for none to say that it is alive and ready", async () => {
  await using platform = await startPlatform({ flags: { access: "on", adminPort: 0 } });
  for (const path of ["/metrics", "/config"]) {
    expect(await statuses(urls(platform, path))).toEqual([401, 401]);
    expect(await statuses(urls(platform, path), await platform.token("bob", "trainer"))).toEqual([403, 403]);
    expect(await statuses(urls(platform, path), await platform.token("root", "admin"))).toEqual([200, 200]);
  }
  for (const path of ["/health", "/ready"]) expect(await statuses(urls(platform, path))).toEqual([200, 200]);
});

it("opens the metrics, and nothing else, with the token for Prometheus", async () => {
  await using platform = await startPlatform({ flags: { access: "on", adminPort: 0, metricsToken } });
  expect(await statuses(urls(platform, "/metrics"), scraper)).toEqual([200, 200]);
  for (const path of ["/config", "/env", "/token"]) expect(await statuses(urls(platform, path), scraper)).not.toContain(200);
  expect(await statuses(urls(platform, "/metrics"), { authorization: `${scraper.authorization}0` })).toEqual([401, 401]);
  const config = await platform.demand("GET", "/config", undefined, await platform.token("root", "admin"));
  expect(config).toMatchObject({ metricsToken: "***" });
  expect(JSON.stringify(config)).not.toContain(metricsToken);
});

it("asks for the token for Prometheus also where access is off", async () => {
  await using platform = await startPlatform({ flags: { access: "off", adminPort: 0, metricsToken } });
  expect(await statuses(urls(platform, "/metrics"))).toEqual([401, 401]);
  expect(await statuses(urls(platform, "/metrics"), scraper)).toEqual([200, 200]);
});

it("does not repeat a token for Prometheus that is refused", () => {
  const read = () => readServerConfig({ flags: { metricsToken: "zq-short" }, variables: {} });
  expect(read).toThrow("metricsToken");
  expect(read).not.toThrow("zq-short");
});
